"""Shares of which exactly one holds for each device, so that they sum to 1: the best unbiased estimate of them.

Each bit alone gives an unbiased estimate of its share. That all of them sum to 1 is known as well, and the sum of the
estimates tells how wrong they are together; giving that back, to each in proportion to its noise, is least squares
under the constraint. It halves the variance for two shares and takes 1/K off for K alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector.decode.interval import score_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.decode.noise import Noise, Numbers


@dataclass(frozen=True)
class Simplex:
    """Estimates of shares that sum to 1."""

    shares: Numbers
    """Unbiased: a share may come out negative."""
    covariance: Numbers
    low: Numbers
    high: Numbers
    chances: Numbers
    """The p-value of each: how often a share of nothing looks as large."""
    consistent: Numbers
    total: float
    """What the bits alone say that the shares sum to: 1, but for noise."""
    total_error: float


def simplex(noise: Noise, debiased: Numbers, together: NDArray[np.int64], confidence: float) -> Simplex:
    """Estimate shares from debiased bits; `together` holds how many reports observed each two of them."""
    together = together.astype(np.float64)
    reports: Numbers = np.diagonal(together)
    assumed = norm_sub(debiased)
    variance = noise.variance(assumed) / noise.devices(reports)
    # Two bits of one device are never both set.
    covariance: Numbers = -np.outer(assumed / reports, assumed / reports) * together * noise.periods
    np.fill_diagonal(covariance, variance)
    common = covariance.sum(axis=1)
    total, total_variance = float(debiased.sum()), float(common.sum())
    shares, given_back = debiased, np.zeros(len(debiased))
    if total_variance > 0:
        given_back = common / total_variance
        shares = debiased - given_back * (total - 1)
        covariance = covariance - np.outer(given_back, common)
    own = np.diagonal(covariance)
    leverage = (1 - given_back) ** 2 / noise.devices(reports)
    low, high = score_interval(noise, shares, assumed, own, leverage, confidence)
    lean = 1 + noise.variance_given(1) - noise.variance_given(0)
    if_absent = np.maximum(own - leverage * (lean * assumed - assumed**2), 1e-300)
    chances = special.ndtr(-shares / np.sqrt(if_absent))
    return Simplex(shares, covariance, low, high, chances, norm_sub(shares), total, total_variance**0.5)


def norm_sub(shares: Numbers) -> Numbers:
    """The nearest shares that are not negative and sum to 1 (Wang et al. 2020 call it norm-sub).

    Negative ones become 0 and the others move by one and the same amount.
    """
    ordered = np.sort(shares)[::-1]
    moves = (1 - np.cumsum(ordered)) / np.arange(1, len(ordered) + 1)
    kept = np.flatnonzero(ordered + moves > 0)[-1]
    nearest: Numbers = np.maximum(shares + moves[kept], 0.0)
    return nearest
