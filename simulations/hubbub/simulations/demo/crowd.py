"""The crowd of the demo: what its devices truly hold, day by day, and what they report."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hubbub.shared.period import period_of
from hubbub.simulations.devices import simulate_devices
from hubbub.simulations.population import Life
from hubbub.simulations.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date

    from numpy.typing import NDArray

    from hubbub.collector import Tally
    from hubbub.shared import Metric, Registry

    Point = TypeVar("Point")
    Answer = TypeVar("Answer")

DAYS = 30

SITES = tuple(f"site-{number:02}.example" for number in range(1, 19))
NOBODYS = ("nobody-1.example", "nobody-2.example")
"""The analyst asks about these too, and no device has them."""

CANDIDATES = (*SITES, *NOBODYS)
UNLISTED = tuple(f"unlisted-{number}.example" for number in range(1, 11))
"""Some devices have these, and nobody asks about them."""


@dataclass(frozen=True)
class Habit:
    """How common each value of a metric is, roughly, and how likely a device changes its own from period to period."""

    weights: dict[Any, float]
    change: float


HABITS = {
    "homepage": Habit(
        {site: 1 / rank for rank, site in enumerate(SITES, 1)} | dict.fromkeys(UNLISTED, 0.02), change=0.01
    ),
    "theme": Habit({"light": 5.0, "dark": 3.0, "system": 2.0}, change=0.03),
    "crashed": Habit({True: 0.04, False: 0.96}, change=0.2),
    "minutes_used": Habit({float(minutes): math.exp(-minutes / 90) for minutes in range(0, 481, 5)}, change=0.2),
    "startup_ms": Habit(
        {float(ms): math.exp(-((math.log(ms) - 6.5) ** 2) / 0.98) / ms for ms in range(25, 8000, 50)}, change=0.1
    ),
}
"""One for each metric of the registry."""


@dataclass(frozen=True)
class Told:
    """What came of one metric: the tallies of the simulated devices, and the truth about all."""

    metric: Metric
    periods: list[date]
    tallies: list[Tally]
    truth: dict[Any, float]
    """The share of each value, over all reports of all periods."""


@dataclass(frozen=True)
class Crowd:
    """Simulated devices that have reported, and the days of the real clients that are yet to."""

    first_day: date
    metrics: dict[str, Told]
    lives: list[list[dict[str, Any]]]
    """For each real client and each day what it records."""

    @property
    def last_day(self) -> date:
        """The last of its days."""
        return self.first_day + timedelta(days=DAYS - 1)


def gather(registry: Registry, devices: int, clients: int, seed: int, today: date) -> Crowd:
    """Let a crowd live for the days up to yesterday; all of it follows from the seed, except the clients' own noise."""
    first_day = today - timedelta(days=DAYS)
    metrics: dict[str, Told] = {}
    lives: list[list[dict[str, Any]]] = [[{} for _ in range(DAYS)] for _ in range(clients)]
    for number, (name, metric) in enumerate(registry.items()):
        rng = np.random.default_rng([seed, number])
        habit = HABITS[name]
        values = list(habit.weights)
        # Another seed, another truth: nobody can have written the answers down before.
        weights = np.array(list(habit.weights.values())) * rng.uniform(0.5, 1.5, len(values))
        shares = weights / weights.sum()
        periods = _periods(metric, first_day, today)
        simulated = simulate_devices(
            metric,
            dict(zip(values, rng.multinomial(devices - clients, shares).tolist(), strict=True)),
            seed=[seed, number],
            periods=len(periods),
            life=Life(change=habit.change),
            start=periods[0],
            work=_Labelled(name),
        )
        held = _live(clients, shares, habit.change, len(periods), rng)
        _write_down(lives, metric, first_day, periods, [[values[each] for each in row] for row in held])
        counts = simulated.counted.sum(axis=0) + np.bincount(held.ravel(), minlength=len(values))
        truth = dict(zip(values, (counts / counts.sum()).tolist(), strict=True))
        metrics[name] = Told(metric, periods, simulated.tallies, truth)
    return Crowd(first_day, metrics, lives)


def mean_of(truth: dict[Any, float]) -> float:
    """The true mean."""
    return math.fsum(value * share for value, share in truth.items())


def shares_of(truth: dict[Any, float], name: Callable[[Any], str]) -> Counter[str]:
    """True shares, by the names that values have in an estimate."""
    shares: Counter[str] = Counter()
    for value, share in truth.items():
        shares[name(value)] += share  # type: ignore[assignment]  # a counter adds up whatever is added to it
    return shares


class _Labelled(Work):
    """Work whose progress bar says which metric it is about."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def map(
        self,
        function: Callable[[Point, np.random.Generator], Answer],
        points: Sequence[Point],
        *,
        seed: int | Sequence[int],
        label: str = "",
    ) -> list[Answer]:
        return super().map(function, points, seed=seed, label=f"{label} report {self._what}")


def _periods(metric: Metric, first_day: date, today: date) -> list[date]:
    """The periods that the days fall in, without a week that is not over: its reports are not sent yet."""
    length = timedelta(days=7 if metric.every == "week" else 1)
    found = {period_of(metric.every, first_day + timedelta(days=number)) for number in range(DAYS)}
    return sorted(period for period in found if period + length <= today)


def _live(
    devices: int, shares: NDArray[np.float64], change: float, periods: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the number of the value that each device holds in each period, as `simulate_devices` does."""
    held = rng.choice(len(shares), size=(devices, periods), p=shares)
    for period in range(1, periods):
        same = rng.random(devices) >= change
        held[same, period] = held[same, period - 1]
    return held


def _write_down(
    lives: list[list[dict[str, Any]]], metric: Metric, first_day: date, periods: list[date], held: list[list[Any]]
) -> None:
    """Let each device record its value once a period, on its first day."""
    for number, period in enumerate(periods):
        day = max((period - first_day).days, 0)
        for life, values in zip(lives, held, strict=True):
            life[day][metric.name] = values[number]
