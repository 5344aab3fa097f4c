"""Counting an archive, here and on Dask, with one worker and with two: `python -m benchmarks aggregate`.

50 million reports of 128 bits, in files as large as a collector makes them; HUBBUB_BENCH_QUICK=1 makes it 5 million.
Workers are up and have their libraries loaded before a count is timed; how long that takes is told beside it. Engines
take turns, and nobody else's workers are up meanwhile: those of Dask are never quite idle.

The rate of an engine is the mean of the rates of all its counts. How fast a core is differs from one moment to the next
where a machine has neighbours, but the speeds of cores add: so two workers have twice the mean rate of one if nothing
holds them up. That is not so of the median, nor of the fastest count, which is told as well: two workers are slower
whenever either core is. And beside them, in turn, what two processes gain that have nothing to share: about what can be
asked of an engine.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections import deque
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.ratios import between, mean_rate
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
ROUNDS, COUNTS = (1, 1) if QUICK else (12, 3)
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
PIECES, STEPS = 8, 20_000 if QUICK else 500_000
"""Several for each process, so that one whose core is slower may do fewer of them, as with an engine."""


class Measured(NamedTuple):
    """Seconds by engine and number of workers."""

    files: int
    size: int
    """Bytes of all files."""
    starts: dict[str, float]
    """Until workers were there and had counted for the first time, which loads their libraries."""
    times: dict[str, list[float]]
    """Of the counts after that."""
    alike: bool
    """Whether all tallies are identical."""

    def rate(self, name: str) -> float:
        """How often an engine could count the archive in a second, on average."""
        return mean_rate(self.times[name])


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
    """Let all engines take turns."""
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
                        deque(hands.map(reckon, [STEPS] * PIECES), maxlen=0)
                    else:
                        tallies.add(aggregate(place, Choice(), hands, files).tally().json())
                    took = time.perf_counter() - begin
                    if turn:
                        times[name].append(took)
                    else:
                        starts[name] = min(starts[name], took)
                    begin = time.perf_counter()
    return Measured(len(files), sum(file.size for file in files), starts, times, len(tallies) == 1)


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
    print(f"  {'engine, workers':18}{'first s':>9}{'million/s':>11}{'fastest s':>11}")
    for name, times in found.times.items():
        rate = "" if name.startswith(ALONE) else f"{REPORTS * found.rate(name) / 1e6:.1f}"
        print(f"  {name:18}{found.starts[name]:9.2f}{rate:>11}{min(times):11.3f}")
    for one, other, wanted in (*RATIOS, LIMIT):
        asked = f", wanted >= {wanted:g}" if wanted else ""
        low, high = between(found.times[one], found.times[other], COUNTS)
        fastest = min(found.times[other]) / min(found.times[one])
        told = f"({low:.2f} to {high:.2f}; of the fastest counts {fastest:.2f})"
        print(f"  {one} is {found.rate(one) / found.rate(other):.2f} times as fast as {other}{asked} {told}")
