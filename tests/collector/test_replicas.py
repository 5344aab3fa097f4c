"""Several collectors on one store: whichever of them a batch reaches, and however often, it counts once."""

import contextlib
import json
import os
import random
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.parser import text_string_to_metric_families

from collector.oracle import Oracle
from collector.postgres import Postgres
from collector.senders import ANSWER_SECONDS, HANG_SECONDS, REPORTS, sending
from collector.served import Served, serving
from hubbub.collector.store import Store
from hubbub.collector.store.backend import lock_horizon, writing
from hubbub.shared.wire import JSON

REPLICAS = 3
SAME = 30
"""Batches that are sent to all replicas at the same moment."""


@contextlib.contextmanager
def replicas(folder: Path, store: str) -> Iterator[list[Served]]:
    """Collectors that are up, all on the same store, and are gone afterwards."""
    all_of_them = [Served(folder, store) for _ in range(REPLICAS)]
    with contextlib.ExitStack() as stack:
        for served in all_of_them:
            served.start(wait=False)
            stack.callback(served.kill)
        for served in all_of_them:
            served.wait_until_ready()
        yield all_of_them


def counted(served: Served, **labels: str) -> dict[str, float]:
    """What a collector counts about itself, of some labels."""
    families = text_string_to_metric_families(served.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples]
    return {each.name: each.value for each in samples if labels.items() <= each.labels.items()}


def accepted_by_one(file: Path) -> float:
    """Batches that one process of several has accepted, by the file in which it counts."""
    metrics = MultiProcessCollector.merge([str(file)])  # type: ignore[no-untyped-call]
    samples = [sample for metric in metrics for sample in metric.samples if sample.name == "hubbub_batches_total"]
    return sum(float(sample.value) for sample in samples if sample.labels["outcome"] == "accepted")


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask until something is so: counters are told a moment after the sender is."""
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill_replicas_under_load(folder: Path, server: Postgres, kills: int) -> None:
    chance = random.Random(kills)
    store = server.database(f"t{uuid.uuid4().hex}")
    with replicas(folder, store) as three, sending(Oracle(), *(each.url for each in three), again_every=4) as senders:
        for kill in range(kills):
            senders.wait_for(acknowledged=chance.randint(50, 200))
            served = three[kill % REPLICAS]
            served.kill()
            senders.wait_for(acknowledged=50, cut=1)  # by the others
            served.start()
        senders.wait_for(acknowledged=50)
        senders.finish_and_verify(three[-1])
        assert senders.repeated > 0
    print(senders)


def test_a_replica_dies_under_load_and_all_is_counted_once(tmp_path: Path, postgres: Postgres) -> None:
    kill_replicas_under_load(tmp_path, postgres, kills=1)


@pytest.mark.slow
def test_replicas_die_in_turn_under_load_and_all_is_counted_once(tmp_path: Path, postgres: Postgres) -> None:
    kill_replicas_under_load(tmp_path, postgres, kills=15)


def test_batches_that_reach_all_replicas_at_the_same_moment_count_once(tmp_path: Path, postgres: Postgres) -> None:
    chance = random.Random(1)
    oracle = Oracle()
    address = postgres.database(f"t{uuid.uuid4().hex}")
    with replicas(tmp_path, address) as three, contextlib.ExitStack() as stack:
        store = Store(address)
        stack.callback(store.close)
        connections = [
            [stack.enter_context(contextlib.closing(connect(served))) for _ in range(2 * SAME)] for served in three
        ]
        for _ in range(10):
            batches = [oracle.batch() for _ in range(SAME)]
            asked = []
            with writing(store.engine) as other:
                lock_horizon(other, to_move_it=True)  # all wait for this, and then commit at the same moment
                for own in connections:
                    # Each batch twice, and in another order than the others have it.
                    order = chance.sample(2 * list(range(SAME)), 2 * SAME)
                    for number, connection in zip(order, own, strict=True):
                        connection.request("POST", "/v1/batches", batches[number][0], {"Content-Type": JSON})
                        asked.append((number, connection))
                for served in three:
                    assert served.get("/livez").status_code == 200  # so what was sent before has arrived
            first = Counter(number for number, connection in asked if not told_duplicate(connection))
            assert first == Counter(range(SAME)), "of all answers to a batch, just one calls it new"
            for _, slots in batches:
                oracle.acknowledge(slots)
        tallies = three[0].tallies(oracle)
        oracle.verify(tallies)
        assert sum(int(tally.n.sum()) for tally in tallies.values()) == oracle.acknowledged
        for served in three:
            assert counted(served)["hubbub_store_errors_total"] == 0, served.log.read_text()


def connect(served: Served) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", served.port, timeout=ANSWER_SECONDS)


def told_duplicate(connection: HTTPConnection) -> bool:
    with connection.getresponse() as answer:
        told = answer.read()
    assert answer.status == 200, told
    return bool(json.loads(told)["duplicate"])


def test_two_processes_on_one_sqlite_file_count_everything_once_and_add_up_what_they_tell(tmp_path: Path) -> None:
    with serving(tmp_path, f"sqlite:///{tmp_path}/hubbub.db", workers=2) as served:
        wait_until(lambda: counted(served).get("hubbub_ready") == 2)
        with sending(Oracle(), served.url, again_every=4) as senders:
            senders.wait_for(acknowledged=1000)
            senders.finish_and_verify(served)
        reports = senders.acknowledged * REPORTS
        wait_until(lambda: counted(served, outcome="accepted").get("hubbub_reports_total") == reports)
        assert counted(served, outcome="accepted")["hubbub_batches_total"] == senders.acknowledged
        wait_until(lambda: counted(served, outcome="duplicate").get("hubbub_batches_total") == senders.repeated)
        shares = [accepted_by_one(file) for file in tmp_path.glob("*/counter_*.db")]
        assert len(shares) == 2
        assert min(shares) > 0, "one process had all the work"
        assert sum(shares) == senders.acknowledged
        assert served.stop() == 0
        assert not list(tmp_path.glob("*/counter_*.db"))


def test_one_of_two_processes_dies_under_load_and_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path, f"sqlite:///{tmp_path}/hubbub.db", workers=2) as served:
        wait_until(lambda: counted(served).get("hubbub_ready") == 2)
        before = served.workers()
        with sending(Oracle(), served.url) as senders:
            senders.wait_for(acknowledged=100)
            os.kill(before[0], signal.SIGKILL)
            senders.wait_for(acknowledged=100, cut=1)
            wait_until(lambda: len(set(served.workers()) - {before[0]}) == 2)
            wait_until(lambda: counted(served).get("hubbub_ready") == 2)
            senders.finish_and_verify(served)
        assert served.stop() == 0
