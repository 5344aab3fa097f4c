"""Selection: which of the candidates are there.

Forward, the strongest first, each time on what the ones before leave unexplained; then backward, dropping those that
the others explain away; until nothing changes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector.decode.least_squares import Equations, Fit, fit
from hubbub.collector.decode.null import Null

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from hubbub.collector.decode.control import Control
    from hubbub.collector.decode.design import Design
    from hubbub.collector.decode.noise import Numbers

ADDING_ROUNDS = 100
"""Rounds of adding and dropping before strings are only dropped any more; a dozen are usual."""


@dataclass(frozen=True)
class Selection:
    """What was found, and what can be said of every column of the design, beside the ones found."""

    found: NDArray[np.int64]
    """Their columns."""
    fit: Fit
    """Of the ones found, in the same order."""
    shares: Numbers
    """Of every column: as if it alone were added to the ones found."""
    errors: Numbers
    chances: Numbers
    """The p-value of every column."""
    bar: float
    """How many standard errors above zero a share has to be to count as found."""
    null: Null


def select(
    design: Design, equations: Equations, control: Control, progress: Callable[[str], None] = lambda _: None
) -> Selection:
    """Find the candidates that are there."""
    found: NDArray[np.int64] = np.zeros(0, np.int64)
    dropped = np.zeros(design.columns, bool)
    most = max(equations.number // 2, 1)
    fitted, spent = np.zeros(len(equations.seen)), 0.0
    for rounds in itertools.count():
        current = fit(equations, design.matrix[:, found], equations.variance(fitted), spent)
        fitted = current.fitted
        judged = judge(design, equations, control, found, current)
        progress(f"{len(found)} found")
        standing = judged.shares / judged.errors
        spent = _spent(judged.null, standing[found], judged.bar)
        inside = np.zeros(design.columns, bool)
        inside[found] = True
        fresh = np.flatnonzero((standing >= judged.bar) & ~inside & ~dropped)
        fallen = found[standing[found] < judged.bar]
        if len(fresh) and len(found) < most and rounds < ADDING_ROUNDS:
            # Strong ones first: what they explain is no longer mistaken for others, or for noise.
            fresh = fresh[standing[fresh] >= standing[fresh].max() / 2]
            fresh = fresh[np.argsort(-standing[fresh], kind="stable")][: most - len(found)]
            found = np.sort(np.concatenate([found, fresh]))
        elif len(fallen):
            weakest = fallen[standing[fallen] <= np.median(standing[fallen])]
            dropped[weakest] = True
            found = np.setdiff1d(found, weakest)
        else:
            return judged
    raise AssertionError  # pragma: no cover  (every round drops a string, or is one of the first hundred)


def judge(design: Design, equations: Equations, control: Control, found: NDArray[np.int64], current: Fit) -> Selection:
    """Work out what each candidate would get, if it alone were added to a fit, and how surprising that is."""
    weights, spread = current.weights, equations.spread
    weighted = weights * current.residual
    speaking = equations.number / design.bits
    null = Null(weighted.reshape(design.cohorts, design.bits), spread * design.bits, design.same_bits**speaking)
    # What the ones found already explain is lost to any other: the same share of every column, on average.
    left = max(1 - len(found) / max(equations.number, 1), 0.0)
    weighed = design.matrix.T @ weights
    centre = equations.centre(weighed, weights)
    information = left * np.maximum((1 - 2 * centre) * weighed + centre**2 * weights.sum(), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(information > 0, design.scores(weighted) / information, 0.0)
        errors = np.where(information > 0, np.maximum(null.deviation, np.sqrt(information)) / information, np.inf)
    shares[found], errors[found] = current.shares, current.errors
    chances = null.tail(shares / errors)
    level = control.bar(chances)
    return Selection(found, current, shares, errors, chances, null.bar(level), null)


def _spent(null: Null, standing: Numbers, bar: float) -> float:
    """Degrees of freedom that the choice has cost.

    A string that is in the model for certain takes away one. One that is in it because it looked large takes away the
    square of its luck as well, and with many to choose from that is most of what a weak one explains.
    """
    middle = _conditional(null, np.maximum(standing, bar), bar, 0.5)
    return float(np.maximum(standing**2 - np.maximum(middle, 0.0) ** 2, 1.0).sum())


def conditional_interval(null: Null, standing: Numbers, bar: float, confidence: float) -> tuple[Numbers, Numbers]:
    """The interval of a share that is reported because it is large, in standard errors.

    Given that it passed the bar, an estimate is distributed as its error is above that bar; the interval inverts this
    distribution (Weinstein, Fithian and Benjamini 2013). Far above the bar it is the usual one, close to it longer,
    and lower: the winner's luck is taken off.
    """
    tail = (1 - confidence) / 2
    return _conditional(null, standing, bar, tail), _conditional(null, standing, bar, 1 - tail)


def _conditional(null: Null, standing: Numbers, bar: float, chance: float) -> Numbers:
    """The truths for which, of all that pass the bar, this share comes out as far up."""
    low, high = standing - 60.0, standing + 60.0
    for _ in range(45):
        middle = (low + high) / 2
        both = null.normal(np.concatenate([standing - middle, bar - middle]))
        passing = special.log_ndtr(-both)
        above = passing[: len(standing)] - passing[len(standing) :] > np.log(chance)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2
