"""What was measured over trials, and how sure that is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from hubbub.collector.decode.interval import normal_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hubbub.collector.decode.noise import Numbers

CONFIDENCE = 0.95
"""Of the error bars in figures."""

NORMAL_REACH = normal_quantile(CONFIDENCE)
"""Standard errors that they reach to each side where the error is normal and its size known."""


class Measured(NamedTuple):
    """A number and its interval."""

    value: float
    low: float
    high: float


def average(numbers: Numbers | Sequence[float]) -> Measured:
    """The mean of independent numbers, with Student's interval; one number has none, and stands alone."""
    freedom, value = len(numbers) - 1, float(np.mean(numbers))
    if not freedom:
        return Measured(value, value, value)
    error = float(np.std(numbers, ddof=1)) / math.sqrt(freedom + 1)
    reach = float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
    return Measured(value, value - reach, value + reach)


def root_of_mean(squares: Numbers | Sequence[float]) -> Measured:
    """The typical size of errors of which each trial gives a mean square; the interval is that of their mean."""
    mean = average(squares)
    # Kept above 0 for a logarithmic axis, whatever the interval of few trials says.
    return Measured(*(math.sqrt(max(end, mean.value / 100)) for end in mean))


def root_mean_square(errors: Numbers) -> Measured:
    """The typical size of errors of which each trial gives a single one, normal around 0: the interval is exact."""
    trials = errors.size
    value = math.sqrt(float(np.mean(np.square(errors))))
    tail = (1 - CONFIDENCE) / 2
    largest, smallest = (float(special.chdtri(trials, part)) for part in (tail, 1 - tail))
    return Measured(value, value * math.sqrt(trials / largest), value * math.sqrt(trials / smallest))


def share(hits: int, tries: int) -> Measured:
    """How often something happened, with Wilson's interval (1927)."""
    value, square = hits / tries, NORMAL_REACH**2 / tries
    middle, reach = value + square / 2, math.sqrt(square * (value * (1 - value) + square / 4))
    low, high = ((middle + side * reach) / (1 + square) for side in (-1, 1))
    return Measured(value, min(low, value), max(high, value))


def ratio(top: Numbers, bottom: Numbers) -> Measured:
    """How many times as large the one kind of normal errors is as the other: the root of an F ratio."""
    value = float(top.std() / bottom.std())
    tail = (1 - CONFIDENCE) / 2
    freedom = top.size - 1, bottom.size - 1
    largest, smallest = (math.sqrt(float(special.fdtri(*freedom, part))) for part in (1 - tail, tail))
    return Measured(value, value / largest, value / smallest)
