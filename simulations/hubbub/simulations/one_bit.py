"""One-bit mean of whole populations, many trials at once; metric, noise and grid are the shipped ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.decode.noise import Noise
from hubbub.shared.encode import Rounding
from hubbub.simulations.aggregate import respond
from hubbub.simulations.distributions import counts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.decode.noise import Numbers
    from hubbub.shared.metric import Metric


@dataclass(frozen=True, eq=False)
class Crowd:
    """Numbers, and how many devices hold each."""

    values: Numbers
    counts: NDArray[np.int64]

    @classmethod
    def spread(cls, spread: Numbers, low: float, high: float, devices: int) -> Crowd:
        """Spread devices over evenly spaced numbers from `low` to `high`; numbers that nobody holds are left out."""
        values, counts = np.linspace(low, high, len(spread)), counts_of(spread, devices)
        return cls(values[counts > 0], counts[counts > 0])

    @property
    def devices(self) -> int:
        """How many there are in all."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """The truth."""
        return float(self.values @ self.counts) / self.devices


def direct_estimates(metric: Metric, crowd: Crowd, trials: int, rng: np.random.Generator) -> Numbers:
    """Draw estimates as the paper states one-bit mean: each device sends 1 with a chance that is linear in its number.

    The ones among the devices that hold one number are binomial.
    """
    noise, places = Noise.of(metric.response), _places(metric, crowd)
    sent = rng.binomial(crowd.counts, noise.lie + noise.slope * places, (trials, len(places))).sum(axis=1)
    return _means(metric, noise, sent, crowd.devices)


def rounded_estimates(metric: Metric, crowd: Crowd, trials: int, rng: np.random.Generator) -> Numbers:
    """Draw estimates as devices make them: numbers are rounded by secret offsets, and the bits are then randomised."""
    noise, places = Noise.of(metric.response), _places(metric, crowd)
    rounded_up = rng.binomial(crowd.counts, places, (trials, len(places))).sum(axis=1, keepdims=True)
    sent = respond(rounded_up, np.full(trials, crowd.devices), noise, rng)
    return _means(metric, noise, sent[:, 0], crowd.devices)


def theory(metric: Metric, crowd: Crowd) -> float:
    """The standard error of the mean of one report each: every device adds r(1 - r)/(P - Q)^2 of its own."""
    encoding, variances = _encoding(metric), Noise.of(metric.response).variance(_places(metric, crowd))
    return (encoding.high - encoding.low) * math.sqrt(float(variances @ crowd.counts)) / crowd.devices


def _places(metric: Metric, crowd: Crowd) -> Numbers:
    """Where the numbers are in the range, from 0 to 1, on the grid of the encoding."""
    encoding = _encoding(metric)
    return np.array([encoding.place(value) / encoding.offsets for value in crowd.values.tolist()])


def _means(metric: Metric, noise: Noise, sent: NDArray[np.int64], devices: int) -> Numbers:
    encoding = _encoding(metric)
    shares = noise.debias(sent.astype(np.float64), np.full(len(sent), float(devices)))
    return encoding.low + (encoding.high - encoding.low) * shares


def _encoding(metric: Metric) -> Rounding:
    if not isinstance(metric.encoding, Rounding):  # pragma: no cover  (only means are declared here)
        raise TypeError(metric.kind)
    return metric.encoding
