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
from benchmarks.aggregate import BITS, COHORTS, EACH, fill
from benchmarks.counting import ALONE, fastest
from hubbub.collector.archive.aggregate import aggregate
from hubbub.collector.archive.choice import Choice
from hubbub.collector.archive.place import Place
from hubbub.collector.count import ENGINES
from hubbub.collector.work import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
PAGE = "docs/decisions/counting.md"
REPORTS = 5_000_000 if QUICK else 10_000_000
GROUPED = f"{COHORTS} cohorts"
KINDS = {ALONE: 1, GROUPED: COHORTS}
RATIOS = [
    *((f"{engine}, {GROUPED}", f"{engine}, {ALONE}") for engine in ENGINES),
    *((f"{ENGINES[1]}, {kind}", f"{ENGINES[0]}, {kind}") for kind in KINDS),
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
        for kind, cohorts in KINDS.items():
            place = Place(opened.enter_context(tempfile.TemporaryDirectory()))
            fill(place, REPORTS, cohorts)
            count = partial(aggregate, place, Choice(), hands, place.files())
            if len({count(engine=engine).tally().json() for engine in ENGINES}) > 1:
                raise AssertionError(f"the tallies of {' and '.join(ENGINES)} differ: {kind}")
            contestants |= {f"{engine}, {kind}": partial(count, engine=engine) for engine in ENGINES}
        return {name: REPORTS / seconds for name, seconds in fastest(contestants).items()}


def table(rates: dict[str, float]) -> str:
    """The rates, and each beside the same counter without cohorts."""
    rows = [
        [name, f"{rates[name] / 1e6:,.1f}", f"{rates[name] / rates[f'{engine}, {ALONE}']:.2f}"]
        for engine in ENGINES
        for name in rates
        if name.startswith(engine)
    ]
    return (
        f"{REPORTS:,} reports of {BITS} bits in files of {EACH:,}, from the open file to the tally, one process:\n\n"
        + writing.table(["", "million reports/s", "of without cohorts"], rows)
    )
