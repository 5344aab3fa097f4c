"""What SQLite and PostgreSQL do differently: connecting, locking, and claiming a shard."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy
from sqlalchemy import event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolEmptyError

from hubbub.collector.errors import StoreAddressError, StoreConflictError, StoreRefusedError, StoreUnavailableError
from hubbub.shared.sqlite import execute_patiently, use_write_ahead_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import URL, Connection, Engine

ALLOWED = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
BUSY_SECONDS = 5.0
"""How long a writer of SQLite waits for another one."""

CHECKPOINT_PAGES = 4000
"""After so many pages SQLite copies its log into the database: seldom, because ids of batches touch pages at random."""

CONNECT_SECONDS = 5
CONNECTIONS = 7
"""The most that one process has to PostgreSQL: one that commits, six for housekeeping, archive and those who read."""

CONNECTION_SECONDS = 5.0
"""How long somebody waits until one of these is free."""

ATTEMPTS = 4
"""How often a commit is tried that PostgreSQL undoes in favour of somebody else's."""

FIRST_PAUSE_SECONDS = 0.02
"""Before the second attempt; twice as long before each further one."""

T = TypeVar("T")
logger = logging.getLogger("hubbub.collector")

_QUIET: dict[str, Any] = {"hide_parameters": True}  # an error message never holds what was to be stored
_BEGIN = "BEGIN IMMEDIATE"
_LOCKS = 0x68756262  # "hubb": the space of PostgreSQL's advisory locks that is ours
_HORIZON = 0x6F72697A
_MIGRATING = 0x6D696772
_SESSION = "hubbub_session"
_WRITES = "hubbub_writes"
_LOOK_AT_SESSION = text("""
    SELECT pg_backend_pid(), EXISTS (
        SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = :space AND pid = pg_backend_pid()
    )
""")
_SHARED_SESSION = (
    "store: several connections share one session of PostgreSQL, so that no shard can be claimed; "
    "allowed: a direct connection, or a pooler in session mode"
)
_CONFLICTS = frozenset({"40001", "40P01"})  # serialization failure, deadlock


def connect(address: str) -> Engine:
    """Make an engine for a store's address; nothing is connected yet."""
    try:
        url = make_url(address)
    except ArgumentError:
        raise StoreAddressError(f"store: the address cannot be read; allowed: {ALLOWED}") from None
    backend = url.get_backend_name()
    if backend == "sqlite":
        return _sqlite(url)
    if backend in {"postgresql", "postgres"}:
        return _postgresql(url)
    raise StoreAddressError(f'store: "{backend}" is not a kind of store; allowed: {ALLOWED}')


@contextmanager
def reaching() -> Iterator[None]:
    """Turn whatever a database says into our own error, with its first line and nothing of the statement."""
    try:
        yield
    except PoolEmptyError as error:
        raise StoreUnavailableError(
            f"store: all {CONNECTIONS} connections of this process have been in use for {CONNECTION_SECONDS:g} s"
        ) from error
    except (DBAPIError, sqlite3.Error) as error:
        said = error.orig if isinstance(error, DBAPIError) else error
        told = str(said).strip().splitlines() or [type(said).__name__]
        conflict = getattr(said, "sqlstate", None) in _CONFLICTS
        raise (StoreConflictError if conflict else StoreUnavailableError)(f"store: {told[0]}") from error


def settle(attempt: Callable[[], T]) -> T:
    """Do it again if PostgreSQL has undone it in favour of somebody else's transaction, a few times.

    That is safe where a timeout or a lost connection would not be: of what it undoes so, nothing is kept.
    """
    pause = FIRST_PAUSE_SECONDS
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except StoreConflictError as error:
            logger.warning("%s; nothing of it was kept, trying again", error)
        time.sleep(pause)
        pause *= 2
    return attempt()


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that will write: on SQLite it is the only one from its first moment on."""
    with reaching(), engine.connect().execution_options(hubbub_writes=True) as connection, connection.begin():
        yield connection


def execute_plainly(connection: Connection, statement: str, parameters: tuple[Any, ...] = ()) -> Any:
    """Execute a statement as the driver wants it spelled, and give something with `rowcount` and `fetchone`.

    For what is done with every commit: SQLAlchemy takes as long to hand a statement on as SQLite does to execute it.
    """
    if connection.dialect.name == "sqlite":
        return connection.connection.driver_connection.execute(statement, parameters)  # type: ignore[union-attr]
    return connection.exec_driver_sql(statement, parameters)


def lock_migrations(connection: Connection) -> None:
    """Keep everybody else from migrating until the end of this transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCKS}, {_MIGRATING})"))


def lock_horizon(connection: Connection, *, to_move_it: bool) -> None:
    """Hold the horizon still until the end of this transaction; or, to move it, wait until nobody holds it."""
    if connection.dialect.name == "postgresql":
        shared = "" if to_move_it else "_shared"
        lock = text(f"SELECT pg_backend_pid(), pg_advisory_xact_lock{shared}({_LOCKS}, {_HORIZON})")
        _check_session(connection, connection.scalar(lock))


def claim_shard(connection: Connection) -> int:
    """Take a shard that nobody else writes to, for as long as this connection lives.

    SQLite has one writer at a time anyway, so there all share the first.
    """
    if connection.dialect.name == "sqlite":
        return 0
    session, shared = connection.execute(_LOOK_AT_SESSION, {"space": _LOCKS}).one()
    if shared:
        raise StoreRefusedError(_SHARED_SESSION)
    connection.info[_SESSION] = session
    shard = 0
    while not connection.scalar(text("SELECT pg_try_advisory_lock(:space, :shard)"), {"space": _LOCKS, "shard": shard}):
        shard += 1
    return shard


def _check_session(connection: Connection, session: int | None) -> None:
    """Refuse to go on where a claim is no longer ours: it is the session's, and this is another one.

    Two that write to one shard would each overwrite what the other has counted. So a claim is made only in a session
    that has none yet, and nothing is written under it in any other session.
    """
    if connection.info.get(_SESSION, session) != session:
        raise StoreRefusedError(_SHARED_SESSION)


def change_counter(connection: Connection) -> int | None:
    """Give a number that changes whenever anybody else has written; None where there is no such number.

    There nobody else writes to a shard, so that only what all share has to be read again.
    """
    if connection.dialect.name == "sqlite":
        return int(execute_plainly(connection, "PRAGMA data_version").fetchone()[0])
    return None


def file_of(engine: Engine) -> tuple[int, int] | None:
    """Tell which file an SQLite store is, by more than its name; None for what is not a file."""
    if engine.dialect.name != "sqlite":
        return None
    try:
        found = Path(engine.url.database or "").stat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _sqlite(url: URL) -> Engine:
    if not url.database or url.database == ":memory:" or url.query:
        raise StoreAddressError(f"store: names no file; allowed: {ALLOWED}")
    path = Path(url.database).expanduser()
    engine = sqlalchemy.create_engine(url.set(database=str(path)), connect_args={"timeout": BUSY_SECONDS}, **_QUIET)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, below
        # FULL: a commit is on the disk when it returns. WAL: those who read do not wait, and nobody waits for them.
        connection.execute("PRAGMA synchronous = FULL")
        use_write_ahead_log(connection, BUSY_SECONDS)
        # What a statement may have to undo stays in memory: a file for it would be made and deleted by every commit.
        connection.execute("PRAGMA temp_store = MEMORY").close()
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("hubbub_writes", False)
        if connection.info.get(_WRITES, False) != writes:
            # Who writes asks for the file by itself, fairly, and nobody is in its way once it has it.
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {0 if writes else 1000 * BUSY_SECONDS:.0f}")
            connection.info[_WRITES] = writes
        if not writes:
            connection.exec_driver_sql("BEGIN")
            return
        try:
            execute_patiently(connection.connection.driver_connection, _BEGIN, BUSY_SECONDS)  # type: ignore[arg-type]
        except sqlite3.OperationalError:
            connection.exec_driver_sql(_BEGIN)  # once more, so that SQLAlchemy tells what is wrong

    return engine


def _postgresql(url: URL) -> Engine:
    options: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        # A server that vanished without a word is noticed within seconds.
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "application_name": "hubbub",
    }
    url = url.set(drivername="postgresql+psycopg")
    try:
        engine = sqlalchemy.create_engine(
            url,
            connect_args=options | dict(url.query),
            # Whatever the server's default: who waits for a lock has to see what was committed meanwhile.
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            pool_size=CONNECTIONS,
            max_overflow=0,
            pool_timeout=CONNECTION_SECONDS,
            **_QUIET,
        )
    except ModuleNotFoundError:
        raise StoreAddressError('store: PostgreSQL needs psycopg: pip install "hubbub[postgres]"') from None

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            if cursor.fetchone() == ("off",):
                # What is acknowledged has to be on the disk, whatever the server's default.
                cursor.execute("SET synchronous_commit = on")
        connection.commit()

    return engine
