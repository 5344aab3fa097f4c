"""From guesses to a bound of epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


def epsilon_bounds(right: Numbers, wrong: Numbers, confidence: float) -> Numbers:
    """Return lower bounds of epsilon from numbers of right and wrong guesses; 0 where they prove nothing.

    Given the number of guesses, the number of right guesses is binomial, because each trial has its own coin and its
    own device. Clopper and Pearson's (1934) lower limit of their share is exact, and its log odds bound epsilon. One
    share is bounded here; bounding Pr[A | first] and Pr[A | second] apart would need two bounds.
    """
    # The upper limit of the share of wrong guesses: the smaller share keeps its digits.
    share = special.betaincinv(wrong + 1, np.maximum(right, np.finfo(float).tiny), confidence)
    with np.errstate(divide="ignore"):
        bounds = np.log1p(-share) - np.log(share)
    return np.where(right > 0, np.maximum(bounds, 0.0), 0.0)


def epsilon_bound(right: int, wrong: int, confidence: float) -> float:
    """Return a lower bound of epsilon that is too high with a probability of at most 1 - confidence."""
    return float(epsilon_bounds(np.array(float(right)), np.array(float(wrong)), confidence))
