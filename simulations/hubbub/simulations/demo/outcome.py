"""What the demo has found: for each metric the truth beside what the collector says."""

from __future__ import annotations

import math
from datetime import date  # noqa: TC003  (msgspec reads the annotations)
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from hubbub.shared.encode import Bucket
from hubbub.shared.metric import Kind  # noqa: TC001
from hubbub.simulations.demo.attack import Attack  # noqa: TC001
from hubbub.simulations.demo.crowd import mean_of, shares_of
from hubbub.simulations.encoders import bucket_numbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hubbub.collector import Estimates
    from hubbub.collector.decode.estimates import Number
    from hubbub.shared import Metric
    from hubbub.simulations.demo.crowd import Told

OTHER = "(not asked about)"


class Line(Struct, frozen=True):
    """One line of a table: what is true, what the reports say, and how sure they are."""

    name: str
    truth: float
    estimate: float
    standard_error: float
    low: float
    high: float
    found: bool | None
    """Whether more than noise is there; None where that is not a question."""

    @property
    def holds(self) -> bool:
        """Whether the truth is in the interval."""
        return self.low <= self.truth <= self.high


class Found(Struct, frozen=True):
    """All about one metric."""

    kind: Kind
    description: str
    epsilon_report: float
    epsilon_lifetime: float
    every: str
    periods: int
    start: date
    end: date
    reports: int
    rows: tuple[Line, ...]
    alarms: tuple[str, ...]


class Outcome(Struct, frozen=True):
    """All that the demo has found."""

    devices: int
    clients: int
    seed: int
    first_day: date
    last_day: date
    metrics: dict[str, Found]
    attack: Attack


def compare(told: Told, estimates: Estimates) -> Found:
    """Set what the collector says beside what is true."""
    metric = told.metric
    return Found(
        metric.kind,
        metric.description,
        metric.epsilon(),
        metric.epsilon(math.inf),
        metric.every,
        len(told.periods),
        told.periods[0],
        told.periods[-1],
        estimates.reports,
        tuple(_lines(told, estimates)),
        estimates.alarms,
    )


def _lines(told: Told, estimates: Estimates) -> list[Line]:
    if told.metric.kind == "mean" and estimates.mean is not None:
        return [_line("mean", mean_of(told.truth), estimates.mean)]
    shares = shares_of(told.truth, _names(told.metric))
    lines = [
        Line(row.value, shares[row.value], row.share or 0.0, row.standard_error or 0.0, row.low, row.high, row.detected)
        for row in estimates.rows
    ]
    if told.metric.kind == "string" and estimates.other is not None:
        lines.sort(key=lambda line: (-line.truth, line.name))
        rest = math.fsum(shares.values()) - math.fsum(line.truth for line in lines)
        lines.append(_line(OTHER, rest, estimates.other))
    return lines


def _line(name: str, truth: float, number: Number) -> Line:
    return Line(name, truth, number.estimate, number.standard_error or 0.0, number.low, number.high, None)


def _names(metric: Metric) -> Callable[[Any], str]:
    """How a value is called in the estimates of its metric."""
    encoding = metric.encoding
    if isinstance(encoding, Bucket):
        buckets = [f"{low:g} to {high:g}" for low, high in pairwise(encoding.edges)]
        return lambda value: buckets[int(bucket_numbers(encoding, [value])[0])]
    return lambda value: str(value).lower() if isinstance(value, bool) else str(value)
