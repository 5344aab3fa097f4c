"""Which reports count: each is held against the registry and the window of periods that is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from msgspec import Struct

from hubbub.shared.period import period_of, today

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from hubbub.shared.metric import Metric
    from hubbub.shared.registry import Registry
    from hubbub.shared.wire import Batch, Report

Reason: TypeAlias = Literal[
    "unknown_metric",
    "unknown_version",
    "bad_cohort",
    "bad_bits",
    "bad_period",
    "expired",
    "too_early",
    "too_old",
    "repeated",
]
"""Why a report is not counted. The words are part of the interface and never change their meaning."""

REASONS: tuple[Reason, ...] = get_args(Reason)

DEFAULT_DAYS_BACK = 14
DEFAULT_DAYS_AHEAD = 1


class Rejected(Struct, frozen=True):
    """A report that is not counted: its place in the batch, and why."""

    index: int
    reason: Reason


@dataclass(slots=True)
class Judged:
    """A batch after its reports were looked at."""

    identity: bytes
    reports: list[Report] = field(default_factory=list)
    """Those that count, unless the batch was counted before."""
    indices: list[int] = field(default_factory=list)
    """Where in the batch each of them stood."""
    days: list[date] = field(default_factory=list)
    """The last day of the period of each: it is refused once that day is too long ago."""
    rejected: list[Rejected] = field(default_factory=list)

    def refuse_before(self, horizon: date) -> None:
        """Reject what speaks of periods that ended before a day."""
        if not self.days or min(self.days) >= horizon:
            return
        kept = [position for position, day in enumerate(self.days) if day >= horizon]
        dropped = sorted(set(self.indices) - {self.indices[position] for position in kept})
        self.rejected = sorted(
            [*self.rejected, *(Rejected(index, "too_old") for index in dropped)], key=lambda each: each.index
        )
        self.reports = [self.reports[position] for position in kept]
        self.indices = [self.indices[position] for position in kept]
        self.days = [self.days[position] for position in kept]


class Acceptance:
    """Holds reports against a registry.

    A report is on time if its period ended at most `days_back` days ago and begins at most `days_ahead` days from now,
    in UTC; devices' clocks are seldom right.
    """

    def __init__(
        self,
        registry: Registry,
        days_back: int = DEFAULT_DAYS_BACK,
        days_ahead: int = DEFAULT_DAYS_AHEAD,
        clock: Callable[[], date] = today,
    ) -> None:
        self.clock = clock
        self.days_back = days_back
        self._back = timedelta(days=days_back)
        self._ahead = timedelta(days=days_ahead)
        self._expected = {metric.name: _Expected(metric) for metric in registry.values()}

    @property
    def oldest(self) -> date:
        """The first day that a period may have ended on."""
        return self.clock() - self._back

    def judge(self, batch: Batch) -> Judged:
        """Sort the reports of a batch into those that count and those that do not."""
        day = self.clock()
        oldest, newest = day - self._back, day + self._ahead
        judged = Judged(bytes.fromhex(batch.batch))
        seen: set[tuple[str, date]] = set()
        for index, report in enumerate(batch.reports):
            expected = self._expected.get(report.metric)
            reason = "unknown_metric" if expected is None else expected.fault(report, newest)
            if expected is not None and reason is None:
                last_day = report.period + expected.lasts
                if last_day < oldest:
                    reason = "too_old"
                elif (report.metric, report.period) in seen:
                    reason = "repeated"  # one device has one report for a metric and a period; a second is not believed
                else:
                    seen.add((report.metric, report.period))
                    judged.reports.append(report)
                    judged.indices.append(index)
                    judged.days.append(last_day)
                    continue
            judged.rejected.append(Rejected(index, reason))  # type: ignore[arg-type]
        return judged


class _Expected:
    """What a report of one metric has to look like."""

    def __init__(self, metric: Metric) -> None:
        self._version = metric.version
        self._cohorts = metric.encoding.cohorts
        self._width = metric.width
        self._last_byte = 0xFF >> (-metric.size % 8)
        self._every = metric.every
        self._expires = metric.expires
        self.lasts = timedelta(days=6 if metric.every == "week" else 0)

    def fault(self, report: Report, newest: date) -> Reason | None:
        if report.version != self._version:
            return "unknown_version"
        if report.cohort >= self._cohorts:
            return "bad_cohort"
        if len(report.bits) != self._width or report.bits[-1] > self._last_byte:
            return "bad_bits"
        if self._every == "week" and period_of(self._every, report.period) != report.period:
            return "bad_period"
        if self._expires is not None and report.period > self._expires:
            return "expired"
        return "too_early" if report.period > newest else None
