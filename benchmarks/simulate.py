"""Simulating populations: time and memory, and how they grow: `python -m benchmarks simulate`.

Each line is measured in a process of its own, by this file run as a module. HUBBUB_BENCH_QUICK=1 leaves the larger
sizes out.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import writing
from hubbub.shared import Registry
from hubbub.simulations import simulate_tally
from hubbub.simulations.devices import simulate_devices
from hubbub.simulations.distributions import counts_of, shares
from hubbub.simulations.population import Life
from hubbub.simulations.work import Work

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
MOST_AT_ONCE = 10**6 if QUICK else 10**9
MOST_ONE_BY_ONE = 10**4 if QUICK else 10**6
PAGE = "docs/comparison.md"
SEED = 20140905
VALUES = 1_000
DAYS = 30
REGISTRY = """
[metrics.m]
description = "m"
kind = "string"
every = "day"
lifetime_values = "unlimited"
bits = 128
hashes = 1
cohorts = 64
privacy = { report = 1.0, lifetime = 4.0 }
"""
LIVES = {
    "nothing changes": Life(),
    "they live": Life(change=0.05, join=0.2, leave=0.01, lost=0.05, repeated=0.02),
}


@dataclass(frozen=True)
class Job:
    """One population to simulate; as one, or device by device over 30 days."""

    devices: int
    life: str | None = None
    """How devices live; None: all at once, by `simulate_tally`."""
    workers: int = 1
    wanted: str = ""

    def run(self) -> dict[str, Any]:
        """Measure in a process of its own: the memory of one cannot be seen in another."""
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.simulate", json.dumps(asdict(self))],
            cwd=writing.ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            check=True,
        )
        told: dict[str, Any] = json.loads(done.stdout)
        return told


AT_ONCE = [Job(10**power, wanted="< 5 s, 1,000 MB" if power == 9 else "") for power in range(3, 10)]
ONE_BY_ONE = [Job(10**power, life) for life in LIVES for power in (4, 5, 6)]
WORKERS = [
    Job(MOST_ONE_BY_ONE, "they live", workers, wanted="< 120 s" if workers == 2 and not QUICK else "")
    for workers in (1, 2)
]


def main() -> None:
    """Print the tables, and write them where that was asked for."""
    write = writing.wanted()
    at_once, one_by_one, workers = [], [], []
    tallies = set()
    for job in AT_ONCE:
        if job.devices <= MOST_AT_ONCE:
            told = job.run()
            at_once.append([f"{job.devices:,}", f"{told['cpu']:.3f}", _megabytes(told), job.wanted])
    for job in ONE_BY_ONE:
        if job.devices <= MOST_ONE_BY_ONE:
            told = job.run()
            row = [f"{told['reports']:,}", f"{told['cpu']:.2f}", _megabytes(told)]
            one_by_one.append([f"{job.devices:,}", str(job.life), *row])
    for job in WORKERS:
        told = job.run()
        row = [f"{told['seconds']:.1f}", f"{told['cpu']:.1f}", _megabytes(told), job.wanted]
        workers.append([str(job.workers), *row])
        tallies.add(told["digest"])
    text = (
        f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}, {os.cpu_count()} cores. "
        f"Memory is that of a process at its\nhighest, Python and its libraries included. A string metric of 128 bits, "
        f"1 hash and 64 cohorts, {VALUES:,} values\nby Zipf's law. All at once, `simulate_tally`:\n\n"
        + writing.table(["devices", "CPU s", "MB", "wanted"], at_once)
        + f"\n\nDevice by device, `simulate_devices`, {DAYS} days, counted day by day. *They live*: in each period 5 % "
        "change their\nvalue and 1 % leave, 20 % join later, 5 % of the reports are lost and 2 % arrive twice:\n\n"
        + writing.table(["devices", "", "reports counted", "CPU s", "MB"], one_by_one)
        + f"\n\nThe {MOST_ONE_BY_ONE:,} devices that live, over processes, whose start is part of it; the tallies of "
        f"both are {'the same' if len(tallies) == 1 else 'DIFFERENT'}:\n\n"
        + writing.table(["workers", "seconds", "CPU s", "MB of one", "wanted"], workers)
    )
    print(f"\n{text}")
    if write:
        writing.write_section(PAGE, "simulate", text)


def _megabytes(told: dict[str, Any]) -> str:
    return f"{told['peak'] / 1e6:,.0f}"


def _measure(job: Job) -> dict[str, Any]:
    metric = Registry.parse(REGISTRY)["m"]
    counts = counts_of(shares("zipf", VALUES), job.devices).tolist()
    truth = {f"site-{number}.example": count for number, count in enumerate(counts)}
    begin, begin_cpu = time.perf_counter(), _cpu()
    if job.life is None:
        tallies = [simulate_tally(metric, truth, SEED)]
    else:
        with Work(job.workers) as work:
            found = simulate_devices(metric, truth, periods=DAYS, life=LIVES[job.life], seed=SEED, work=work)
        tallies = found.tallies
    return {
        "seconds": time.perf_counter() - begin,
        "cpu": _cpu() - begin_cpu,
        "peak": _peak(),
        "reports": sum(tally.reports for tally in tallies),
        "digest": sha256(b"".join(tally.json() for tally in tallies)).hexdigest(),
    }


def _cpu() -> float:
    """CPU seconds of this process, and of those it started that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _peak() -> int:
    """Bytes at their highest, of this process or the largest of its workers.

    On Linux ru_maxrss begins with what the starting process held, so it is not asked about this one.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    status = Path("/proc/self/status")
    if status.exists():
        [kibibytes] = re.findall(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        return max(int(kibibytes) * 1024, workers)
    return max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, workers)


if __name__ == "__main__":
    print(json.dumps(_measure(Job(**json.loads(sys.argv[1])))))
