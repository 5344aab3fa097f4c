"""Measuring several things side by side."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROUNDS = 300
CALLS = 200


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


def show(title: str, unit: str, best: Mapping[str, float], limits: Mapping[str, float] | None = None) -> None:
    """Print microseconds and multiples of the unit, with what was wanted where something was."""
    print(f"\n{title}")
    width = len(unit) + 5
    print(f"  {'':42}{'us':>11}{'x ' + unit:>{width}}{'wanted':>9}")
    for name, seconds in best.items():
        limit = (limits or {}).get(name)
        wanted = f"<= {limit:g}" if limit is not None else ""
        print(f"  {name:42}{seconds * 1e6:11.2f}{seconds / best[unit]:{width}.2f}{wanted:>9}".rstrip())
