"""A collector with a crowd's reports in its store: five metrics, one of each kind, over thirty periods."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import requests

from hubbub.collector import Tally
from hubbub.collector.store import Store
from hubbub.shared import Registry
from hubbub.simulations import simulate_devices
from hubbub.simulations.live import LiveCollector
from hubbub.simulations.population import Life

METRICS = """
[metrics.homepage]
description = "The site that opens first"
kind = "string"
every = "day"
bits = 64
hashes = 1
cohorts = 16
lifetime_values = 8
owner = "browser team"
privacy = { report = 2.0, lifetime = 4.0 }

[metrics.theme]
description = "Colour theme that is chosen in the settings"
kind = "category"
every = "week"
categories = ["light", "dark", "system"]
privacy = { report = 1.0, lifetime = 2.0 }

[metrics.crashed]
description = "Whether the app crashed on that day"
kind = "flag"
every = "day"
privacy = { report = 1.0, lifetime = 2.0 }

[metrics.minutes_used]
description = "Minutes of use a day"
kind = "mean"
every = "day"
low = 0
high = 480
combine = "sum"
privacy = { epsilon = 1, gamma = 0.1 }

[metrics.startup_ms]
description = "Milliseconds that the start took"
kind = "histogram"
every = "day"
edges = [0, 100, 200, 400, 800, 1600, 3200, 6400]
sent = 4
privacy = { report = 1.0, lifetime = 4.0 }
"""
KINDS = {
    "homepage": "string",
    "theme": "category",
    "crashed": "flag",
    "minutes_used": "mean",
    "startup_ms": "histogram",
}
PERIODS = 30
LAST_DAY = date(2026, 11, 8)
"""A Sunday, so that the last week and the last day end together."""

SITES = [f"site-{number:02}.example" for number in range(1, 13)]
CANDIDATES = [*SITES, "nobody-1.example", "nobody-2.example"]


@dataclass(frozen=True)
class Habit:
    """How common each value of a metric is, and how likely a device has another one in the next period."""

    weights: Mapping[Any, float]
    change: float = 0.05
    join: float = 0.3
    """The share of devices that are new, and arrive one after another."""
    leave: float = 0.0
    periods: int = PERIODS


HABITS = {
    "homepage": Habit({site: 1 / rank for rank, site in enumerate(SITES, 1)}, change=0.01, join=0.6),
    "theme": Habit({"light": 5.0, "dark": 3.0, "system": 2.0}, leave=0.02),
    "crashed": Habit({True: 0.06, False: 0.94}, change=0.2, join=0.5, leave=0.03),
    "minutes_used": Habit(
        {float(minutes): math.exp(-minutes / 90) for minutes in range(0, 481, 5)}, 0.2, join=0.8, leave=0.01
    ),
    "startup_ms": Habit(
        {float(ms): math.exp(-((math.log(ms) - 6.5) ** 2) / 0.98) / ms for ms in range(25, 6400, 50)}, change=0.1
    ),
}


@contextmanager
def collecting(
    folder: Path,
    registry: str = METRICS,
    habits: Mapping[str, Habit] = HABITS,
    *,
    devices: int,
    candidates: Mapping[str, Iterable[str]] | None = None,
    guarded: bool = True,
) -> Iterator[LiveCollector]:
    """A real collector in a process of its own, whose store holds the reports of some simulated devices."""
    collector = LiveCollector(registry, folder=folder, guarded=guarded)
    store = Store(collector.store)
    store.prepare(collector.registry)
    for number, (name, habit) in enumerate(habits.items()):
        store.add(tallies_of(collector.registry, name, habit, devices, seed=number))
    store.close()
    with collector:
        for name, strings in ({"homepage": CANDIDATES} | dict(candidates or {})).items():
            collector.put_candidates(name, strings)
        yield collector


def tallies_of(registry: Registry, name: str, habit: Habit, devices: int, seed: int) -> list[Tally]:
    """Let devices report for some periods, the last of which ends on the last day."""
    metric = registry[name]
    length = timedelta(days=7 if metric.every == "week" else 1)
    total = sum(habit.weights.values())
    truth = {value: round(devices * weight / total) for value, weight in habit.weights.items()}
    start = LAST_DAY - length * habit.periods + timedelta(days=1)
    life = Life(change=habit.change, join=habit.join, leave=habit.leave)
    return simulate_devices(metric, truth, seed=seed, periods=habit.periods, life=life, start=start).tallies


def wait_until_shown(collector: LiveCollector, path: str) -> None:
    """Ask for a page until nothing on it is still being worked out. Each answer is waited for by the collector."""
    headers = {"Accept": "text/html"} | ({"Authorization": f"Bearer {collector.token}"} if collector.token else {})
    while True:
        answer = requests.get(f"{collector.url}{path}", headers=headers, timeout=60)
        answer.raise_for_status()
        if answer.status_code == 200 and "history-waiting" not in answer.text:
            return
