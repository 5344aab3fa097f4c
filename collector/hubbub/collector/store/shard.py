"""Committing batches: ids and counts in one transaction, each writer on a shard of its own."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from hubbub.collector.count import count_bits
from hubbub.collector.errors import StoreConflictError, StoreUnavailableError
from hubbub.collector.store.backend import change_counter, claim_shard, file_of, lock_horizon, reaching, settle
from hubbub.collector.store.bulk import put_ids, put_tallies
from hubbub.collector.store.schema import batch, horizon, tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Engine

    from hubbub.collector.acceptance import Judged
    from hubbub.collector.store.bulk import IdRow, TallyRow
    from hubbub.collector.store.parts import Parts
    from hubbub.shared.registry import Registry
    from hubbub.shared.wire import Report

Key = tuple[str, int, date, int]
"""Metric, version, period and cohort."""

COUNTS = np.dtype("<i8")
MAX_CACHE_BYTES = 32 << 20

_HORIZON = select(horizon.c.day)


class _SomeAreOldError(Exception):
    """Among ids that were to be stored are some that are there already."""


class Count:
    """How many reports, and how often each of their bits was set."""

    __slots__ = ("counts", "n")

    def __init__(self, n: int, counts: NDArray[np.int64]) -> None:
        self.n = n
        self.counts = counts


class Shard:
    """One connection that nobody else uses, and the shard that it alone writes to.

    It remembers the rows that it has written, so as not to read them again: nobody else writes to the shard, or, on
    SQLite, the database tells that somebody has. After any error of `commit` it must be closed, and a new one opened.
    """

    def __init__(self, engine: Engine, registry: Registry) -> None:
        self._engine = engine
        self._registry = registry
        self._known: dict[Key, Count] = {}
        self._known_bytes = 0
        self._seen: int | None = None
        self._horizon = date.min
        self._parts: Parts | None = None
        ids = (sqlite if engine.dialect.name == "sqlite" else postgresql).insert(batch)
        self._remember_and_tell = ids.on_conflict_do_nothing().returning(batch.c.id)
        with reaching():
            self._connection = engine.connect().execution_options(hubbub_writes=True)
            with self._connection.begin():
                self._shard = claim_shard(self._connection)
        self._file = file_of(engine)

    def commit(self, judged: Sequence[Judged]) -> list[bool]:
        """Count batches, and tell of each whether it is new. They are on the disk when this returns.

        Reports of a period that is refused by now are moved to the rejected ones of their batch.
        """
        new = settle(lambda: self._try(judged))
        if self._parts is not None:
            self._parts.committed()
        fresh = set(map(id, new))
        return [id(each) in fresh for each in judged]

    def keep(self, parts: Parts) -> None:
        """From now on, keep the reports of every commit for an archive as well, in the same transaction."""
        self._parts = parts

    def close(self) -> None:
        """Let go of connection and shard, whatever state they are in."""
        self._connection.invalidate()
        self._connection.close()

    def _try(self, judged: Sequence[Judged]) -> list[Judged]:
        """Commit; what the database undoes is forgotten here as well, so that it can be tried again."""
        try:
            try:
                return self._commit(judged, self._remember_new)
            except _SomeAreOldError:
                return self._commit(judged, self._remember_some)
        except StoreConflictError:
            self._forget()
            if self._parts is not None:
                self._parts.forget()
            raise

    def _commit(self, judged: Sequence[Judged], remember: Callable[[Sequence[IdRow]], Sequence[bytes]]) -> list[Judged]:
        with reaching(), self._connection.begin():
            first = self._look()
            by_id: dict[bytes, Judged] = {}
            for each in judged:
                each.refuse_before(first)
                if each.reports:
                    by_id.setdefault(each.identity, each)
            # In one order everywhere, so that two replicas with the same batches wait for each other, never in a ring.
            rows = [(identity, max(by_id[identity].days)) for identity in sorted(by_id)]
            new = [by_id[identity] for identity in remember(rows)] if rows else []
            self._add(count_reports(self._registry, (report for each in new for report in each.reports)))
            if self._parts is not None:
                self._parts.put(self._connection, (report for each in new for report in each.reports))
        return new

    def _look(self) -> date:
        """Read the horizon, and forget what may not be true any more."""
        if file_of(self._engine) != self._file:
            # SQLite would go on writing to a file that no name leads to, and all of it would be lost.
            raise StoreUnavailableError("store: the file was moved or deleted while in use")
        lock_horizon(self._connection, to_move_it=False)
        changes = change_counter(self._connection)
        if changes is None or changes != self._seen:
            [self._horizon] = self._connection.scalars(_HORIZON)
        if changes != self._seen or self._known_bytes > MAX_CACHE_BYTES:
            self._forget()
            self._seen = changes
        return self._horizon

    def _forget(self) -> None:
        self._known.clear()
        self._known_bytes = 0

    def _remember_new(self, rows: Sequence[IdRow]) -> Sequence[bytes]:
        """Store ids that are all new, as they nearly always are; otherwise nothing may be kept of this transaction."""
        if put_ids(self._connection, rows) != len(rows):
            raise _SomeAreOldError
        return [identity for identity, _ in rows]

    def _remember_some(self, rows: Sequence[IdRow]) -> Sequence[bytes]:
        """Store ids of which some may be there already, and give those that are new."""
        told = [{"id": identity, "period": day} for identity, day in rows]
        return [bytes(identity) for identity in self._connection.scalars(self._remember_and_tell, told)]

    def _add(self, added: dict[Key, Count]) -> None:
        """Add counts to the rows of this shard."""
        if not added:
            return
        self._read(key for key in added if key not in self._known)
        rows: list[TallyRow] = []
        for key, more in added.items():
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = more
                self._known_bytes += more.counts.nbytes
            else:
                known.n += more.n
                known.counts += more.counts
            metric, version, period, cohort = key
            counts = known.counts.astype(COUNTS, copy=False).tobytes()
            rows.append((metric, version, period, cohort, known.n, counts))
        put_tallies(self._connection, self._shard, rows)

    def _read(self, keys: Iterable[Key]) -> None:
        """Learn rows of this shard that were not written since it was opened: all cohorts of a period at once."""
        for metric, version, period in {key[:3] for key in keys}:
            query = select(tally.c.cohort, tally.c.n, tally.c.counts).where(
                tally.c.shard == self._shard,
                tally.c.metric == metric,
                tally.c.version == version,
                tally.c.period == period,
            )
            for cohort, n, counts in self._connection.execute(query):
                known = Count(n, np.frombuffer(counts, COUNTS).astype(np.int64))
                self._known[metric, version, period, cohort] = known
                self._known_bytes += known.counts.nbytes


def count_reports(registry: Registry, reports: Iterable[Report]) -> dict[Key, Count]:
    """Add reports up, by metric, version, period and cohort."""
    of_metric: dict[str, list[Report]] = defaultdict(list)
    for report in reports:
        of_metric[report.metric].append(report)
    counted: dict[Key, Count] = {}
    for name, kept in of_metric.items():
        metric = registry[name]
        groups: dict[tuple[date, int], int] = {}
        codes = np.array([groups.setdefault((report.period, report.cohort), len(groups)) for report in kept])
        packed = np.frombuffer(b"".join([report.bits for report in kept]), np.uint8).reshape(len(kept), metric.width)
        counts, sizes = count_bits(packed, metric.size, codes), np.bincount(codes)
        for (period, cohort), code in groups.items():
            counted[name, metric.version, period, cohort] = Count(int(sizes[code]), counts[code].copy())
    return counted
