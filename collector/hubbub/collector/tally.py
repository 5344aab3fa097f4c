"""The tally: all that has to be kept of reports. Tallies add, across processes, machines and days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date  # noqa: TC003  (msgspec reads the annotations)
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from hubbub.collector.count import count_bits
from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from hubbub.shared.metric import Metric
    from hubbub.shared.wire import Report

_Count = Annotated[int, Meta(ge=0)]


class CohortCounts(Struct, frozen=True, forbid_unknown_fields=True):
    """One cohort of a tally, as it is spelled in JSON."""

    cohort: _Count
    n: _Count
    counts: list[_Count]


class Withheld(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of cells that a published tally omits; a cell is one cohort of one period."""

    cohorts: _Count
    """Cells with fewer than `min_cohort_reports` reports."""
    reports: _Count
    """Reports in these cells."""
    min_cohort_reports: Annotated[int, Meta(ge=1)]


class TallyDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """A tally as JSON, without the cohorts that have no reports."""

    metric: str
    version: int
    start: date | None
    end: date | None
    cohorts: list[CohortCounts]
    withheld: Withheld | UnsetType = UNSET
    """The omitted cells; the collector always includes this key, other writers can omit it."""


@dataclass
class CellFilter:
    """A filter that passes cells with enough reports, and counts the other cells."""

    min_cohort_reports: int
    _cohorts: int = 0
    _reports: int = 0

    def passes(self, reports: int) -> bool:
        """Return whether a cell with this number of reports can be published; count the cell if it cannot."""
        if reports >= self.min_cohort_reports:
            return True
        if reports:
            self._cohorts += 1
            self._reports += reports
        return False

    def add(self, other: Withheld) -> None:
        """Count the cells that another filter withheld."""
        self._cohorts += other.cohorts
        self._reports += other.reports

    @property
    def withheld(self) -> Withheld:
        """The cells that did not pass so far."""
        return Withheld(self._cohorts, self._reports, self.min_cohort_reports)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many reports each cohort sent, and how often each of their bits was set."""

    metric: str
    version: int
    n: NDArray[np.int64]
    """Reports of each cohort."""
    counts: NDArray[np.int64]
    """Ones of each cohort (row) and bit (column)."""
    start: date | None = None
    """The first period that the tally covers; None: nothing is said about that."""
    end: date | None = None
    """The last one, itself included."""

    @classmethod
    def empty(cls, metric: Metric, start: date | None = None, end: date | None = None) -> Tally:
        """Begin a tally of a metric with no reports in it."""
        cohorts = metric.encoding.cohorts
        n, counts = np.zeros(cohorts, np.int64), np.zeros((cohorts, metric.size), np.int64)
        return cls(metric.name, metric.version, n, counts, start, end)

    @classmethod
    def of(cls, metric: Metric, reports: Iterable[Report]) -> Tally:
        """Add up reports of one metric; it covers the periods that they speak of."""
        kept = list(reports)
        tally = cls.empty(metric, *(f((each.period for each in kept), default=None) for f in (min, max)))
        if kept:
            packed = np.frombuffer(b"".join(each.bits for each in kept), np.uint8).reshape(len(kept), metric.width)
            cohorts = np.array([each.cohort for each in kept])
            counted = count_bits(packed, metric.size, cohorts)
            tally.counts[: len(counted)] += counted
            tally.n[: len(counted)] += np.bincount(cohorts)
        return tally

    @classmethod
    def parse(cls, text: bytes | str, metric: Metric) -> Tally:
        """Read a tally of a metric from its JSON."""
        try:
            document = msgspec.json.decode(text, type=TallyDocument)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ParameterError(f"tally: {error}; allowed: the JSON of a tally") from None
        if (document.metric, document.version) != (metric.name, metric.version):
            raise ParameterError(
                f"tally: is of {document.metric} version {document.version}; "
                f"allowed: {metric.name} version {metric.version}"
            )
        tally = cls.empty(metric, document.start, document.end)
        for each in document.cohorts:
            sound = each.cohort < len(tally.n) and len(each.counts) == metric.size and max(each.counts) <= each.n
            if not sound or tally.n[each.cohort] or each.n >= 1 << 63:
                raise ParameterError(
                    f"tally: cohort {each.cohort} is repeated, or does not fit; allowed: each of 0 to "
                    f"{len(tally.n) - 1} once, with {metric.size} counts of at most n"
                )
            tally.n[each.cohort] = each.n
            tally.counts[each.cohort] = each.counts
        return tally

    @property
    def reports(self) -> int:
        """How many reports there are in all."""
        return int(self.n.sum())

    def document(self) -> TallyDocument:
        """Spell the tally for JSON."""
        cohorts = [
            CohortCounts(int(cohort), int(self.n[cohort]), self.counts[cohort].tolist())
            for cohort in np.flatnonzero(self.n)
        ]
        return TallyDocument(self.metric, self.version, self.start, self.end, cohorts)

    def json(self) -> bytes:
        """Spell the tally as JSON."""
        return msgspec.json.encode(self.document())

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if (self.metric, self.version, self.counts.shape) != (other.metric, other.version, other.counts.shape):
            raise ParameterError(
                f"tally: {other.metric} version {other.version} {other.counts.shape} cannot be added to "
                f"{self.metric} version {self.version} {self.counts.shape}; allowed: the same metric, version and shape"
            )
        starts = [day for day in (self.start, other.start) if day is not None]
        ends = [day for day in (self.end, other.end) if day is not None]
        return Tally(
            self.metric,
            self.version,
            self.n + other.n,
            self.counts + other.counts,
            min(starts, default=None),
            max(ends, default=None),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and self.document() == other.document()

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __repr__(self) -> str:
        return f"Tally({self.metric} version {self.version}, {self.start} to {self.end}: {self.reports} reports)"
