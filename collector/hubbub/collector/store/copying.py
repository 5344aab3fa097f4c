"""Copying a store while it is in use: everything of one moment, into a new SQLite file or an empty store."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, select

from hubbub.collector.errors import StoreError, StoreRefusedError
from hubbub.collector.store.backend import lock_migrations, reaching, writing
from hubbub.collector.store.migrations import check_version, migrate
from hubbub.collector.store.schema import metadata, migration
from hubbub.collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Connection, Engine

STEP = 1000
TABLES = [table for table in metadata.sorted_tables if table is not migration]


def back_up(store: Store, path: Path) -> int:
    """Write everything that is in a store at one moment to a new SQLite file, and tell how many rows that were."""
    if path.exists():
        raise StoreError(f"{path}: is there already; allowed: a new file")
    # Under another name until it is whole: what bears the name of a backup is one.
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    target = Store(f"sqlite:///{unfinished}")
    try:
        try:
            rows = copy(store, target)
        finally:
            target.close()  # with the last connection, SQLite's log becomes part of the file
        os.link(unfinished, path)  # unlike renaming, this never replaces a file
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        for leftover in unfinished.parent.glob(f"{unfinished.name}*"):
            leftover.unlink()
    return rows


def copy(source: Store, target: Store) -> int:
    """Copy all rows of a store into another one that has none, in one transaction, and tell how many."""
    rows = 0
    with reading(source.engine) as from_, writing(target.engine) as to:
        check_version(from_)
        lock_migrations(to)
        migrate(to)
        if any(to.scalar(select(func.count()).select_from(table)) for table in TABLES if table.name != "horizon"):
            raise StoreRefusedError(f"{target.address}: is not empty; allowed: a store with nothing in it")
        for table in TABLES:
            to.execute(delete(table))
            for part in from_.execute(select(table).execution_options(yield_per=STEP)).partitions():
                to.execute(insert(table), [row._asdict() for row in part])
                rows += len(part)
    return rows


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """See a store as it is at one moment, however long one looks."""
    isolation = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {}
    with reaching(), engine.connect().execution_options(**isolation) as connection, connection.begin():
        yield connection
