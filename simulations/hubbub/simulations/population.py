"""A population: who holds which value, and how devices live on from period to period."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.shared.errors import ParameterError, ValueRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from hubbub.shared.metric import Metric
    from hubbub.simulations.encoders import Indices

MOST_DEVICES = (1 << 63) - 1
"""What a tally can count."""


@dataclass(frozen=True, eq=False)
class Truth:
    """How many devices hold each value."""

    values: tuple[Any, ...]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, metric: Metric, truth: Mapping[Any, int], devices: int | None = None) -> Truth:
        """Check a truth, and its sum if `devices` is given; the value None means devices without a valid value."""
        total = 0
        for value, count in truth.items():
            if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
                raise ParameterError(f"truth: holds a count of type {type(count).__name__}; allowed: whole numbers")
            if count < 0:
                raise ParameterError("truth: holds a negative count; allowed: 0 and above")
            if value is None and not metric.encoding.has_null:
                raise ParameterError(f"truth: None is not possible, because a {metric.kind} has no null encoding")
            try:
                if value is not None:
                    metric.encode(value, 0, 0)
            except ValueRefusedError as error:
                raise ParameterError(f"truth: {error}") from None
            total += int(count)
        if total > MOST_DEVICES:
            raise ParameterError(f"truth: sums up to {total} devices; allowed: at most {MOST_DEVICES}")
        if devices is not None and total != devices:
            raise ParameterError(f"truth: sums up to {total} devices; allowed: the {devices} that were asked for")
        if total == 0:
            raise ParameterError("truth: holds no device; allowed: at least one")
        return cls(tuple(truth), np.array(list(truth.values()), np.int64))

    @property
    def devices(self) -> int:
        """How many there are in all."""
        return int(self.counts.sum())

    def held_by(self, start: int, stop: int) -> Indices:
        """Tell which value, by its number, each of some devices holds at first: those of the first one come first."""
        return np.searchsorted(np.cumsum(self.counts), np.arange(start, stop), side="right")

    def draw(self, number: int, rng: np.random.Generator) -> Indices:
        """Draw values as often as they are held."""
        return np.searchsorted(np.cumsum(self.counts), rng.integers(self.devices, size=number), side="right")

    def count(self, held: Indices) -> NDArray[np.int64]:
        """Count how many of some devices hold each value."""
        return np.bincount(held, minlength=len(self.values))


@dataclass(frozen=True)
class Life:
    """How devices behave; all are probabilities, and by default nothing ever happens."""

    change: float = 0.0
    """That a device draws a new value, in each period after its first; it may draw the one it had."""
    join: float = 0.0
    """That a device is not there at the start, but arrives in one of the later periods, each as likely as another."""
    leave: float = 0.0
    """That a device which was there in a period is gone for good in the next."""
    lost: float = 0.0
    """That a report is sent and never arrives."""
    repeated: float = 0.0
    """That a report which arrives does so twice, because the sender did not hear the answer."""

    def __post_init__(self) -> None:
        for each in fields(self):
            probability = getattr(self, each.name)
            if isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0 <= probability <= 1:
                raise ParameterError(f"{each.name} = {probability}; allowed: a probability, from 0 to 1")


@dataclass(frozen=True, eq=False)
class Stays:
    """From when on each of some devices is there, and when it is no more."""

    arrives: Indices
    leaves: Indices

    @classmethod
    def draw(cls, devices: int, life: Life, periods: int, rng: np.random.Generator) -> Stays:
        """Draw the lives of some devices."""
        arrives = np.zeros(devices, np.int64)
        if life.join:
            late = rng.random(devices) < life.join
            arrives[late] = rng.integers(1, periods, size=int(late.sum()))
        leaves = np.full(devices, periods, np.int64)
        if life.leave:
            leaves = np.minimum(arrives + rng.geometric(life.leave, size=devices), periods)
        return cls(arrives, leaves)

    def present(self, period: int) -> Indices:
        """List the devices that are there in a period."""
        return np.flatnonzero((self.arrives <= period) & (period < self.leaves))

    def staying(self, period: int) -> Indices:
        """List those that were there in the period before as well."""
        return np.flatnonzero((self.arrives < period) & (period < self.leaves))
