"""Mechanisms of others, for comparison only: nothing of hubbub uses them to protect anyone.

Numbers are in [-1, 1], as in the papers. Each mechanism has a sampler, vectorised, and its exact variance. The samplers
draw floating-point noise from a seeded generator, which a real device must never do.

Laplace     Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data Analysis", 2006
one bit     Duchi, Jordan and Wainwright, "Minimax Optimal Procedures for Locally Private Estimation", 2018
piecewise,  Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu, "Collecting and Analyzing Multidimensional Data with Local
hybrid      Differential Privacy", 2019
k-ary       Kairouz, Oh and Viswanath, "Extremal Mechanisms for Local Differential Privacy", 2016
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.decode.noise import Numbers

    Counts = NDArray[np.int64]

WIDTH = 2.0
"""Of the range of numbers: the most by which one device can move a sum."""


def laplace_sums(devices: int, epsilon: float, trials: int, rng: np.random.Generator) -> Numbers:
    """The noise of so many devices, added up, for each trial.

    A Laplace variable is the difference of two exponential ones, so a sum of them is that of two Gamma variables.
    """
    _check(epsilon)
    difference: Numbers = rng.standard_gamma(devices, trials) - rng.standard_gamma(devices, trials)
    return difference * (WIDTH / epsilon)


def laplace_variance(epsilon: float) -> float:
    """Of one number, whatever it is: twice the square of the scale, width/epsilon."""
    _check(epsilon)
    return 2 * (WIDTH / epsilon) ** 2


def one_bit(values: Numbers, epsilon: float, rng: np.random.Generator) -> Numbers:
    """Send one of two numbers, opposite to each other; the same as one-bit mean, debiased on the device."""
    _check(epsilon, values)
    reach = 1 / math.tanh(epsilon / 2)
    return np.where(rng.random(values.shape) < (1 + values / reach) / 2, reach, -reach)


def one_bit_variance(values: Numbers, epsilon: float) -> Numbers:
    """((e^epsilon + 1)/(e^epsilon - 1))^2 - value^2."""
    _check(epsilon, values)
    return 1 / math.tanh(epsilon / 2) ** 2 - values**2


def piecewise(values: Numbers, epsilon: float, rng: np.random.Generator) -> Numbers:
    """Send a number from a piece around the value with a high chance, from the rest of [-C, C] otherwise.

    C = (e^(epsilon/2) + 1)/(e^(epsilon/2) - 1); the piece is C - 1 wide.
    """
    _check(epsilon, values)
    reach = 1 / math.tanh(epsilon / 4)
    odds = math.exp(epsilon / 2)
    start = (reach + 1) / 2 * values - (reach - 1) / 2
    place = rng.random(values.shape)
    inside = start + (reach - 1) * place
    outside = (reach + 1) * place - reach
    outside += np.where(outside > start, reach - 1, 0.0)
    return np.where(rng.random(values.shape) < odds / (odds + 1), inside, outside)


def piecewise_variance(values: Numbers, epsilon: float) -> Numbers:
    """value^2/(e^(epsilon/2) - 1) + (e^(epsilon/2) + 3)/(3 (e^(epsilon/2) - 1)^2), largest at the ends of the range."""
    _check(epsilon, values)
    excess = math.expm1(epsilon / 2)
    spread: Numbers = values**2 / excess + (excess + 4) / (3 * excess**2)
    return spread


def hybrid(values: Numbers, epsilon: float, rng: np.random.Generator) -> Numbers:
    """Toss a coin between the piecewise mechanism and one bit."""
    first = rng.random(values.shape) < piecewise_share(epsilon)
    return np.where(first, piecewise(values, epsilon, rng), one_bit(values, epsilon, rng))


def hybrid_variance(values: Numbers, epsilon: float) -> Numbers:
    """The mixture of the two, both being unbiased; the same for all values where the coin is tossed at all."""
    share = piecewise_share(epsilon)
    return share * piecewise_variance(values, epsilon) + (1 - share) * one_bit_variance(values, epsilon)


def piecewise_share(epsilon: float) -> float:
    """How often the hybrid mechanism is the piecewise one: 1 - e^(-epsilon/2), and never at a small epsilon.

    It is never where that makes the worst variance smaller, which is below about 0.61: where one bit's own worst,
    at 0, is no larger than that of the mixture.
    """
    _check(epsilon)
    middle = np.zeros(1)
    better = piecewise_variance(middle, epsilon)[0] < one_bit_variance(middle, epsilon)[0]
    return -math.expm1(-epsilon / 2) if better else 0.0


def k_ary_chances(buckets: int, epsilon: float) -> tuple[float, float]:
    """The chances that a device sends its own bucket, and any one other."""
    _check(epsilon)
    if buckets < 2:
        raise ParameterError(f"buckets = {buckets}; allowed: 2 and above")
    total = math.exp(epsilon) + buckets - 1
    return math.exp(epsilon) / total, 1 / total


def k_ary_shares(counts: Counts, epsilon: float, trials: int, rng: np.random.Generator) -> Numbers:
    """Estimate the share of each bucket (column) in each trial (row); `counts` says how many devices hold each."""
    own, other = k_ary_chances(len(counts), epsilon)
    chances = np.full((len(counts), len(counts)), other)
    np.fill_diagonal(chances, own)
    received = np.zeros((trials, len(counts)))
    for count, row in zip(counts, chances, strict=True):
        received += rng.multinomial(count, row, trials)
    shares: Numbers = (received / counts.sum() - other) / (own - other)
    return shares


def k_ary_variance(shares: Numbers, epsilon: float) -> Numbers:
    """Of the estimated share of each bucket, times the number of devices, when the true shares are fixed."""
    own, other = k_ary_chances(len(shares), epsilon)
    noise: Numbers = (shares * own * (1 - own) + (1 - shares) * other * (1 - other)) / (own - other) ** 2
    return noise


def _check(epsilon: float, values: Numbers | None = None) -> None:
    if not (0 < epsilon < math.inf):
        raise ParameterError(f"epsilon = {epsilon}; allowed: a number above 0")
    if values is not None and not bool((np.abs(values) <= 1).all()):
        raise ParameterError("values: hold a number outside the range; allowed: -1 to 1")
