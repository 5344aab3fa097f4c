"""What an archive costs: commits a second of a shard on SQLite, with an archive and without, taking turns."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hubbub.collector.acceptance import Judged
from hubbub.collector.store import Store
from hubbub.collector.store.parts import Parts
from hubbub.shared.period import today
from hubbub.shared.registry import Registry
from hubbub.shared.wire import Report

if TYPE_CHECKING:
    from hubbub.collector.store.shard import Shard

SIZES = {1: 600, 32: 300, 512: 60}
"""Batches in a commit, and commits of so many."""

REPORTS = 4
METRICS = "".join(
    f"""
[metrics.m{number}]
description = "One of several"
kind = "string"
every = "day"
bits = 128
hashes = 1
cohorts = 64
lifetime_values = "unlimited"
privacy = {{ report = 1, lifetime = 2 }}
"""
    for number in range(REPORTS)
)


class Commit(NamedTuple):
    """Seconds of one commit, by the clock and of the processor's time, at the median."""

    bare: float
    bare_cpu: float
    archived: float
    archived_cpu: float


def main() -> None:
    print(f"\nCommits of a shard on SQLite, batches of {REPORTS} reports of 128 bits; medians, taking turns")
    print(f"  {'batches in a commit':22}{'commits/s':>12}{'with archive':>15}{'ratio':>9}{'of CPU time':>14}")
    for size in SIZES:
        each = measure(size)
        rates = f"{1 / each.bare:12.1f}{1 / each.archived:15.1f}{each.bare / each.archived:9.2f}"
        print(f"  {size:<22}{rates}{each.bare_cpu / each.archived_cpu:14.2f}")


def measure(size: int) -> Commit:
    """Commit so many batches at a time, to a store with an archive and to one without."""
    registry = Registry.parse(METRICS)
    with tempfile.TemporaryDirectory() as folder:
        plain, keeping = (_shard(Path(folder) / name, registry) for name in ("plain.db", "archive.db"))
        keeping.keep(Parts(1 << 40, lambda _: None))
        times = [(*_seconds(plain, size), *_seconds(keeping, size)) for _ in range(SIZES[size])]
        for shard in (plain, keeping):
            shard.close()
    return Commit(*(statistics.median(each) for each in zip(*times, strict=True)))


def _shard(path: Path, registry: Registry) -> Shard:
    store = Store(f"sqlite:///{path}")
    store.prepare(registry)
    return store.shard(registry)


def _seconds(shard: Shard, size: int) -> tuple[float, float]:
    """How long a commit takes of batches that were made before, by the clock and of the processor's time."""
    group = [_judged() for _ in range(size)]
    begin, begin_cpu = time.perf_counter(), time.process_time()
    shard.commit(group)
    return time.perf_counter() - begin, time.process_time() - begin_cpu


def _judged() -> Judged:
    day, cohort = today(), os.urandom(1)[0] % 64
    reports = [Report(f"m{number}", 1, day, cohort, os.urandom(16)) for number in range(REPORTS)]
    return Judged(os.urandom(16), reports, list(range(REPORTS)), [day] * REPORTS)
