"""A store that is down, locked, full or not ours: batches are refused and none is lost, and it goes on by itself."""

import contextlib
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import requests

from collector.oracle import REGISTRY, TEXT, Oracle
from collector.postgres import Postgres
from collector.senders import HANG_SECONDS, sending
from collector.served import Served, serving
from hubbub.collector.store import Store

READ_ROUTES = ("/readyz", "/v1/metrics", "/v1/metrics/oracle/tally", "/v1/metrics/oracle/candidates")
OTHER_MEANING = TEXT.replace("hashes = 1", "hashes = 2")
NEXT_VERSION = OTHER_MEANING.replace("[metrics.oracle]", "[metrics.oracle]\nversion = 2")


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that nobody else needs, and that may be down."""
    server = Postgres()
    yield server
    server.stop()


@contextlib.contextmanager
def down(server: Postgres) -> Iterator[None]:
    server.kill()
    try:
        yield
    finally:
        server.start()


def assert_refuses(answer: requests.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "store_down"
    assert int(answer.headers["Retry-After"]) > 0


def assert_counts(served: Served, oracle: Oracle, body: bytes, slots: list[int]) -> None:
    """A batch that was refused before is taken now, or was taken after all; either way it counts once."""
    answer = served.post(body)
    assert answer.status_code == 200, answer.text
    oracle.acknowledge(slots)
    oracle.verify(served.tallies(oracle))


def test_a_database_that_is_down_at_the_start_is_waited_for(tmp_path: Path, own_postgres: Postgres) -> None:
    oracle = Oracle()
    body, slots = oracle.batch()
    served = Served(tmp_path, own_postgres.database("at_start"))
    try:
        with down(own_postgres):
            served.start(wait=False)
            served.wait_until_alive()
            assert served.get("/livez").status_code == 200
            assert_refuses(served.post(body))
            for route in READ_ROUTES:
                assert_refuses(served.get(route))
        served.wait_until_ready()
        assert served.post(body).json() == {"accepted": 3, "duplicate": False, "rejected": []}
        assert_counts(served, oracle, body, slots)
    finally:
        served.kill()


def test_a_database_that_goes_down_and_comes_back_is_used_again(tmp_path: Path, own_postgres: Postgres) -> None:
    oracle = Oracle()
    with serving(tmp_path, own_postgres.database("later")) as served:
        assert_counts(served, oracle, *oracle.batch())
        body, slots = oracle.batch()
        with down(own_postgres):
            assert_refuses(served.post(body))
            for route in READ_ROUTES:
                assert_refuses(served.get(route))
            assert served.get("/livez").status_code == 200
        served.wait_until_ready()
        assert_counts(served, oracle, body, slots)


def test_a_file_that_another_program_keeps_locked_is_waited_for(tmp_path: Path) -> None:
    oracle = Oracle()
    file = tmp_path / "hubbub.db"
    with serving(tmp_path, f"sqlite:///{file}") as served:
        assert_counts(served, oracle, *oracle.batch())
        body, slots = oracle.batch()
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert_refuses(served.post(body))  # after it has waited
            assert_refuses(served.get("/readyz"))
            assert_refuses(served.post(body))
            oracle.verify(served.tallies(oracle))  # those who read need no lock
            other.execute("ROLLBACK")
        served.wait_until_ready()
        assert_counts(served, oracle, body, slots)


def test_a_full_disk_loses_nothing_and_is_used_again_once_there_is_room(tmp_path: Path) -> None:
    file = tmp_path / "hubbub.db"
    with serving(tmp_path, f"sqlite:///{file}") as served, sending(Oracle(), served.url) as senders:
        senders.wait_for(acknowledged=100)
        [worker] = served.workers()
        # No file may grow past this, which to a program is much the same as a full disk.
        room = max(each.stat().st_size for each in (file, file.with_name("hubbub.db-wal"))) + 100_000
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        senders.wait_for(refused=100)
        assert served.get("/livez").status_code == 200
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        senders.wait_for(acknowledged=100)
        assert senders.cut == 0
        senders.finish_and_verify(served)
        assert served.workers() == [worker]


def assert_does_not_start(served: Served) -> str:
    """Give what it says."""
    try:
        served.start(wait=False)
        assert served.process.wait(HANG_SECONDS) == 1
    finally:
        served.kill()
    log = served.log.read_text()
    assert "Traceback" not in log
    return log


def prepare(address: str) -> None:
    """Make a store that has seen the oracle's metric."""
    store = Store(address)
    store.prepare(REGISTRY)
    store.close()


def test_a_metric_that_means_something_else_under_the_same_version_is_refused(tmp_path: Path, address: str) -> None:
    prepare(address)
    told = assert_does_not_start(Served(tmp_path, address, OTHER_MEANING))
    assert 'metric "oracle": version 1 has another meaning' in told
    assert "a version above 1" in told


def test_a_metric_that_means_something_else_under_another_version_is_served(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/hubbub.db"
    prepare(address)
    with serving(tmp_path, address, registry=NEXT_VERSION) as served:
        assert served.get("/v1/metrics").json()[0]["version"] == 2


def test_a_metric_that_turns_out_to_mean_something_else_is_never_counted(
    tmp_path: Path, own_postgres: Postgres
) -> None:
    address = own_postgres.database("other_meaning")
    prepare(address)
    served = Served(tmp_path, address, OTHER_MEANING)
    try:
        with down(own_postgres):
            served.start(wait=False)
            served.wait_until_alive()
        served.wait_for_log('CRITICAL metric "oracle": version 1 has another meaning')
        assert_refuses(served.get("/readyz"))
        assert_refuses(served.post(Oracle().batch()[0]))
    finally:
        served.kill()


def test_a_store_of_a_newer_release_is_refused(tmp_path: Path, address: str) -> None:
    prepare(address)
    newer = "INSERT INTO migration (number) VALUES (999)"
    if address.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(tmp_path / "hubbub.db")) as connection:
            connection.execute(newer)
            connection.commit()
    else:
        with psycopg.connect(address) as session:
            session.execute(newer)
    told = assert_does_not_start(Served(tmp_path, address))
    assert "schema of a newer hubbub (migration 999)" in told
