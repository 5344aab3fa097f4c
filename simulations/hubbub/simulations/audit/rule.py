"""The guesser: adds up the weights of the bits, and guesses when the sum is large enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hubbub.simulations.audit.bit_model import sums
from hubbub.simulations.audit.bound import epsilon_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.simulations.audit.bit_model import BitModel
    from hubbub.simulations.audit.pair import Pair

    Numbers = NDArray[np.float64]

CLOSE = 1e-6
"""Sums that differ by less are equal, and were added up in another order."""


@dataclass(frozen=True)
class Rule:
    """Say `first` from `threshold` up, `second` from minus `threshold` down, and pass in between.

    By Neyman and Pearson (1933) no other rule that guesses as often is right more often, if the weights are right.
    """

    weights: Numbers
    threshold: float
    expected: float
    """The bound of epsilon that the rule should give, if its model is true."""

    def count(self, scores: Numbers, is_first: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count right and wrong guesses about devices with these sums of weights."""
        says_first, says_second = scores >= self.threshold, scores <= -self.threshold
        right = (says_first & is_first).sum() + (says_second & ~is_first).sum()
        return np.array([right, says_first.sum() + says_second.sum() - right], np.int64)


def best_rule(model: BitModel, pair: Pair, trials: int, confidence: float) -> Rule:
    """Choose the threshold with the highest expected bound for this number of trials.

    The surest outcomes have the best odds but are rare, and after many reports too rare to prove anything.
    """
    total = sums(model, pair.role_counts)
    surest = np.argsort(-np.abs(total.values), kind="stable")
    values = total.values[surest]
    right = np.where(values > 0, total.first[surest], total.second[surest])
    wrong = np.where(values > 0, total.second[surest], total.first[surest])
    # A coin decides which value it is, hence the halves.
    bounds = epsilon_bounds(np.cumsum(right) * trials / 2, np.cumsum(wrong) * trials / 2, confidence)
    sizes = np.abs(values)
    last_of_its_size = np.append(sizes[:-1] - sizes[1:] > CLOSE, True)
    bounds = np.where(last_of_its_size & (sizes > CLOSE), bounds, 0.0)
    best = int(np.argmax(bounds))
    if bounds[best] == 0.0:
        return Rule(model.weights, np.inf, 0.0)
    return Rule(model.weights, float(sizes[best]) - CLOSE, float(bounds[best]))
