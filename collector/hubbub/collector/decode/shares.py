"""Shares of values of which a device holds at most one: categories, or the buckets of a histogram.

Each bit alone gives an unbiased estimate of the share of its value among all reports. A report without a valid value
sets no bit, so the shares sum to 1 less the share of these reports, which is estimated from the sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector.decode.estimates import Number, Row
from hubbub.collector.decode.interval import normal_quantile, score_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hubbub.collector.decode.control import Control
    from hubbub.collector.decode.noise import Noise, Numbers


@dataclass(frozen=True)
class Shares:
    """Estimates of shares that sum to at most 1."""

    shares: Numbers
    """Unbiased: a share can be negative, and the sum can exceed 1."""
    covariance: Numbers
    low: Numbers
    high: Numbers
    chances: Numbers
    """The p-value of each share: how often the estimate is at least as large if the true share is 0."""
    consistent: Numbers

    @property
    def total(self) -> float:
        """The sum of the shares: the share of reports with a valid value."""
        return float(self.shares.sum())

    @property
    def total_error(self) -> float:
        """The standard error of the sum."""
        return math.sqrt(max(float(self.covariance.sum()), 0.0))

    def no_value(self, confidence: float) -> Number:
        """Estimate the share of reports without a valid value."""
        estimate, reach = 1 - self.total, normal_quantile(confidence) * self.total_error
        return Number(estimate, self.total_error, estimate - reach, estimate + reach)

    def rows(self, names: Sequence[str], reports: float, control: Control) -> list[Row]:
        """Return a row for each share."""
        errors = np.sqrt(np.diagonal(self.covariance))
        detected = self.chances <= control.bar(self.chances)
        columns = (self.shares, errors, self.low, self.high, self.chances, detected, self.consistent)
        return [
            Row(name, share * reports, share, *rest)
            for name, share, *rest in zip(names, *(column.tolist() for column in columns), strict=True)
        ]


def estimate_shares(noise: Noise, debiased: Numbers, together: NDArray[np.int64], confidence: float) -> Shares:
    """Estimate shares from debiased bits; `together` counts the reports that observed each pair of bits."""
    reports: Numbers = np.diagonal(together).astype(np.float64)
    devices, assumed = noise.devices(reports), nearest_shares(debiased)
    # Two bits of one device are never both set.
    covariance: Numbers = -np.outer(assumed / reports, assumed / reports) * together * noise.periods
    np.fill_diagonal(covariance, noise.variance(assumed) / devices)
    low, high = score_interval(noise, debiased, devices, confidence)
    chances = special.ndtr(-debiased / np.sqrt(np.maximum(noise.variance_given(0) / devices, 1e-300)))
    return Shares(debiased, covariance, low, high, chances, assumed)


def nearest_shares(shares: Numbers) -> Numbers:
    """Return the nearest shares that are not negative and sum to at most 1.

    Negative shares become 0. If the rest exceeds 1, all of it moves down by the same amount (norm-sub of Wang et al.
    2020).
    """
    ordered = np.sort(shares)[::-1]
    moves = (1 - np.cumsum(ordered)) / np.arange(1, len(ordered) + 1)
    kept = np.flatnonzero(ordered + moves > 0)[-1]
    nearest: Numbers = np.maximum(shares + min(moves[kept], 0.0), 0.0)
    return nearest
