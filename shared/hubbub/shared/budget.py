"""What one device spends over a year under a registry.

Two prices, because they hold for different pairs of histories:

* **of the values**: between two histories whose encodings repeat and change in the same periods. The reports of one
  encoding cost `epsilon(T)` after T of them, always less than the lifetime epsilon, and each encoding costs that again.
* **of the changes**: between any two histories. When an encoding changed, and to which, is hidden by the instantaneous
  response alone: each report can cost as much as permanent answers that differ in every bit (FORMULAS F8).
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
    """How many different encodings it can reveal in that time, the null encoding included."""
    epsilon_per_value: float
    epsilon: float
    """Of the values: if encodings repeat and change in the same periods."""
    epsilon_changes: float
    """Of the changes: whatever the histories."""


@dataclass(frozen=True)
class Year:
    """The most that all metrics together can cost a device in a year."""

    metrics: tuple[MetricYear, ...]
    total: Composition
    """Of the values."""
    total_changes: float
    """Of the changes, as a sum."""


def cost_of_values(metric: Metric, reports: int, encodings: float) -> float:
    """Bound what some reports cost if they are of at most this many encodings.

    Reports of one encoding are not independent of each other, so their epsilons are not simply added; instead each
    encoding costs at most what all reports would, and a report at most the largest share that it can have in any.
    """
    shared = max((metric.epsilon(count) / count for count in range(1, reports + 1)), default=0.0)
    return min(encodings * metric.epsilon(reports), reports * shared) if reports else 0.0


def cost_of_changes(metric: Metric, reports: int) -> float:
    """Bound what some reports cost between any two histories of values."""
    if reports == 1:
        return metric.epsilon(1)
    return reports * metric.size * metric.response.change_epsilon


def metric_year(metric: Metric) -> MetricYear:
    """Bound a year of one metric."""
    reports = PERIODS_A_YEAR[metric.every]
    values = min(metric.encodings or reports, reports)
    return MetricYear(
        metric.name,
        reports,
        values,
        metric.epsilon(reports),
        cost_of_values(metric, reports, values),
        cost_of_changes(metric, reports),
    )


def year(metrics: Iterable[Metric], delta: float = 0.0) -> Year:
    """Bound a year of all metrics together, for pure epsilon or, with a delta, by the best of the compositions."""
    years = tuple(metric_year(metric) for metric in metrics)
    pure = compose(each.epsilon for each in years)
    changes = sum(each.epsilon_changes for each in years)
    if delta == 0:
        return Year(years, pure, changes)
    # Each value of each metric is a mechanism of its own, as long as its whole cost is counted.
    relaxed = compose((each.epsilon_per_value for each in years for _ in range(each.values)), delta)
    best = min(pure, relaxed, key=lambda composition: composition.epsilon)
    total = Composition(best.epsilon, best.delta, best.method, {**relaxed.totals, **pure.totals})
    return Year(years, total, changes)
