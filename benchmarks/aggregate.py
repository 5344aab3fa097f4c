"""Counting an archive, here and on Dask, with one worker and with two: `python -m benchmarks aggregate`.

50 million reports of 128 bits; HUBBUB_BENCH_QUICK=1 makes it 5 million. Workers are up and have their libraries loaded
before a count is timed; how long that takes is told beside it. Engines take turns, and of each the median of all counts
is taken: two workers need both cores of a machine to themselves, one needs either, so that the fastest of many counts
would be a luckier one for one worker. It is told as well.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.archive.aggregate import aggregate
from hubbub.collector.archive.choice import Choice
from hubbub.collector.archive.file import FileHead, encode_file, new_name
from hubbub.collector.archive.place import Place
from hubbub.collector.work import Workers, own_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
REPORTS = 5_000_000 if QUICK else 50_000_000
EACH = 1_000_000
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
        names = [f"{engine}, {number}" for engine in ("local", "Dask") for number in (1, 2)]
        starts = dict.fromkeys(names, float("inf"))
        times: dict[str, list[float]] = {name: [] for name in names}
        tallies = set()
        for name in names * ROUNDS:
            engine, number = name.split(", ")
            begin = time.perf_counter()
            with _workers(engine, int(number)) as hands:
                for turn in range(COUNTS + 1):
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


@contextlib.contextmanager
def _workers(engine: str, number: int) -> Iterator[Workers]:
    with contextlib.ExitStack() as opened:
        address = opened.enter_context(dask(number)) if engine == "Dask" else None
        yield opened.enter_context(Workers(number, address))


def fill(place: Place, reports: int = REPORTS, cohorts: int = COHORTS, each: int = EACH) -> None:
    """Write the archive: some of its files have the same content, which takes as long to count as any."""
    rng = np.random.default_rng(1)
    files = reports // each
    for number in range(min(PERIODS, files)):
        head = FileHead("m", 1, date(2026, 11, 16) + timedelta(number), BITS, cohorts, "0" * 64, each)
        packed = rng.integers(0, 256, (each, BITS // 8), dtype=np.uint8)
        content = encode_file("m", head, rng.integers(0, cohorts, each), packed)
        for _ in range(number, files, PERIODS):
            place.write(new_name(head), content)


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
        rate = REPORTS / seconds / 1e6
        print(f"  {name:18}{found.starts[name]:9.2f}{seconds:8.3f}{rate:11.1f}{found.best[name]:11.3f}")
    for one, other, wanted in RATIOS:
        asked = f", wanted >= {wanted:g}" if wanted else ""
        ratio, of_fastest = (times[other] / times[one] for times in (found.median, found.best))
        print(f"  {one} is {ratio:.2f} times as fast as {other}{asked} (by the fastest counts {of_fastest:.2f})")
