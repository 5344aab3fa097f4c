"""What the state file of a client and the store of a collector both need of SQLite."""

from __future__ import annotations

import sqlite3
import time

_PRIMARY = 0xFF
"""The part of an extended error code that names the kind of error."""

_PAUSE_SECONDS = 0.005


def use_write_ahead_log(connection: sqlite3.Connection, seconds: float) -> None:
    """Switch to the write-ahead log, waiting for others no longer than this.

    SQLite's own timeout does not hold here: whoever switches while another connection writes its first page is told
    "locked" at once. Without this, of several processes that open a new file together one may be turned away.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
