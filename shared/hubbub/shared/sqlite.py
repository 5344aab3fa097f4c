"""What the state file of a client and the store of a collector both need of SQLite: to wait for others, fairly."""

from __future__ import annotations

import sqlite3
import time

_PRIMARY = 0xFF
"""The part of an extended error code that names the kind of error."""

_PAUSE_SECONDS = 0.0005


def execute_patiently(connection: sqlite3.Connection, statement: str, seconds: float) -> None:
    """Execute a statement that needs the file for itself, waiting for others no longer than this.

    SQLite can wait too, but asks ever less often, so that whoever came last wins and whoever has waited longest may
    wait for ever; and for some statements, such as the switch to the write-ahead log, it does not wait at all. Here all
    ask equally often. The connection's own timeout has to be 0.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            connection.execute(statement).close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def use_write_ahead_log(connection: sqlite3.Connection, seconds: float) -> None:
    """Switch to the write-ahead log, in which those who read and the one who writes do not wait for each other."""
    execute_patiently(connection, "PRAGMA journal_mode = WAL", seconds)
