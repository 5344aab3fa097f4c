"""Measuring several things side by side."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROUNDS = 300
CALLS = 200

RESAMPLED = 2000
SURE = 0.95
"""With a ratio, the interval is told that holds so much of what as many rounds would give, drawn from all of them."""


def fastest(
    contestants: Mapping[str, Callable[[], object]], rounds: int = ROUNDS, calls: int = CALLS
) -> dict[str, float]:
    """Seconds a call of each contestant, taking turns; the fastest round counts, as the one least disturbed."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, call in contestants.items():
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / calls)
    return best


def mean_rate(seconds: Sequence[float]) -> float:
    """How often in a second, on average over all rounds."""
    return statistics.mean(1 / each for each in seconds)


def between(one: Sequence[float], other: Sequence[float], in_round: int = 1) -> tuple[float, float]:
    """From where to where the ratio of their mean rates would be in other rounds.

    Both have so many times in a round, and as many rounds, which they shared: what one round has of both is drawn
    together.
    """
    rates = 1 / np.array([one, other]).reshape(2, -1, in_round)
    rounds = rates.shape[1]
    drawn = np.random.default_rng(1).integers(rounds, size=(RESAMPLED, rounds))
    first, second = rates.mean(axis=2)[:, drawn].mean(axis=2)
    low, high = np.quantile(first / second, [(1 - SURE) / 2, (1 + SURE) / 2])
    return float(low), float(high)


def show(title: str, unit: str, best: Mapping[str, float], limits: Mapping[str, float] | None = None) -> None:
    """Print microseconds and multiples of the unit, with what was wanted where something was."""
    print(f"\n{title}")
    width = len(unit) + 5
    print(f"  {'':42}{'us':>11}{'x ' + unit:>{width}}{'wanted':>9}")
    for name, seconds in best.items():
        limit = (limits or {}).get(name)
        wanted = f"<= {limit:g}" if limit is not None else ""
        print(f"  {name:42}{seconds * 1e6:11.2f}{seconds / best[unit]:{width}.2f}{wanted:>9}".rstrip())
