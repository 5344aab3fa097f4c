"""What there is of each period: how many reports, and their tallies."""

from __future__ import annotations

from collections import OrderedDict
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import func, select

from hubbub.collector.store.backend import reaching
from hubbub.collector.store.schema import tally as tallies
from hubbub.collector.store.shard import COUNTS
from hubbub.collector.store.store import rows_of
from hubbub.collector.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Collection

    from hubbub.collector.store.store import Store
    from hubbub.shared.metric import Metric

Counted = dict[date, int]
"""Reports of each period, in order. A period that has as many as before has the same tally as before."""

Key = tuple[str, str, date]
"""Of a tally that is kept: the store, the fingerprint of the metric, and the period."""

KEPT_BYTES = 64 << 20
"""Of tallies that are kept, so that only those are read again that have changed."""


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


def tallies_by_period(store: Store, metric: Metric, periods: Collection[date]) -> dict[date, Tally]:
    """Read the tallies of some periods; those without reports are left out."""
    found: dict[date, Tally] = {}
    if not periods:
        return found
    columns = (tallies.c.period, tallies.c.cohort, tallies.c.n, tallies.c.counts)
    # By the first and the last, which is a part of the key: a list of days could be longer than a query may be.
    query = select(*columns).where(*rows_of(metric, min(periods), max(periods)))
    wanted = set(periods)
    with reaching(), store.engine.connect() as connection:
        for period, cohort, n, counts in connection.execute(query):
            if period in wanted:
                tally = found.setdefault(period, Tally.empty(metric, period, period))
                tally.n[cohort] += n
                tally.counts[cohort] += np.frombuffer(counts, COUNTS)
    return found


class KeptTallies:
    """Tallies of periods, kept for as long as they hold as many reports as the store does.

    Reports are only ever added, so the number of them is the version of a tally. Most periods have ended long ago, and
    are read once. Not for several threads.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, Tally] = OrderedDict()
        self._bytes = 0

    def read(self, store: Store, metric: Metric, counted: Counted) -> dict[date, Tally]:
        """Give the tallies of periods with so many reports, in order; a newer one is right too."""
        home = (str(store.engine.url), metric.fingerprint)
        found = {day: self._kept.get((*home, day)) for day in sorted(counted)}
        stale = [day for day, tally in found.items() if tally is None or tally.reports != counted[day]]
        fresh = tallies_by_period(store, metric, stale)
        found |= {day: fresh.get(day) for day in stale}
        given = {day: tally for day, tally in found.items() if tally is not None}  # others were purged meanwhile
        for day, tally in given.items():
            self._keep((*home, day), tally)
        return given

    def _keep(self, key: Key, tally: Tally) -> None:
        before = self._kept.pop(key, None)
        self._bytes += tally.counts.nbytes - (0 if before is None else before.counts.nbytes)
        self._kept[key] = tally
        while self._bytes > KEPT_BYTES:
            self._bytes -= self._kept.popitem(last=False)[1].counts.nbytes
