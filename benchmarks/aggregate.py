"""Counting an archive, here and on Dask, with one worker and with two: `python -m benchmarks aggregate`.

50 million reports of 128 bits, in files as large as a collector makes them; HUBBUB_BENCH_QUICK=1 makes it 5 million.
Workers are up and have their libraries loaded before a count is timed; how long that takes is told beside it. Engines
take turns, and of each the median of all counts is taken: two workers need both cores of a machine to themselves, one
needs either, so that the fastest of many counts would be a luckier one for one worker. It is told as well. And beside
them, in turn, what two processes that have nothing to share gain: about what can be asked of an engine, for it too
differs from run to run.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.archive.aggregate import aggregate
from hubbub.collector.archive.choice import Choice
from hubbub.collector.archive.file import FileHead, encode_file, new_name
from hubbub.collector.archive.keeping import DEFAULT_REPORTS
from hubbub.collector.archive.place import Place
from hubbub.collector.work import Workers, own_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
REPORTS = 5_000_000 if QUICK else 50_000_000
PERIODS = 5
BITS = 128
COHORTS = 64
ROUNDS, COUNTS = (1, 1) if QUICK else (8, 3)
"""Times that workers are started, and counts that are timed each time."""

RATIOS = [
    ("Dask, 2", "Dask, 1", 1.7),
    ("local, 2", "local, 1", None),
    ("local, 1", "Dask, 1", 1.0),
    ("local, 2", "Dask, 2", 1.0),
]
"""What is measured beside what, and how many times as fast it has to be."""

ALONE = "arithmetic"
"""No engine: each process reckons for itself, and needs no memory."""
LIMIT = (f"{ALONE}, 2", f"{ALONE}, 1", None)
STEPS = 100_000 if QUICK else 3_000_000


class Measured(NamedTuple):
    """Seconds by engine and number of workers."""

    files: int
    size: int
    """Bytes of all files."""
    starts: dict[str, float]
    """Until workers were there and had counted for the first time, which loads their libraries."""
    median: dict[str, float]
    """Of the counts after that."""
    best: dict[str, float]
    """Of the fastest of these."""
    alike: bool
    """Whether all tallies are identical."""


def main() -> None:
    found = measure()
    print(
        f"\nCounting an archive of {REPORTS:,} reports of {BITS} bits: {found.files} files, {found.size / 1e6:,.0f} MB"
    )
    show(found)
    if not found.alike:
        sys.exit("the tallies differ")
    print("  all tallies are identical")


def measure() -> Measured:
    """Let all engines take turns. Nobody else's workers are up meanwhile: those of Dask are never quite idle."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        fill(place)
        files = place.files()
        names = [f"{engine}, {number}" for engine in ("local", "Dask", ALONE) for number in (1, 2)]
        starts = dict.fromkeys(names, float("inf"))
        times: dict[str, list[float]] = {name: [] for name in names}
        tallies = set()
        for name in names * ROUNDS:
            engine, number = name.split(", ")
            begin = time.perf_counter()
            with _workers(engine, int(number)) as hands:
                for turn in range(COUNTS + 1):
                    if engine == ALONE:
                        deque(hands.map(reckon, [STEPS] * 2), maxlen=0)
                    else:
                        tallies.add(aggregate(place, Choice(), hands, files).tally().json())
                    took = time.perf_counter() - begin
                    if turn:
                        times[name].append(took)
                    else:
                        starts[name] = min(starts[name], took)
                    begin = time.perf_counter()
    median = {name: statistics.median(took) for name, took in times.items()}
    best = {name: min(took) for name, took in times.items()}
    return Measured(len(files), sum(file.size for file in files), starts, median, best, len(tallies) == 1)


def reckon(steps: int) -> int:
    """Keep a core busy, and nothing else."""
    total = 0
    for step in range(steps):
        total += step * step
    return total


@contextlib.contextmanager
def _workers(engine: str, number: int) -> Iterator[Workers]:
    with contextlib.ExitStack() as opened:
        address = opened.enter_context(dask(number)) if engine == "Dask" else None
        yield opened.enter_context(Workers(number, address))


def fill(place: Place, reports: int = REPORTS, cohorts: int = COHORTS, each: int = DEFAULT_REPORTS) -> None:
    """Write the archive: some of its files have the same content, which takes as long to count as any."""
    rng = np.random.default_rng(1)
    whole, rest = divmod(reports, each)
    for number in range(min(PERIODS, whole)):
        head, content = _file(rng, number, cohorts, each)
        for _ in range(number, whole, PERIODS):
            place.write(new_name(head), content)
    if rest:
        head, content = _file(rng, 0, cohorts, rest)
        place.write(new_name(head), content)


def _file(rng: np.random.Generator, day: int, cohorts: int, reports: int) -> tuple[FileHead, bytes]:
    head = FileHead("m", 1, date(2026, 11, 16) + timedelta(day), BITS, cohorts, "0" * 64, reports)
    packed = rng.integers(0, 256, (reports, BITS // 8), dtype=np.uint8)
    return head, encode_file("m", head, rng.integers(0, cohorts, reports), packed)


@contextlib.contextmanager
def dask(workers: int) -> Iterator[str]:
    """Run a cluster of so many processes, of one thread each: as `hubbub aggregate --engine dask` does."""
    before = set(os.environ)
    with own_cluster(workers) as scheduler:
        # Dask sets some for its workers here, among them one that makes memory slower; others must not inherit it.
        for name in set(os.environ) - before:
            del os.environ[name]
        yield scheduler


def show(found: Measured) -> None:
    print(f"  {'engine, workers':18}{'first s':>9}{'s':>8}{'million/s':>11}{'fastest s':>11}")
    for name, seconds in found.median.items():
        rate = "" if name.startswith(ALONE) else f"{REPORTS / seconds / 1e6:.1f}"
        print(f"  {name:18}{found.starts[name]:9.2f}{seconds:8.3f}{rate:>11}{found.best[name]:11.3f}")
    for one, other, wanted in (*RATIOS, LIMIT):
        asked = f", wanted >= {wanted:g}" if wanted else ""
        ratio, of_fastest = (times[other] / times[one] for times in (found.median, found.best))
        print(f"  {one} is {ratio:.2f} times as fast as {other}{asked} (by the fastest counts {of_fastest:.2f})")
