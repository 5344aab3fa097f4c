"""What attacks have in common: reports are drawn, and weighed against what may be behind them."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hubbub.collector.decode.noise import Noise, Numbers
    from hubbub.shared.metric import Metric

    Bits = NDArray[np.bool_]
    Counts = NDArray[np.int64]

CERTAIN = 1e-9
"""Probabilities keep this distance from 0 and 1, so that no report is infinitely unlikely."""


def codes(metric: Metric, values: Sequence[str]) -> Bits:
    """The encoded bits of some values: cohort, value, bit."""
    encoded = [[metric.encode(value, cohort, 0) for value in values] for cohort in range(metric.encoding.cohorts)]
    width = metric.width
    packed = b"".join(bits.to_bytes(width, "little") for row in encoded for bits in row)
    table = np.frombuffer(packed, np.uint8).reshape(metric.encoding.cohorts, len(values), width)
    return np.unpackbits(table, axis=2, count=metric.size, bitorder="little").astype(bool)


def remember(encoded: Bits, noise: Noise, rng: np.random.Generator) -> Bits:
    """Draw permanent bits."""
    return rng.random(encoded.shape) < np.where(encoded, noise.p1, noise.q1)


def send(remembered: Bits, reports: int, noise: Noise, rng: np.random.Generator) -> Counts:
    """Draw how often each permanent bit is sent as 1 in some number of reports."""
    return rng.binomial(reports, np.where(remembered, noise.p2, noise.q2))


def send_forgetful(encoded: Bits, reports: int, noise: Noise, rng: np.random.Generator) -> Counts:
    """The same of a client that remembers nothing: every report draws both steps anew."""
    return rng.binomial(reports, np.where(encoded, noise.truth, noise.lie))


def log_binomial(ones: Counts | Numbers, reports: int | Counts, chance: float) -> Numbers:
    """Log likelihood of so many ones in independent reports, without the number of their orders."""
    kept = min(max(chance, CERTAIN), 1 - CERTAIN)
    likelihood: Numbers = ones * np.log(kept) + (reports - ones) * np.log1p(-kept)
    return likelihood


def log_memoised(ones: Counts | Numbers, reports: int | Counts, noise: Noise, permanent: float | Numbers) -> Numbers:
    """Log likelihood of so many ones when a permanent bit stands behind them, which is 1 with chance `permanent`.

    The mixture of DESIGN's exact epsilon: r p2^s (1 - p2)^(T - s) + (1 - r) q2^s (1 - q2)^(T - s).
    """
    likelihood: Numbers = np.logaddexp(
        np.log(permanent) + log_binomial(ones, reports, noise.p2),
        np.log1p(-permanent) + log_binomial(ones, reports, noise.q2),
    )
    return likelihood


def evidence(reports: int, noise: Noise, *, memoised: bool = True) -> Numbers:
    """How strongly 0, 1, ..., T ones in T reports speak for a bit's being set: a log likelihood ratio for each."""
    ones = np.arange(reports + 1)
    if memoised:
        return log_memoised(ones, reports, noise, noise.p1) - log_memoised(ones, reports, noise, noise.q1)
    return log_binomial(ones, reports, noise.truth) - log_binomial(ones, reports, noise.lie)


def seeded(metric: Metric, rng: np.random.Generator) -> Metric:
    """A metric whose fresh noise comes from a generator: the shipped client then does the same for the same seed.

    The client hands its response the operating system's randomness; this response draws from `rng` instead. All else is
    the metric's own.
    """
    response = copy.copy(metric.response)
    step = metric.response.instantaneous
    object.__setattr__(response, "instantaneous", lambda bits, size, _: step(bits, size, rng.bytes))
    return dataclasses.replace(metric, response=response)
