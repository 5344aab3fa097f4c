"""Kill -9 under load, of the collector and of its database: nothing is lost, nothing counts twice."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.oracle import Oracle
from collector.postgres import Postgres
from collector.senders import SENDERS, Senders, sending
from collector.served import Served, serving

pytestmark = pytest.mark.unmeasured

MOST_BETWEEN_KILLS = 300
"""Batches; a hundred times as many are fewer than an oracle has."""

LATEST_SECONDS = 0.02
"""A few commits long, so that a kill falls on any moment of one."""


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that nobody else needs, and that may be killed."""
    server = Postgres()
    yield server
    server.stop()


def kill_under_load(folder: Path, store: str, kills: int) -> Senders:
    chance = random.Random(kills)
    with serving(folder, store) as served, sending(Oracle(), served.url) as senders:
        for _ in range(kills):
            senders.wait_for(acknowledged=chance.randint(1, MOST_BETWEEN_KILLS))
            time.sleep(chance.uniform(0, LATEST_SECONDS))  # the moment of the kill
            served.kill()
            senders.wait_for(cut=1)
            served.start()
        senders.wait_for(acknowledged=1)
        senders.finish_and_verify(served)
    print(senders)
    return senders


def test_a_few_kills_of_the_collector_lose_nothing_and_count_nothing_twice(tmp_path: Path, address: str) -> None:
    kill_under_load(tmp_path, address, kills=3)


@pytest.mark.slow
def test_a_hundred_kills_of_the_collector_lose_nothing_and_count_nothing_twice(tmp_path: Path, address: str) -> None:
    senders = kill_under_load(tmp_path, address, kills=100)
    assert senders.duplicates > 0


@pytest.mark.slow
def test_kills_while_the_collector_starts_leave_a_store_that_works(tmp_path: Path, address: str) -> None:
    chance = random.Random(1)
    served = Served(tmp_path, address)
    with sending(Oracle(), served.url) as senders:
        try:
            for _ in range(20):
                served.start(wait=False)
                time.sleep(chance.uniform(0.3, 1.5))  # from before the first table to after the first commits
                served.kill()
            served.start()
            senders.wait_for(acknowledged=100)
            senders.finish_and_verify(served)
        finally:
            served.kill()


def kill_database_under_load(folder: Path, server: Postgres, kills: int) -> None:
    chance = random.Random(kills)
    with serving(folder, server.database("hubbub")) as served, sending(Oracle(), served.url) as senders:
        process = served.process
        for _ in range(kills):
            senders.wait_for(acknowledged=chance.randint(1, MOST_BETWEEN_KILLS))
            time.sleep(chance.uniform(0, LATEST_SECONDS))  # the moment of the kill
            cut = senders.cut
            server.kill()
            senders.wait_for(refused=SENDERS)
            assert served.get("/livez").status_code == 200
            down = served.get("/readyz")
            assert down.status_code == 503
            assert int(down.headers["Retry-After"]) > 0
            server.start()
            senders.wait_for(acknowledged=1)
            assert senders.cut == cut, "a request was not answered, although the collector was there"
        senders.finish_and_verify(served)
        assert process.poll() is None
        assert served.process is process
    print(senders)


def test_a_few_kills_of_the_database_lose_nothing_and_count_nothing_twice(
    tmp_path: Path, own_postgres: Postgres
) -> None:
    kill_database_under_load(tmp_path, own_postgres, kills=2)


@pytest.mark.slow
def test_ten_kills_of_the_database_lose_nothing_and_count_nothing_twice(tmp_path: Path, own_postgres: Postgres) -> None:
    kill_database_under_load(tmp_path, own_postgres, kills=10)
