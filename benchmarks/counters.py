"""Counting an archive with numpy and with numba, sorted by cohort and without cohorts: `python -m benchmarks counters`.

All of it, from the open file to the tally, in processor time of one process; all take turns, and the rate of each is
the mean of its rates in all rounds, for the fastest of a dozen is often a lucky one. Files are read from memory.
HUBBUB_BENCH_QUICK=1 takes fewer reports.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import writing
from benchmarks.aggregate import BITS, COHORTS, fill
from benchmarks.counting import ALONE
from benchmarks.ratios import SURE, between, mean_rate
from hubbub.collector.archive.aggregate import aggregate
from hubbub.collector.archive.choice import Choice
from hubbub.collector.archive.keeping import DEFAULT_REPORTS
from hubbub.collector.archive.place import Place
from hubbub.collector.count import ENGINES
from hubbub.collector.work import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
PAGE = "docs/decisions/counting.md"
REPORTS = 4_000_000 if QUICK else 48_000_000
ROUNDS = 2 if QUICK else 24
FILES = (1_000_000, DEFAULT_REPORTS)
"""Reports of a file: what a collector has of a metric after an hour or two, and what makes it begin a new one."""
GROUPED = f"{COHORTS} cohorts"
KINDS = {ALONE: 1, GROUPED: COHORTS}


def name_of(engine: str, kind: str, each: int) -> str:
    """Name one way of counting one archive."""
    return f"{engine}, files of {each:,}, {kind}"


RATIOS = [
    *((name_of(engine, GROUPED, each), name_of(engine, ALONE, each)) for each in FILES for engine in ENGINES),
    *((name_of(ENGINES[1], kind, each), name_of(ENGINES[0], kind, each)) for each in FILES for kind in KINDS),
]
"""What is measured beside what."""


def main() -> None:
    """Print the table, and write it where that was asked for."""
    text = table(measure())
    print(f"\n{text}")
    if writing.wanted():
        writing.write_section(PAGE, "counting-files", text)


def measure() -> dict[str, list[float]]:
    """Seconds by counter and kind of archive, round by round; the tallies of each kind have to be the same."""
    with ExitStack() as opened:
        hands = opened.enter_context(Workers())
        contestants: dict[str, Callable[[], object]] = {}
        for each in FILES:
            for kind, cohorts in KINDS.items():
                place = Place(opened.enter_context(tempfile.TemporaryDirectory()))
                fill(place, REPORTS, cohorts, each)
                count = partial(aggregate, place, Choice(), hands, place.files())
                if len({count(engine=engine).tally().json() for engine in ENGINES}) > 1:
                    raise AssertionError(f"the tallies of {' and '.join(ENGINES)} differ: files of {each}, {kind}")
                contestants |= {name_of(engine, kind, each): partial(count, engine=engine) for engine in ENGINES}
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(ROUNDS):
            for name, call in contestants.items():
                begin = time.process_time()
                call()
                times[name].append(time.process_time() - begin)
        return times


def rate(times: list[float]) -> float:
    """Reports a second."""
    return REPORTS * mean_rate(times)


def table(times: dict[str, list[float]]) -> str:
    """The rates, and each beside the same counter without cohorts."""
    rows = []
    for engine in ENGINES:
        for each in FILES:
            alone = times[name_of(engine, ALONE, each)]
            for kind in KINDS:
                own = times[name_of(engine, kind, each)]
                low, high = between(own, alone)
                beside = f"{rate(own) / rate(alone):.2f}" + (f" ({low:.2f} to {high:.2f})" if kind == GROUPED else "")
                rows.append([f"{engine}, {kind}", f"{each:,}", f"{rate(own) / 1e6:,.1f}", beside])
    told = f"{REPORTS:,} reports of {BITS} bits, from the open file to the tally, one process, {ROUNDS} rounds:"
    header = ["", "reports of a file", "million reports/s", f"of without cohorts ({SURE:.0%} of other runs)"]
    return f"{told}\n\n{writing.table(header, rows)}"
