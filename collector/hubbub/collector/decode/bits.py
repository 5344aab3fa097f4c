"""Flags and categories: a bit for each answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector.decode.estimates import Row
from hubbub.collector.decode.interval import effective_reports, exact_interval
from hubbub.collector.decode.shares import Shares, estimate_shares

if TYPE_CHECKING:
    from hubbub.collector.decode.control import Control
    from hubbub.collector.decode.noise import Noise
    from hubbub.collector.tally import Tally


def flag(noise: Noise, tally: Tally, confidence: float, control: Control) -> Row:
    """Estimate the share of devices whose answer is true; the interval inverts the binomial distribution exactly."""
    reports, count = float(tally.n.sum()), float(tally.counts.sum())
    share = (count / reports - noise.lie) / noise.slope
    low, high = exact_interval(noise, count, reports, confidence)
    number = effective_reports(noise, reports, 0.0)
    # The regularised incomplete beta function: the binomial tail, also for a number of reports that is no integer.
    ones = count / reports * number
    chance = float(special.betainc(ones, number - ones + 1, noise.lie)) if ones > 0 else 1.0
    error = float(np.sqrt(noise.variance(np.clip(share, 0, 1)) / noise.devices(np.array(reports))))
    found = chance <= control.bar(np.array([chance]))
    return Row("true", share * reports, share, error, low, high, chance, found, min(max(share, 0.0), 1.0))


def category(noise: Noise, tally: Tally, confidence: float) -> Shares:
    """Estimate the share of each category."""
    counts, size = tally.counts.sum(axis=0).astype(float), tally.counts.shape[1]
    together = np.full((size, size), tally.reports)
    return estimate_shares(noise, noise.debias(counts, np.diagonal(together).astype(float)), together, confidence)
