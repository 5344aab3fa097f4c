"""Adding tallies that were counted elsewhere: by a simulation, or from an archive of reports.

Tallies hold no ids of batches: whoever adds the same one twice has it counted twice.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import select

from hubbub.collector.errors import StoreRefusedError
from hubbub.collector.store.backend import claim_shard, reaching
from hubbub.collector.store.bulk import put_tallies
from hubbub.collector.store.migrations import check_version
from hubbub.collector.store.schema import metric as metrics
from hubbub.collector.store.schema import tally as rows
from hubbub.collector.store.shard import COUNTS
from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date

    from sqlalchemy import Connection, Engine

    from hubbub.collector.store.bulk import TallyRow
    from hubbub.collector.tally import Tally

Shapes = dict[tuple[str, int], tuple[int, int]]
"""Cohorts and bits, by metric and version."""

MOST = np.iinfo(COUNTS).max


def add(engine: Engine, tallies: Iterable[Tally]) -> int:
    """Add tallies of one period each, all of them or none, and tell how many reports they hold.

    A collector may be counting meanwhile: what is added goes to a shard that nobody else writes to; on SQLite, where
    all write to one, the collector sees that somebody has.
    """
    kept = list(tallies)  # whatever it takes to make them, nobody has to wait for it
    with _shard(engine) as (connection, shard):
        check_version(connection)
        shapes: Shapes = {
            (row.name, row.version): (row.cohorts, row.bits) for row in connection.execute(select(metrics))
        }
        for tally in kept:
            _add(connection, shard, tally, _check(tally, shapes))
    return sum(tally.reports for tally in kept)


@contextmanager
def _shard(engine: Engine) -> Iterator[tuple[Connection, int]]:
    """Open a transaction with a shard of its own."""
    with reaching(), engine.connect().execution_options(hubbub_writes=True) as connection:
        try:
            with connection.begin():
                yield connection, claim_shard(connection)
        finally:
            # A claim lasts as long as its connection, so this one must not be used again.
            connection.invalidate()


def _check(tally: Tally, shapes: Shapes) -> date:
    """Refuse a tally that the store has no place for, and tell its period."""
    name = f"tally of {tally.metric} version {tally.version}"
    shape = shapes.get((tally.metric, tally.version))
    if shape is None:
        raise StoreRefusedError(f"{name}: the store does not know that metric; allowed: those it was prepared for")
    if tally.start is None or tally.start != tally.end:
        raise ParameterError(
            f"{name}: covers {tally.start} to {tally.end}; allowed: one period, which starts and ends it"
        )
    if tally.n.shape != shape[:1] or tally.counts.shape != shape:
        raise ParameterError(f"{name}: has counts of shape {tally.counts.shape}; allowed: {shape}")
    if (tally.n < 0).any() or (tally.counts < 0).any() or (tally.counts > tally.n[:, None]).any():
        raise ParameterError(f"{name}: holds counts that no reports make; allowed: from 0 to the cohort's reports")
    return tally.start


def _add(connection: Connection, shard: int, tally: Tally, period: date) -> None:
    n, counts = tally.n.astype(COUNTS), tally.counts.astype(COUNTS)
    query = select(rows.c.cohort, rows.c.n, rows.c.counts).where(
        rows.c.shard == shard,
        rows.c.metric == tally.metric,
        rows.c.version == tally.version,
        rows.c.period == period,
    )
    added = np.flatnonzero(tally.n).tolist()
    for cohort, there, ones in connection.execute(query):
        if there > MOST - n[cohort]:
            raise ParameterError(f"tally of {tally.metric}: is too much for cohort {cohort}; allowed: {MOST} reports")
        n[cohort] += there
        counts[cohort] += np.frombuffer(ones, COUNTS)
    kept: list[TallyRow] = [
        (tally.metric, tally.version, period, cohort, int(n[cohort]), counts[cohort].tobytes()) for cohort in added
    ]
    if kept:
        put_tallies(connection, shard, kept)
