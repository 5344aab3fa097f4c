"""Connections to PostgreSQL: how many there are, and what becomes of a commit when the database, or what is between,
does not do as usual."""

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import make_url, update

from collector.oracle import METRIC, REGISTRY, Oracle
from collector.postgres import Postgres
from collector.senders import HANG_SECONDS
from collector.served import Served
from collector.stores import judged, verify
from docs.pages import page
from hubbub.collector.errors import StoreConflictError, StoreRefusedError, StoreUnavailableError
from hubbub.collector.store import Store, backend
from hubbub.collector.store.backend import ATTEMPTS, CONNECTIONS, lock_horizon, writing
from hubbub.collector.store.parts import Parts
from hubbub.collector.store.schema import horizon
from hubbub.collector.store.shard import Shard

UNDO = """
    CREATE SEQUENCE attempt;
    CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('attempt') <= {times} THEN RAISE EXCEPTION 'could not serialize' USING ERRCODE = '{code}'; END IF;
        RETURN NULL;
    END $$;
    CREATE {trigger} EXECUTE FUNCTION undo();
"""
"""Sequences are not rolled back, so this counts attempts."""

AT_STATEMENT = "TRIGGER undo AFTER INSERT OR UPDATE ON tally FOR EACH STATEMENT"
AT_COMMIT = "CONSTRAINT TRIGGER undo AFTER INSERT OR UPDATE ON tally DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture
def address(postgres: Postgres) -> str:
    """The address of an empty database."""
    return postgres.database(f"t{uuid.uuid4().hex}")


@pytest.fixture
def shard(ready: Store) -> Iterator[Shard]:
    with contextlib.closing(ready.shard(REGISTRY)) as opened:
        yield opened


@pytest.fixture
def other(ready: Store, address: str) -> Iterator[psycopg.Connection]:
    """Somebody else's session."""
    with psycopg.connect(address) as connection:
        yield connection


def commit(shard: Shard, oracle: Oracle) -> None:
    """Commit a batch that is new, and note that it was acknowledged."""
    body, slots = oracle.batch()
    assert shard.commit([judged(body)]) == [True]
    oracle.acknowledge(slots)


def wait_until_somebody_waits(address: str) -> None:
    """Ask PostgreSQL until one of its sessions waits for a lock; it has no event for that."""
    deadline = time.monotonic() + HANG_SECONDS
    with psycopg.connect(address, autocommit=True) as watching:
        while watching.execute(WAITING).fetchone() == (0,):
            assert time.monotonic() < deadline
            time.sleep(0.01)


@contextlib.contextmanager
def meanwhile(call: Callable[[], object]) -> Iterator[Future[object]]:
    """Do something in another thread."""
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(call)


@pytest.mark.parametrize("trigger", [AT_STATEMENT, AT_COMMIT], ids=["at a statement", "at the commit"])
@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_what_the_database_undoes_is_tried_again_and_counts_once(
    ready: Store, shard: Shard, other: psycopg.Connection, trigger: str, code: str
) -> None:
    oracle = Oracle()
    full: list[str] = []
    shard.keep(Parts(4, full.append))
    commit(shard, oracle)  # so that there is something to remember wrongly
    other.execute(UNDO.format(times=ATTEMPTS - 1, code=code, trigger=trigger).encode())
    other.commit()
    commit(shard, oracle)
    commit(shard, oracle)
    verify(ready, oracle)
    # Three days, and a file for each that has three reports by now: not enough to be full.
    assert other.execute("SELECT count(DISTINCT file), sum(n) FROM archive_part").fetchone() == (3, 9)
    assert other.execute("SELECT count(*) FROM archive_file").fetchone() == (3,)
    assert full == []


def test_what_the_database_undoes_again_and_again_is_refused_and_not_counted(
    ready: Store, shard: Shard, other: psycopg.Connection
) -> None:
    other.execute(UNDO.format(times=ATTEMPTS, code="40001", trigger=AT_STATEMENT).encode())
    other.commit()
    with pytest.raises(StoreConflictError, match="could not serialize"):
        shard.commit([judged(Oracle().batch()[0])])
    assert ready.tally(METRIC).n.sum() == 0


def test_other_errors_are_not_tried_again(ready: Store, shard: Shard, other: psycopg.Connection) -> None:
    other.execute(UNDO.format(times=1, code="53100", trigger=AT_STATEMENT).encode())  # disk full
    other.commit()
    with pytest.raises(StoreUnavailableError, match="could not serialize"):
        shard.commit([judged(Oracle().batch()[0])])
    assert other.execute("SELECT last_value FROM attempt").fetchone() == (1,)


def test_a_commit_that_is_the_victim_of_a_deadlock_is_tried_again(
    ready: Store, shard: Shard, other: psycopg.Connection, address: str
) -> None:
    oracle = Oracle()
    commit(shard, oracle)
    # The one that finds a deadlock is its victim, and each looks only once: it has to be the shard.
    other.execute("SET deadlock_timeout = '60s'")
    other.execute("LOCK TABLE tally IN ACCESS EXCLUSIVE MODE")
    with meanwhile(lambda: commit(shard, oracle)) as committed:
        wait_until_somebody_waits(address)  # the shard, which has put ids into the other table
        other.execute("LOCK TABLE batch IN ACCESS EXCLUSIVE MODE")  # given as soon as the shard's commit is undone
        other.rollback()
        committed.result(HANG_SECONDS)
    verify(ready, oracle)


@pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
def test_whatever_the_isolation_of_the_server_who_waits_sees_what_was_committed_meanwhile(
    postgres: Postgres, isolation: str
) -> None:
    with isolated(postgres, isolation) as store, contextlib.closing(store.shard(REGISTRY)) as shard:
        oracle = Oracle()
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(writing(store.engine))
            lock_horizon(connection, to_move_it=True)
            batch = judged(oracle.batch()[0])
            committed = stack.enter_context(meanwhile(lambda: shard.commit([batch])))
            wait_until_somebody_waits(store.address.replace("+psycopg", ""))
            connection.execute(update(horizon).values(day=oracle.latest + timedelta(days=1)))
            connection.commit()
            assert committed.result(HANG_SECONDS) == [False]
        assert [each.reason for each in batch.rejected] == ["too_old"] * 3
        assert store.tally(METRIC).n.sum() == 0


def test_replicas_on_a_serializable_server_count_the_same_batches_once(postgres: Postgres) -> None:
    with isolated(postgres, "serializable") as store, contextlib.ExitStack() as stack:
        oracle = Oracle()
        shards = [stack.enter_context(contextlib.closing(store.shard(REGISTRY))) for _ in range(3)]
        threads = stack.enter_context(ThreadPoolExecutor(len(shards)))
        together = threading.Barrier(len(shards))

        def commit_all(shard: Shard, bodies: list[bytes]) -> list[bool]:
            batches = [judged(body) for body in bodies]
            together.wait(HANG_SECONDS)
            return shard.commit(batches)

        for _ in range(20):
            bodies, slots = zip(*(oracle.batch() for _ in range(10)), strict=True)
            asked = [threads.submit(commit_all, shard, list(bodies)) for shard in shards]
            told = [each.result(HANG_SECONDS) for each in asked]
            assert [sum(new) for new in zip(*told, strict=True)] == [1] * 10
            for each in slots:
                oracle.acknowledge(each)
        verify(store, oracle)


@contextlib.contextmanager
def isolated(server: Postgres, isolation: str) -> Iterator[Store]:
    """A store on a database whose transactions are isolated in another way than PostgreSQL's usual one."""
    name = f"t{uuid.uuid4().hex}"
    address = server.database(name)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'")
    with contextlib.closing(Store(address)) as store:
        store.prepare(REGISTRY)
        yield store


def test_two_writers_in_one_session_cannot_both_claim_a_shard(ready: Store) -> None:
    """A pooler in transaction mode does that: both would have the same shard, and each undo what the other counts."""
    engine = sqlalchemy.create_engine(ready.engine.url, poolclass=sqlalchemy.StaticPool)
    first = Shard(engine, REGISTRY)
    with pytest.raises(StoreRefusedError, match="pooler in session mode"):
        Shard(engine, REGISTRY)
    first.close()


def test_nothing_is_written_in_another_session_than_the_one_that_claimed_the_shard(
    ready: Store, shard: Shard, other: psycopg.Connection
) -> None:
    oracle = Oracle()
    commit(shard, oracle)
    under: Any = shard._connection.connection
    own, under.dbapi_connection = under.dbapi_connection, other  # what a pooler does
    with pytest.raises(StoreRefusedError, match="pooler in session mode"):
        shard.commit([judged(oracle.batch()[0])])
    under.dbapi_connection = own
    verify(ready, oracle)
    assert ready.tally(METRIC).n.sum() == 3


def test_who_finds_all_connections_in_use_is_told_so(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "CONNECTION_SECONDS", 0.1)
    with contextlib.closing(Store(address)) as store:
        store.prepare(REGISTRY)
        with contextlib.ExitStack() as stack:
            for _ in range(CONNECTIONS):
                stack.enter_context(store.engine.connect())
            with pytest.raises(StoreUnavailableError, match=f"all {CONNECTIONS} connections of this process"):
                store.ping()
        store.ping()


def test_a_server_with_too_few_connections_is_waited_for_and_the_promised_number_is_enough(
    tmp_path: Path, postgres: Postgres
) -> None:
    oracle = Oracle()
    with limited(postgres) as (address, allow):
        served = Served(tmp_path, address, threads=32)
        try:
            served.start(wait=False)
            served.wait_until_alive()
            body, slots = oracle.batch()
            assert served.post(body).json()["code"] == "store_down"
            assert "too many connections" in served.log.read_text()
            allow(1)
            wait_until_taken(served, body)
            oracle.acknowledge(slots)
            # Batches go first: the only connection is the writer's.
            refused = served.get("/v1/metrics")
            assert (refused.status_code, refused.json()["code"]) == (503, "store_down")
            body, slots = oracle.batch()
            assert served.post(body).status_code == 200
            oracle.acknowledge(slots)
            allow(CONNECTIONS)
            with ThreadPoolExecutor(32) as readers:
                answers = list(readers.map(lambda _: served.get("/v1/metrics/oracle/tally").status_code, range(64)))
            assert answers == [200] * 64
            oracle.verify(served.tallies(oracle))
        finally:
            served.kill()
        assert "Traceback" not in served.log.read_text()


def test_the_guide_has_the_numbers_of_the_code() -> None:
    guide = " ".join(page("docs/replicas.md").split())
    for words in (
        f"has at most {CONNECTIONS} connections to PostgreSQL",
        f"max_connections >= {CONNECTIONS} x replicas x workers",
        f"up to {backend.CONNECTION_SECONDS:g} s, and after that answers 503",
        f"up to {ATTEMPTS} times in all",
    ):
        assert words in guide


@contextlib.contextmanager
def limited(server: Postgres) -> Iterator[tuple[str, Callable[[int], None]]]:
    """A database of somebody who has no connection yet, and a way to allow some: superusers always have one."""
    name = f"t{uuid.uuid4().hex}"
    address = server.database(name)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 0")
        connection.execute(f"ALTER DATABASE {name} OWNER TO {name}")

        def allow(connections: int) -> None:
            connection.execute(f"ALTER ROLE {name} CONNECTION LIMIT {connections}")

        yield make_url(address).set(username=name).render_as_string(), allow


def wait_until_taken(served: Served, body: bytes) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while (answer := served.post(body)).status_code == 503:
        assert time.monotonic() < deadline, served.log.read_text()
        time.sleep(0.05)
    assert answer.json() == {"accepted": 3, "duplicate": False, "rejected": []}
