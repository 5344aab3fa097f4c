"""What one device spends over a year under a registry.

A metric's reports of one value cost `epsilon(T)` after T of them, for ever less than its lifetime epsilon; a device
that changes between values pays for each. This holds between any two histories that repeat and change their values at
the same times; that a value changed at all, and when, is blurred by the instantaneous response but is not part of the
promise (docs/privacy-reviewer.md says what it costs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.shared.composition import Composition, compose
from hubbub.shared.period import PERIODS_A_YEAR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hubbub.shared.metric import Metric


@dataclass(frozen=True)
class MetricYear:
    """The most that one metric can cost a device in a year."""

    name: str
    reports: int
    values: int
    """How many different encodings it can reveal in that time."""
    epsilon_per_value: float
    epsilon: float


@dataclass(frozen=True)
class Year:
    """The most that all metrics together can cost a device in a year."""

    metrics: tuple[MetricYear, ...]
    total: Composition


def metric_year(metric: Metric) -> MetricYear:
    """Bound a year of one metric.

    Reports of one value are not independent of each other, so their epsilons are not simply added; instead each value
    costs at most what all reports of the year would, and a report at most the largest share that it can have in any.
    """
    reports = PERIODS_A_YEAR[metric.every]
    values = min(metric.lifetime_values or reports, reports)
    per_value = metric.epsilon(reports)
    per_report = max(metric.epsilon(count) / count for count in range(1, reports + 1))
    return MetricYear(metric.name, reports, values, per_value, min(values * per_value, reports * per_report))


def year(metrics: Iterable[Metric], delta: float = 0.0) -> Year:
    """Bound a year of all metrics together, for pure epsilon or, with a delta, by the best of the compositions."""
    years = tuple(metric_year(metric) for metric in metrics)
    pure = compose(each.epsilon for each in years)
    if delta == 0:
        return Year(years, pure)
    # Each value of each metric is a mechanism of its own, as long as its whole cost is counted.
    relaxed = compose((each.epsilon_per_value for each in years for _ in range(each.values)), delta)
    best = min(pure, relaxed, key=lambda composition: composition.epsilon)
    return Year(years, Composition(best.epsilon, best.delta, best.method, {**relaxed.totals, **pure.totals}))
