"""Several collectors on one store: whichever of them a batch reaches, and however often, it counts once.

`test_replica_kills.py` kills them.
"""

import contextlib
import json
import os
import random
import signal
import uuid
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path

import psycopg
import pytest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.parser import text_string_to_metric_families

from collector.balancer import balancing, replicas
from collector.oracle import Oracle
from collector.postgres import Postgres
from collector.senders import ANSWER_SECONDS, REPORTS, sending
from collector.served import Served, serving
from collector.sockets import connections
from collector.watched import wait_until
from docs.pages import page
from hubbub.collector.store import Store
from hubbub.collector.store.backend import lock_horizon, writing
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES

pytestmark = pytest.mark.unmeasured

SAME = 30
"""Batches that are sent to all replicas at the same moment."""

NEXT_RELEASE = """
from hubbub.collector.store.migrations import MIGRATIONS
MIGRATIONS[1000] = '''
    CREATE TABLE later (number INTEGER NOT NULL PRIMARY KEY);
    ALTER TABLE tally ADD COLUMN later TEXT;
    CREATE INDEX batch_by_period ON batch (period)
'''
from hubbub.shared.command_line import main; main()
"""
"""A collector with a migration that this one does not have. It locks tables in the order in which commits do not."""


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


def test_a_newer_replica_migrates_under_load_and_the_older_ones_go_on_until_they_have_to_connect_again(
    tmp_path: Path, postgres: Postgres
) -> None:
    store = postgres.database(f"t{uuid.uuid4().hex}")
    newer = Served(tmp_path, store, program=NEXT_RELEASE)
    with (
        replicas(tmp_path, store, number=1) as [older],
        balancing(older, newer) as balancer,
        sending(Oracle(), balancer.url, again_every=4) as senders,
        contextlib.ExitStack() as stack,
    ):
        senders.wait_for(acknowledged=100)
        stack.callback(newer.kill)
        newer.start()
        before = counted(older, outcome="accepted")["hubbub_batches_total"]
        senders.wait_for(acknowledged=200)
        wait_until(lambda: counted(older, outcome="accepted")["hubbub_batches_total"] > before)
        wait_until(lambda: counted(newer, outcome="accepted").get("hubbub_batches_total", 0) > 0)
        cut_off(store)
        older.wait_for_log("CRITICAL store: has the schema of a newer hubbub (migration 1000)")
        newer.wait_until_ready()
        senders.wait_for(acknowledged=200)  # by the newer one; what the older one refuses is sent again
        for answer in (older.get("/readyz"), older.post(Oracle().batch()[0])):
            assert (answer.status_code, answer.json()["code"]) == (503, "store_down")
        assert older.get("/livez").status_code == 200
        senders.finish_and_verify(newer)
        assert older.stop() == 0
        assert newer.stop() == 0


def test_the_example_for_nginx_keeps_nobodys_address_and_asks_another_replica() -> None:
    lines = {line.strip() for line in page("docs/examples/collector/nginx.conf").splitlines()}
    assert {"access_log off;", "error_log /dev/null crit;", 'proxy_set_header X-Forwarded-For "";'} <= lines
    assert not [line for line in lines if "_addr" in line or "add_x_forwarded_for" in line]
    assert "proxy_next_upstream error timeout http_502 http_503 non_idempotent;" in lines
    assert f"client_max_body_size {MAX_BATCH_BYTES >> 20}m;" in lines


def cut_off(store: str) -> None:
    """End all sessions of a database, as a restart of it would."""
    with psycopg.connect(store) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


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
    """The one with more connections dies: often the other one has none at all.

    A sender leaves a connection only if it breaks, or after a refusal, so each that the dead one had is seen to break.
    """
    with serving(tmp_path, f"sqlite:///{tmp_path}/hubbub.db", workers=2) as served:
        wait_until(lambda: counted(served).get("hubbub_ready") == 2)
        before = served.workers()
        with sending(Oracle(), served.url) as senders:
            senders.wait_for(acknowledged=100)
            broken, dying = max((connections(worker, served.port), worker) for worker in before)
            assert broken > 0
            os.kill(dying, signal.SIGKILL)
            senders.wait_for(acknowledged=100, cut=1)  # and what was cut off goes to the other one
            wait_until(lambda: len(set(served.workers()) - {dying}) == 2)
            wait_until(lambda: counted(served).get("hubbub_ready") == 2)
            senders.finish_and_verify(served)
        assert senders.cut + senders.refused >= broken
        assert len(set(served.workers()) & set(before)) == 1
        assert served.stop() == 0
