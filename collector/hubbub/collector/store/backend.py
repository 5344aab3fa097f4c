"""What SQLite and PostgreSQL do differently: connecting, locking, and claiming a shard."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from hubbub.collector.errors import StoreAddressError, StoreUnavailableError
from hubbub.shared.sqlite import use_write_ahead_log

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from sqlalchemy import URL, Connection, Engine

ALLOWED = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
BUSY_SECONDS = 5.0
"""How long a writer of SQLite waits for another one."""

CHECKPOINT_PAGES = 4000
"""After so many pages SQLite copies its log into the database: seldom, because ids of batches touch pages at random."""

CONNECT_SECONDS = 5

_QUIET: dict[str, Any] = {"hide_parameters": True}  # an error message never holds what was to be stored
_LOCKS = 0x68756262  # "hubb": the space of PostgreSQL's advisory locks that is ours
_HORIZON = 0x6F72697A
_MIGRATING = 0x6D696772


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
    except DBAPIError as error:
        told = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        raise StoreUnavailableError(f"store: {told[0]}") from error


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that will write: on SQLite it is the only one from its first moment on."""
    with reaching(), engine.connect().execution_options(hubbub_writes=True) as connection, connection.begin():
        yield connection


def lock_migrations(connection: Connection) -> None:
    """Keep everybody else from migrating until the end of this transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCKS}, {_MIGRATING})"))


def lock_horizon(connection: Connection, *, to_move_it: bool) -> None:
    """Hold the horizon still until the end of this transaction; or, to move it, wait until nobody holds it."""
    if connection.dialect.name == "postgresql":
        shared = "" if to_move_it else "_shared"
        connection.execute(text(f"SELECT pg_advisory_xact_lock{shared}({_LOCKS}, {_HORIZON})"))


def claim_shard(connection: Connection) -> int:
    """Take a shard that nobody else writes to, for as long as this connection lives.

    SQLite has one writer at a time anyway, so there all share the first.
    """
    if connection.dialect.name == "sqlite":
        return 0
    shard = 0
    while not connection.scalar(text("SELECT pg_try_advisory_lock(:space, :shard)"), {"space": _LOCKS, "shard": shard}):
        shard += 1
    return shard


def change_counter(connection: Connection) -> int | None:
    """Give a number that changes whenever anybody else has written; None where there is no such number.

    There nobody else writes to a shard, so that only what all share has to be read again.
    """
    if connection.dialect.name == "sqlite":
        return int(connection.exec_driver_sql("PRAGMA data_version").scalar_one())
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
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

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
        engine = sqlalchemy.create_engine(url, connect_args=options | dict(url.query), pool_pre_ping=True, **_QUIET)
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
