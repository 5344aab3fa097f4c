"""The store: what is kept, and the questions that are asked of it."""

from __future__ import annotations

from datetime import date  # noqa: TC003  (msgspec reads the annotations)
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite

from hubbub.collector.errors import StoreRefusedError
from hubbub.collector.store.adding import add
from hubbub.collector.store.backend import connect, lock_migrations, reaching, writing
from hubbub.collector.store.migrations import check_version, migrate
from hubbub.collector.store.schema import metric as metrics
from hubbub.collector.store.schema import tally as tallies
from hubbub.collector.store.shard import COUNTS, Shard
from hubbub.collector.tally import CellFilter, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray
    from sqlalchemy import ColumnElement, Connection

    from hubbub.collector.tally import TallyDocument
    from hubbub.shared.metric import Metric
    from hubbub.shared.registry import Registry


class Held(msgspec.Struct, frozen=True):
    """What a store holds of one version of a metric."""

    metric: str
    version: int
    reports: int
    first: date
    last: date


class Store:
    """A database of tallies, batch ids and candidates, by its address."""

    def __init__(self, address: str) -> None:
        self.engine = connect(address)

    @property
    def address(self) -> str:
        """Where it is, without the password."""
        return self.engine.url.render_as_string(hide_password=True)

    def prepare(self, registry: Registry) -> None:
        """Create or update the tables, and make sure that no published metric has changed its meaning."""
        with writing(self.engine) as connection:
            lock_migrations(connection)
            migrate(connection)
            _check_fingerprints(connection, registry)

    def shard(self, registry: Registry) -> Shard:
        """Open a connection that writes."""
        return Shard(self.engine, registry)

    def add(self, tallies: Iterable[Tally]) -> int:
        """Add tallies of one period each that were counted elsewhere, all or none; tells how many reports they hold."""
        return add(self.engine, tallies)

    def ping(self) -> None:
        """Ask the store something small; StoreUnavailableError if it does not answer."""
        with reaching(), self.engine.connect() as connection:
            connection.execute(select(func.count()).select_from(metrics))

    def held(self) -> list[Held]:
        """List what is there, by metric and version."""
        query = select(
            tallies.c.metric,
            tallies.c.version,
            func.sum(tallies.c.n),
            func.min(tallies.c.period),
            func.max(tallies.c.period),
        ).group_by(tallies.c.metric, tallies.c.version)
        with reaching(), self.engine.connect() as connection:
            rows = connection.execute(query.order_by(tallies.c.metric, tallies.c.version)).all()
        return [Held(name, version, int(n), first, last) for name, version, n, first, last in rows]

    def tally(self, metric: Metric, start: date | None = None, end: date | None = None) -> Tally:
        """Add up what is there of a metric, over the periods from `start` to `end`, both included."""
        total = Tally.empty(metric, start, end)
        days: set[date] = set()
        for period, cohort, n, counts in self._rows(metric, start, end):
            total.n[cohort] += n
            total.counts[cohort] += counts
            days.add(period)
        first, last = start or min(days, default=None), end or max(days, default=None)
        return Tally(total.metric, total.version, total.n, total.counts, first, last)

    def published_tally(
        self, metric: Metric, min_cohort_reports: int, start: date | None = None, end: date | None = None
    ) -> TallyDocument:
        """Add up the cells of a metric that have enough reports, over the periods from `start` to `end`, inclusive.

        A cell is one cohort of one period. Small cells are dropped before the periods are added up. The difference
        between the tallies of two ranges is therefore a sum of cells that each have enough reports.

        Args:
            metric: The metric.
            min_cohort_reports: Reports that a cell needs.
            start: The first period; None starts at the first stored period.
            end: The last period, inclusive; None ends at the last stored period.

        Returns:
            The tally, with the number of withheld cells and reports.

        """
        total, cells = Tally.empty(metric), CellFilter(min_cohort_reports)
        days: set[date] = set()
        for (period, cohort), shards in groupby(self._rows(metric, start, end, ordered=True), lambda row: row[:2]):
            rows = list(shards)
            days.add(period)
            n = sum(row[2] for row in rows)
            if cells.passes(n):
                total.n[cohort] += n
                total.counts[cohort] += np.sum([row[3] for row in rows], axis=0)
        first, last = start or min(days, default=None), end or max(days, default=None)
        published = Tally(total.metric, total.version, total.n, total.counts, first, last)
        return msgspec.structs.replace(published.document(), withheld=cells.withheld)

    def periods(self, metric: Metric, start: date | None = None, end: date | None = None) -> int:
        """Count the periods there are reports of, so many may be of one device; 1 for a metric reported once."""
        if metric.every == "once":
            return 1
        query = select(func.count(tallies.c.period.distinct())).where(*rows_of(metric, start, end))
        with reaching(), self.engine.connect() as connection:
            return connection.scalars(query).one()

    def check(self, metric: Metric) -> None:
        """Refuse a store of another schema, or one whose reports of a metric mean something else; nothing changes."""
        query = select(metrics.c.fingerprint).where(metrics.c.name == metric.name, metrics.c.version == metric.version)
        with reaching(), self.engine.connect() as connection:
            check_version(connection)
            known = connection.scalars(query).one_or_none()
        if known not in {None, metric.fingerprint}:
            raise StoreRefusedError(_changed(metric))

    def _rows(
        self, metric: Metric, start: date | None, end: date | None, *, ordered: bool = False
    ) -> Iterator[tuple[date, int, int, NDArray[np.int64]]]:
        query = select(tallies.c.period, tallies.c.cohort, tallies.c.n, tallies.c.counts).where(
            *rows_of(metric, start, end)
        )
        if ordered:
            query = query.order_by(tallies.c.period, tallies.c.cohort)
        with reaching(), self.engine.connect() as connection:
            for period, cohort, n, counts in connection.execute(query):
                yield period, cohort, n, np.frombuffer(counts, COUNTS)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self.engine.dispose()


def rows_of(metric: Metric, start: date | None, end: date | None) -> list[ColumnElement[bool]]:
    """The rows of a metric over the periods from `start` to `end`, both included."""
    rows = [tallies.c.metric == metric.name, tallies.c.version == metric.version]
    rows += [tallies.c.period >= start] if start is not None else []
    rows += [tallies.c.period <= end] if end is not None else []
    return rows


def _check_fingerprints(connection: Connection, registry: Registry) -> None:
    """Remember what each version of a metric means, and refuse one that means something else than before."""
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(metrics)
    rows = [
        {
            "name": metric.name,
            "version": metric.version,
            "fingerprint": metric.fingerprint,
            "bits": metric.size,
            "cohorts": metric.encoding.cohorts,
        }
        for metric in registry.values()
    ]
    connection.execute(insert.on_conflict_do_nothing(), rows)
    known = {(row.name, row.version): row.fingerprint for row in connection.execute(select(metrics))}
    changed = [metric for metric in registry.values() if known[metric.name, metric.version] != metric.fingerprint]
    if changed:
        raise StoreRefusedError("\n".join(map(_changed, changed)))


def _changed(metric: Metric) -> str:
    return (
        f'metric "{metric.name}": version {metric.version} has another meaning than the reports that were '
        f"collected under it; allowed: the parameters of before, or a version above {metric.version}"
    )
