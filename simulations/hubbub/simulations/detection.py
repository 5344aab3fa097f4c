"""When a string stands out of the noise, by the variance of one report.

A string is found when its estimate exceeds what noise reaches once in 20 lists: z(1 - 0.05/S) standard errors, for S
strings. Its estimate lies above its share as often as below, so the smallest share that is found, by this rule of
google/rappor's, is found half of the time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import NormalDist

from hubbub.shared.planning import ALPHA


def smallest_share(variance: float, reports: float, strings: int) -> float:
    """The share that stands out of the noise of so many strings."""
    return -NormalDist().inv_cdf(ALPHA / strings) * math.sqrt(variance / reports)


def learnable(variance: float, reports: float) -> int:
    """The most equally likely strings of which each has the smallest share that is found."""
    return bisect_left(
        range(1, 10**7), True, key=lambda strings: smallest_share(variance, reports, strings) * strings > 1
    )


def chance(share: float, variance: float, reports: float, level: float) -> float:
    """How often a string is found that has this share, where noise alone is found as often as `level`."""
    normal = NormalDist()
    return normal.cdf(share / math.sqrt(variance / reports) + normal.inv_cdf(level))
