"""Counting an archive with numpy and with numba, sorted by cohort and without cohorts: `python -m benchmarks counters`.

All of it, from the open file to the tally, in processor time of one process; all take turns, and the best round of each
counts. Files are read from memory. HUBBUB_BENCH_QUICK=1 takes fewer reports.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import writing
from benchmarks.aggregate import BITS, COHORTS, fill
from benchmarks.counting import ALONE, fastest
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
REPORTS = 4_000_000 if QUICK else 16_000_000
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


def measure() -> dict[str, float]:
    """Reports a second by counter and kind of archive; the tallies of each kind have to be the same."""
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
        return {name: REPORTS / seconds for name, seconds in fastest(contestants).items()}


def table(rates: dict[str, float]) -> str:
    """The rates, and each beside the same counter without cohorts."""
    rows = []
    for engine in ENGINES:
        for each in FILES:
            for kind in KINDS:
                rate = rates[name_of(engine, kind, each)]
                beside = rate / rates[name_of(engine, ALONE, each)]
                rows.append([f"{engine}, {kind}", f"{each:,}", f"{rate / 1e6:,.1f}", f"{beside:.2f}"])
    return f"{REPORTS:,} reports of {BITS} bits, from the open file to the tally, one process:\n\n" + writing.table(
        ["", "reports of a file", "million reports/s", "of without cohorts"], rows
    )
