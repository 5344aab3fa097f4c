"""The state file: one SQLite database that holds all a device remembers.

The secret, what is being collected, what waits to be sent, and counts of everything. Several threads, processes and
forks may share it. What a transaction has written is on disk before it returns (write-ahead log, synchronous = FULL),
so it survives kill -9 and power loss. The file is 0600 from its first byte on.

True values are not in it, with one documented exception: numbers that a metric combines by `sum`, `max` or `mean` are
kept until their period ends. What is deleted is overwritten, and `scrub` empties the write-ahead log.

The file belongs to one collector, and to one device if the app names the device. It is not used for another.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.client.errors import CopiedStateError, SecretLostError, StateError
from hubbub.shared.secret import SECRET_BYTES, Secret
from hubbub.shared.sqlite import execute_patiently, use_write_ahead_log

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

SCHEMA_VERSION = 2
APPLICATION_ID = 0x68756262
"""Marks the file as ours: the letters "hubb"."""

DEVICE_BYTES = 16

BUSY_SECONDS = 10.0
"""How long a transaction waits for another process before it gives up."""

FORGET_SECONDS = 1.0
"""How long `forget` waits for other processes, to empty the log that holds the old secret."""

_PAUSE_SECONDS = 0.001

_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE open (
    metric TEXT NOT NULL, version INTEGER NOT NULL, period TEXT NOT NULL,
    day TEXT NOT NULL, due REAL NOT NULL, seen INTEGER NOT NULL,
    cohort INTEGER, bits BLOB, tag BLOB, number REAL,
    PRIMARY KEY (metric, version, period)
) WITHOUT ROWID;
CREATE TABLE done (
    metric TEXT NOT NULL, version INTEGER NOT NULL, period TEXT NOT NULL,
    PRIMARY KEY (metric, version, period)
) WITHOUT ROWID;
CREATE TABLE revealed (
    metric TEXT NOT NULL, version INTEGER NOT NULL, tag BLOB NOT NULL,
    PRIMARY KEY (metric, version, tag)
) WITHOUT ROWID;
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY, metric TEXT NOT NULL, version INTEGER NOT NULL, fingerprint BLOB NOT NULL,
    epsilon REAL NOT NULL, encodings NOT NULL, reports INTEGER NOT NULL DEFAULT 0, spent REAL NOT NULL DEFAULT 0,
    UNIQUE (metric, version)
);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, batch TEXT NOT NULL UNIQUE, body BLOB NOT NULL, reports INTEGER NOT NULL,
    created REAL NOT NULL, attempts INTEGER NOT NULL, not_before REAL NOT NULL,
    asked_until REAL NOT NULL, claimed_until REAL NOT NULL
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""

_states: weakref.WeakSet[State] = weakref.WeakSet()
_forking: list[State] = []
"""Those whose locks are held during a fork; the set may change meanwhile."""


class State:
    """A connection to the state file, opened again in every process that uses it.

    Args:
        path: The file.
        collector: The collector that the file belongs to; None to use the file of any collector without sending.
        previous: Earlier addresses of that collector.
        device: A name of this device, of which a keyed digest is stored; None to use the file of any device.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        collector: str | None = None,
        previous: Collection[str] = (),
        device: str | None = None,
    ) -> None:
        self._connection: sqlite3.Connection | None = None
        self.path = Path(path).expanduser()
        self._collector = None if collector is None else collector.rstrip("/")
        self._previous = frozenset(address.rstrip("/") for address in previous)
        self._device = device
        self._lock = threading.RLock()
        self._secret: Secret | None = None
        _states.add(self)

    @contextmanager
    def transaction(self, *, bound: bool = True) -> Iterator[sqlite3.Connection]:
        """Read and write as one: all of it is on disk afterwards, or none of it happened."""
        with self._lock:
            try:
                connection = self._connect()
                execute_patiently(connection, "BEGIN IMMEDIATE", BUSY_SECONDS)
                try:
                    if bound:
                        self._bind(connection)
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
            except (sqlite3.Error, OSError) as error:
                self._disconnect()
                raise StateError(
                    f"state {self.path}: {error}; allowed: a file of hubbub's that this user can write"
                ) from error

    def secret(self, connection: sqlite3.Connection | None = None) -> Secret:
        """Read the device's secret, in every transaction again, since another process may have called `forget`."""
        if connection is None:
            with self.transaction() as own:
                return self.secret(own)
        row = connection.execute("SELECT value FROM meta WHERE key = 'secret'").fetchone()
        if row is None or not isinstance(row[0], bytes) or len(row[0]) != SECRET_BYTES:
            raise SecretLostError(
                f"state {self.path}: the secret is missing or damaged; allowed: a file with its secret, or forget()"
            )
        if self._secret is None or self._secret.key != row[0]:
            self._secret = Secret(row[0])
        return self._secret

    def forget(self) -> None:
        """Delete the secret and everything drawn from it, and begin again with a new one, for this collector."""
        with self.transaction(bound=False) as connection:
            for table in ("open", "done", "revealed", "ledger", "outbox", "counter"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608  (names from the line above)
            connection.execute("DELETE FROM meta WHERE key IN ('collector', 'device')")
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('secret', ?)", (Secret.generate().key,))
            self._bind(connection)
        self.scrub(FORGET_SECONDS)

    def scrub(self, seconds: float = 0.0) -> None:
        """Move the write-ahead log into the file and empty it, so that nothing deleted stays in it.

        While another process uses the file, the log cannot be emptied. After this time the next call has to do it.
        """
        end = time.monotonic() + seconds
        with self._lock, contextlib.suppress(sqlite3.Error):
            while self._connection is not None:
                [busy, *_] = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy or time.monotonic() >= end:
                    return
                time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            self._disconnect()

    def __del__(self) -> None:
        # A client that an app lets go of without a word: Python would warn of the open file.
        self._disconnect()

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._make_file()
            connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                _prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self.scrub()  # a process that was killed may have left a log
        return self._connection

    def _bind(self, connection: sqlite3.Connection) -> None:
        """Check that the file belongs to this collector and this device, or make it so.

        In every transaction, since another process may have called `forget`.
        """
        if self._collector is not None:
            key = self._collector.encode()
            bound = _meta(connection, "collector")
            if bound is None or bound.decode() in self._previous:
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('collector', ?)", (key,))
            elif bound != key:
                raise StateError(
                    f"state {self.path}: belongs to another collector; use another file, or list the earlier address "
                    "of this collector in previous_collectors"
                )
        if self._device is not None:
            digest = self.secret(connection).stream(b"device\0" + self._device.encode())(DEVICE_BYTES)
            bound = _meta(connection, "device")
            if bound is None:
                connection.execute("INSERT INTO meta VALUES ('device', ?)", (digest,))
            elif bound != digest:
                raise CopiedStateError(
                    f"state {self.path}: was copied from another device; call forget() to begin with a new secret"
                )

    def _make_file(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            # Made by us, so that it has this mode before SQLite writes a byte; its side files take the mode over.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def before_fork(self) -> None:
        """Let go of the file while a process forks: SQLite's locks do not survive that, and both sides open it anew."""
        self._lock.acquire()
        self._disconnect()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Go on, with a lock of its own: the parent's belongs to a thread that is not here."""
        self._lock = threading.RLock()


def _meta(connection: sqlite3.Connection, key: str) -> bytes | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def _prepare(connection: sqlite3.Connection) -> None:
    """Check that the file is ours, or make it so."""
    use_write_ahead_log(connection, BUSY_SECONDS)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON").close()
    execute_patiently(connection, "BEGIN IMMEDIATE", BUSY_SECONDS)
    try:
        [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables:
            _check_ours(connection)
        else:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('secret', ?)", (Secret.generate().key,))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _check_ours(connection: sqlite3.Connection) -> None:
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise sqlite3.DatabaseError("is a database of another program")
    if version != SCHEMA_VERSION:
        raise sqlite3.DatabaseError(f"has schema version {version}, and this client knows {SCHEMA_VERSION}")


def count(connection: sqlite3.Connection, name: str, number: int = 1) -> None:
    """Add to a counter, as part of a transaction."""
    connection.execute(
        "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = n + excluded.n", (name, number)
    )


def _before_fork() -> None:
    _forking[:] = list(_states)
    for state in _forking:
        state.before_fork()


def _after_fork_in_parent() -> None:
    while _forking:
        _forking.pop().after_fork_in_parent()


def _after_fork_in_child() -> None:
    while _forking:
        _forking.pop().after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
