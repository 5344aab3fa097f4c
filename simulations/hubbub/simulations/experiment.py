"""What an experiment is: a setting, a computation, its data, its figure, and what was claimed about it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from hubbub.collector.charts import Figure
    from hubbub.simulations.work import Work

Cell: TypeAlias = str | int | float | None
Point = TypeVar("Point")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Claim:
    """What someone said about it, and what we found."""

    what: str
    source: str
    claimed: str
    ours: str
    verified: bool = True
    """Whether the claim was read or computed; what is only remembered is shown as unverified."""


@dataclass(frozen=True, slots=True)
class Result:
    """The data of an experiment, one row a point, and the figure drawn from them."""

    rows: Sequence[dict[str, Cell]]
    figure: Figure
    claims: Sequence[Claim] = ()


@dataclass(frozen=True, slots=True)
class Own:
    """What a user brings along: a metric of a registry, and how its values are spread."""

    registry: str | None = None
    metric: str | None = None
    distribution: str | None = None


@dataclass
class Run:
    """One run of an experiment: how many devices, how often, from which seed, and who does the work."""

    name: str
    devices: int
    trials: int
    seed: int
    work: Work
    own: Own = field(default_factory=Own)
    _maps: int = 0

    def __post_init__(self) -> None:
        for name, number in (("devices", self.devices), ("trials", self.trials)):
            if number < 1:
                raise ParameterError(f"{name}: {number} is none; allowed: 1 and above")
        if self.seed < 0:
            raise ParameterError(f"seed: {self.seed} is negative; allowed: 0 and above")

    def map(
        self, function: Callable[[Point, np.random.Generator], Answer], points: Sequence[Point], label: str = ""
    ) -> list[Answer]:
        """Do it at every point, with a generator of its own for each."""
        self._maps += 1
        seed = (self.seed, zlib.crc32(self.name.encode()), self._maps)
        return self.work.map(function, points, seed=seed, label=label or self.name)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A named experiment, with the size it has when nobody says otherwise."""

    name: str
    title: str
    """What it asks, in one line."""
    setting: str
    """The published setting, or ours, in one or two sentences."""
    devices: int
    """The largest population in it."""
    trials: int
    """How often each point is repeated."""
    run: Callable[[Run], Result]
