"""Looking for damage: what a database can check itself, and what only hubbub knows of its tables."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from sqlalchemy import func, select

from hubbub.collector.candidates import unpack
from hubbub.collector.store.copying import reading
from hubbub.collector.store.migrations import check_version
from hubbub.collector.store.schema import batch, candidate_chunk, candidate_list, horizon, metric, tally
from hubbub.collector.store.shard import COUNTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Row

    from hubbub.collector.store import Store

STEP = 1000
ID_BYTES = 16


def find_faults(store: Store) -> Iterator[str]:
    """Tell everything that is wrong with a store; nothing, if all is well."""
    with reading(store.engine) as connection:
        check_version(connection)
        yield from _database(connection)
        yield from _tallies(connection)
        yield from _batches(connection)
        yield from _candidates(connection)


def _database(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for told in connection.exec_driver_sql("PRAGMA integrity_check").scalars():
            if told != "ok":
                yield f"database: {told}"
    if connection.scalar(select(func.count()).select_from(horizon)) != 1:
        yield "horizon: does not have just one row"


def _tallies(connection: Connection) -> Iterator[str]:
    shapes = {(row.name, row.version): (row.bits, row.cohorts) for row in connection.execute(select(metric))}
    for row in connection.execute(select(tally).execution_options(yield_per=STEP)):
        fault = _tally_fault(row, shapes.get((row.metric, row.version)))
        if fault:
            place = f"{row.metric} version {row.version}, {row.period}, cohort {row.cohort}, shard {row.shard}"
            yield f"tally of {place}: {fault}"


def _tally_fault(row: Row[tuple[object, ...]], shape: tuple[int, int] | None) -> str | None:
    if shape is None:
        return "its metric is not known"
    bits, cohorts = shape
    if not 0 <= row.cohort < cohorts:
        return f"there are only {cohorts} cohorts"
    if len(row.counts) != bits * COUNTS.itemsize:
        return f"has {len(row.counts)} bytes of counts, and not {bits * COUNTS.itemsize}"
    counts = np.frombuffer(row.counts, COUNTS)
    if row.n < 1 or counts.min() < 0 or counts.max() > row.n:
        return f"a bit was set more often than there are reports, {row.n}, or less than never"
    return None


def _batches(connection: Connection) -> Iterator[str]:
    wrong = connection.scalar(select(func.count()).select_from(batch).where(func.length(batch.c.id) != ID_BYTES))
    if wrong:
        yield f"batch: {wrong} ids do not have {ID_BYTES} bytes"


def _candidates(connection: Connection) -> Iterator[str]:
    for listed in connection.execute(select(candidate_list)).all():
        query = select(candidate_chunk.c.strings).where(candidate_chunk.c.metric == listed.metric)
        try:
            strings = sum(len(part) for part in unpack(map(bytes, connection.scalars(query))))
        except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError):
            yield f"candidates of {listed.metric}: cannot be read"
            continue
        if strings != listed.strings:
            yield f"candidates of {listed.metric}: {strings} are there, and not {listed.strings}"
