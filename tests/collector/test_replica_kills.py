"""Three collectors on one PostgreSQL behind a balancer, and kill -9 of any of them: all is counted, and once."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.balancer import balancing, replicas
from collector.oracle import Oracle
from collector.postgres import Postgres
from collector.senders import SENDERS, Senders, sending

pytestmark = pytest.mark.unmeasured

DATABASE = -1
"""Beside the numbers of replicas, what can be killed."""

LATEST_SECONDS = 0.02
"""A few commits long, so that a kill falls on any moment of one."""


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that nobody else needs, and that may be killed."""
    server = Postgres()
    yield server
    server.stop()


def kill_behind_balancer(folder: Path, server: Postgres, kills: list[int]) -> Senders:
    """Kill one after the other under load; the balancer and the senders' retries are all that helps."""
    chance = random.Random(len(kills))
    with (
        replicas(folder, server.database("hubbub")) as three,
        balancing(*three) as balancer,
        sending(Oracle(), balancer.url, again_every=4) as senders,
    ):
        for kill in kills:
            senders.wait_for(acknowledged=chance.randint(20, 200))
            time.sleep(chance.uniform(0, LATEST_SECONDS))  # the moment of the kill
            if kill == DATABASE:
                server.kill()
                senders.wait_for(refused=SENDERS)
                for served in three:
                    served.wait_until_alive()
                server.start()
            else:
                three[kill].wait_until_ready()
                three[kill].kill()
                senders.wait_for(acknowledged=20)  # by those that are left; nobody need have been at this one yet
                three[kill].start(wait=False)
        senders.wait_for(acknowledged=50)
        senders.finish_and_verify(three[0])
        assert senders.repeated > 0
        assert senders.cut > 0
        assert len(balancer.taken) == len(three)
        assert balancer.passed_over > 0
    print(senders, balancer.taken, balancer.passed_over)
    return senders


def test_replicas_and_their_database_die_behind_a_balancer_and_all_is_counted_once(
    tmp_path: Path, own_postgres: Postgres
) -> None:
    kill_behind_balancer(tmp_path, own_postgres, [0, DATABASE, 1])


@pytest.mark.slow
def test_many_kills_behind_a_balancer_lose_nothing_and_count_nothing_twice(
    tmp_path: Path, own_postgres: Postgres
) -> None:
    kills = [0, 1, 2] * 10 + [DATABASE] * 5
    random.Random(1).shuffle(kills)
    senders = kill_behind_balancer(tmp_path, own_postgres, kills)
    assert senders.duplicates > 0
