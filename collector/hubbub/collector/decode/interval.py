"""Intervals for a share that is seen through a noisy bit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from hubbub.collector.decode.noise import Noise, Numbers


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval can have, or that only an infinite one has."""
    if not (confidence > 0 and (1 + confidence) / 2 < 1):
        raise ParameterError(f"confidence = {confidence}; allowed: a number above 0 and below 1")


def normal_quantile(confidence: float) -> float:
    """How many standard errors an interval reaches to each side."""
    return float(special.ndtri((1 + confidence) / 2))


def effective_reports(noise: Noise, reports: float, share: float) -> float:
    """How many independent reports tell as much: fewer than there are if devices reported in several periods."""
    if noise.periods == 1:
        return reports
    share = min(max(share, 0.0), 1.0)
    sent = noise.lie + noise.slope * share
    variance = noise.variance(np.array(share)) * noise.slope**2
    return float(sent * (1 - sent) * noise.devices(np.array(reports)) / variance)


def exact_interval(noise: Noise, count: float, reports: float, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval (1934) for the frequency of a bit, through the map that debiases it."""
    share = (count / reports - noise.lie) / noise.slope
    number = effective_reports(noise, reports, share)
    ones = count / reports * number
    tail = (1 - confidence) / 2
    low = float(special.betaincinv(ones, number - ones + 1, tail)) if ones > 0 else 0.0
    high = float(special.betaincinv(ones + 1, number - ones, 1 - tail)) if ones < number else 1.0
    return (low - noise.lie) / noise.slope, (high - noise.lie) / noise.slope


def guaranteed_error(noise: Noise, reports: float, confidence: float) -> float:
    """By how much a share can be off, at this confidence, whatever the truth: Hoeffding's inequality (1963).

    Ding, Kulkarni and Yekhanin (2017, theorem 1) state it for one-bit mean; there 1/(P - Q) is (e^e + 1)/(e^e - 1).
    """
    devices = float(noise.devices(np.array(reports)))
    return math.sqrt(math.log(2 / (1 - confidence)) / (2 * devices)) / noise.slope


def score_interval(noise: Noise, shares: Numbers, devices: Numbers, confidence: float) -> tuple[Numbers, Numbers]:
    """Return Wilson's interval (1927): the shares close enough to the estimate, by the variance that they imply."""
    square = normal_quantile(confidence) ** 2 / devices
    lean = 1 + noise.variance_given(1) - noise.variance_given(0)
    a, b, c = 1 + square, 2 * shares + square * lean, shares**2 - square * noise.variance_given(0)
    root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))
    return (b - root) / (2 * a), (b + root) / (2 * a)
