"""What the score of a string looks like that nobody has: the yardstick for all that are asked about.

The hash functions place the bits of an absent string without regard to any report. Given the tally, its score is
therefore a sum of independent draws, in each cohort, from the weighted residuals of that cohort, and its distribution
is known whatever the residuals contain: noise, strings that are not in the list, forged reports. Its tails are
computed by the saddlepoint formula of Lugannani and Rice (1980). The error of a string that is there is distributed in
the same way, which makes this the distribution behind the intervals too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from hubbub.collector.decode.noise import Numbers

_TILTS = np.concatenate([-np.geomspace(60.0, 0.2, 50), np.geomspace(0.2, 60.0, 50)])
_BLOCK = 1 << 18
"""Numbers that are worked on at once."""

_FURTHEST = 40.0
"""How many standard deviations out the tails are followed; beyond them they are those of a normal distribution."""


class Null:
    """The distribution of the score of an absent string, in standard deviations."""

    def __init__(self, weighted: Numbers, draws: float, least: float = 0.0) -> None:
        """From the weighted residuals, a row for each cohort, and the number of bits that a string sets on average.

        `least` is the chance that an absent string sets the very bits of another: none can be less likely to look like
        it. It matters in filters of a few bits and one cohort or two.
        """
        self._least = least
        centred = weighted - weighted.mean(axis=1, keepdims=True)
        self.deviation = float(np.sqrt(draws * (centred**2).mean(axis=1).sum()))
        self._scores, self._roots = np.zeros(1), np.zeros(1)
        if self.deviation > 0:
            self._follow(centred / self.deviation, draws)

    def _follow(self, centred: Numbers, draws: float) -> None:
        """Find, for some scores, the normal deviate that has the same tail."""
        step = max(_BLOCK // centred.size, 1)
        parts = [_saddlepoints(centred, draws, _TILTS[at : at + step]) for at in range(0, len(_TILTS), step)]
        scores, roots = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        kept = np.isfinite(roots) & (np.abs(scores) < _FURTHEST)
        order = np.argsort(scores[kept], kind="stable")
        if kept.sum() > 1:
            self._scores, self._roots = scores[kept][order], np.maximum.accumulate(roots[kept][order])

    def normal(self, scores: Numbers) -> Numbers:
        """The normal deviates that have the same chance of being exceeded as these scores."""
        if len(self._scores) < 2:
            return scores
        inside = np.interp(scores, self._scores, self._roots)
        beyond = scores - np.clip(scores, self._scores[0], self._scores[-1])
        deviates: Numbers = inside + beyond
        return deviates

    def tail(self, scores: Numbers) -> Numbers:
        """The chance of a score at least this large; never taken to be less than for a normal distribution."""
        chance: Numbers = np.maximum(special.ndtr(-np.minimum(self.normal(scores), scores)), self._least)
        return chance

    def score(self, deviates: Numbers) -> Numbers:
        """The scores that belong to normal deviates: the other way round."""
        if len(self._scores) < 2:
            return deviates
        inside = np.interp(deviates, self._roots, self._scores)
        beyond = deviates - np.clip(deviates, self._roots[0], self._roots[-1])
        scores: Numbers = inside + beyond
        return scores

    def bar(self, chance: float) -> float:
        """The score that has this chance of being reached; infinite if none has."""
        if chance < self._least:
            return np.inf
        deviate = -special.ndtri(chance)
        return float(max(deviate, self.score(np.array([deviate]))[0]))

    def quantiles(self, confidence: float) -> tuple[float, float]:
        """The scores that bound the middle part of the distribution, the upper one first."""
        tail = (1 - confidence) / 2
        upper, lower = self.score(special.ndtri(np.array([1 - tail, tail]))).tolist()
        return upper, lower


def _saddlepoints(centred: Numbers, draws: float, tilts: Numbers) -> tuple[Numbers, Numbers]:
    """For each tilt the score it belongs to, and the root of Barndorff-Nielsen, a probability however far out."""
    exponents = tilts[:, None, None] * centred
    top = exponents.max(axis=2, keepdims=True)
    powers = np.exp(exponents - top)
    total = powers.mean(axis=2)
    mean = (powers * centred).mean(axis=2) / total
    spread = (powers * centred**2).mean(axis=2) / total - mean**2
    cumulant = draws * (np.log(total) + top[:, :, 0]).sum(axis=1)
    scores, curvature = draws * mean.sum(axis=1), draws * spread.sum(axis=1)
    signed = np.sign(tilts) * np.sqrt(np.maximum(2 * (tilts * scores - cumulant), 0.0))
    lean = tilts * np.sqrt(np.maximum(curvature, 0.0))
    sound = (np.abs(signed) > 0.1) & (np.abs(lean) > 1e-6)
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.where(sound, signed + np.log(lean / signed) / signed, np.nan)
    return scores, roots
