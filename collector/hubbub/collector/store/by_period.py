"""What there is of each period: how many reports, and their tallies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import func, select

from hubbub.collector.store.backend import reaching
from hubbub.collector.store.schema import tally as tallies
from hubbub.collector.store.shard import COUNTS
from hubbub.collector.store.store import rows_of
from hubbub.collector.tally import Tally

if TYPE_CHECKING:
    from datetime import date

    from hubbub.collector.store.store import Store
    from hubbub.shared.metric import Metric

Counted = dict["date", int]
"""Reports of each period, in order."""


def reports_by_period(store: Store, only: str | None = None) -> dict[tuple[str, int], Counted]:
    """Count the reports of each period, of all metrics and versions at once, or of one metric only."""
    columns = (tallies.c.metric, tallies.c.version, tallies.c.period)
    query = select(*columns, func.sum(tallies.c.n)).group_by(*columns).order_by(*columns)
    if only is not None:
        query = query.where(tallies.c.metric == only)
    found: dict[tuple[str, int], Counted] = {}
    with reaching(), store.engine.connect() as connection:
        for name, version, period, reports in connection.execute(query):
            found.setdefault((name, version), {})[period] = int(reports)
    return found


def tallies_by_period(store: Store, metric: Metric, start: date | None, end: date | None, most: int) -> list[Tally]:
    """Give the tallies of the last periods, in order."""
    mine = rows_of(metric, start, end)
    days = select(tallies.c.period).where(*mine).distinct().order_by(tallies.c.period.desc()).limit(most)
    found: dict[date, Tally] = {}
    with reaching(), store.engine.connect() as connection:
        periods = connection.scalars(days).all()
        if not periods:
            return []
        rows = select(tallies.c.period, tallies.c.cohort, tallies.c.n, tallies.c.counts).where(
            *mine, tallies.c.period >= periods[-1]
        )
        for period, cohort, n, counts in connection.execute(rows):
            tally = found.setdefault(period, Tally.empty(metric, period, period))
            tally.n[cohort] += n
            tally.counts[cohort] += np.frombuffer(counts, COUNTS)
    return [found[period] for period in sorted(found)]
