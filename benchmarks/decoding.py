"""Decoding strings: time and memory, and how they grow: `python -m benchmarks decode`.

Each line is measured in a process of its own, by `decode_worker.py`, on one core: CPU seconds from a list of candidates
to the rows of the estimates. HUBBUB_BENCH_QUICK=1 leaves the larger sizes out.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

from benchmarks import writing

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
MOST = 10_000 if QUICK else 1_000_000
"""How many candidates are asked about at the most."""

PAGE = "docs/comparison.md"
CHROME = "{ f = 0.5, p = 0.25, q = 0.75 }"
CLASSIC = "{ f = 0.5, p = 0.5, q = 0.75 }"


@dataclass(frozen=True)
class Job:
    """One tally to decode."""

    candidates: int
    bits: int
    cohorts: int
    hashes: int
    privacy: str = CLASSIC
    reports: int = 1_000_000
    strings: int = 100
    """How many different strings the devices hold."""
    seeds: int = 1
    """How many populations are drawn, and decoded one by one."""
    wanted: float | None = None
    """CPU seconds, at most."""
    wanted_memory: float | None = None
    """Bytes, at most."""

    @property
    def rounds(self) -> int:
        """How often each is decoded; the fastest round counts, as the one least disturbed."""
        if self.seeds > 1:
            return 1
        return 3 if self.candidates <= 100_000 else 2

    def run(self) -> dict[str, Any]:
        """Measure in a process of its own: the memory of one cannot be seen in another."""
        # With f alone it is one-time RAPPOR, which is reported once.
        once = "," not in self.privacy
        every = 'every = "once"' if once else 'every = "day"\nlifetime_values = "unlimited"'
        registry = (
            f'[metrics.m]\ndescription = "m"\nkind = "string"\n{every}\n'
            f"bits = {self.bits}\nhashes = {self.hashes}\ncohorts = {self.cohorts}\nprivacy = {self.privacy}\n"
        )
        job = {
            "registry": registry,
            "candidates": self.candidates,
            "reports": self.reports,
            "strings": self.strings,
            "rounds": self.rounds,
            "seeds": self.seeds,
        }
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.decode_worker", json.dumps(job)],
            cwd=writing.ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            check=True,
        )
        told: dict[str, Any] = json.loads(done.stdout)
        return told


CASES = (
    Job(1_000, bits=32, cohorts=64, hashes=1, privacy=CHROME, wanted=1),
    Job(10_000, bits=128, cohorts=64, hashes=2, wanted=2),
    Job(100_000, bits=128, cohorts=64, hashes=2, wanted=10),
    Job(1_000_000, bits=128, cohorts=32, hashes=1, wanted=60, wanted_memory=4e9),
)
USUAL = Job(10_000, bits=128, cohorts=32, hashes=1)
BY_CANDIDATES = tuple(replace(USUAL, candidates=10**power) for power in (3, 4, 5, 6))
BY_COHORTS = tuple(replace(USUAL, cohorts=2**power, candidates=MOST // 10) for power in range(3, 9))
BY_FOUND = tuple(
    replace(USUAL, strings=strings, reports=10**power) for strings, power in ((5, 6), (50, 7), (300, 8), (1000, 9))
)


def main() -> None:
    """Print the tables, and write them where that was asked for."""
    write = writing.wanted()
    tables: dict[str, str] = {}
    numpy = ""
    cases, parts = [], []
    for job in CASES:
        if job.candidates <= MOST:
            told = job.run()
            numpy = told["numpy"]
            cases.append([*_shape(job), *_cost(told), _limits(job)])
            parts.append([_thousands(job.candidates), *(f"{told['parts'][name]:.2f}" for name in PARTS)])
    tables["decode"] = (
        f"CPU seconds on one core and memory at its highest, Python {platform.python_version()}, numpy {numpy}, "
        f"{platform.machine()}.\nA tally of {USUAL.reports:,} reports by devices that hold {USUAL.strings} different "
        "strings, the second half as\noften as the first, the third a third as often. *absent*: how many of the "
        "strings found nobody holds.\n\n"
        + writing.table(["candidates", "bits", "cohorts", "hashes", "found", "absent", "CPU s", "MB", "wanted"], cases)
        + "\n\nWhere the seconds go:\n\n"
        + writing.table(["candidates", *PARTS.values()], parts)
    )
    print(f"\n{tables['decode']}")
    growth = {
        "Candidates": (["candidates"], [([_thousands(job.candidates)], job) for job in BY_CANDIDATES]),
        "Cohorts": (
            ["cohorts", "candidates"],
            [([str(job.cohorts), _thousands(job.candidates)], job) for job in BY_COHORTS],
        ),
        "Strings found": (
            ["strings held", "reports", "candidates"],
            [([_thousands(job.strings), _thousands(job.reports), _thousands(job.candidates)], job) for job in BY_FOUND],
        ),
    }
    pieces = []
    for title, (header, lines) in growth.items():
        rows = []
        for cells, job in lines:
            if job.candidates <= MOST:
                told = job.run()
                rows.append([*cells, *_cost(told), str(told["rounds"])])
        pieces.append(f"{title}:\n\n" + writing.table([*header, "found", "absent", "CPU s", "MB", "rounds"], rows))
        print(f"\n{pieces[-1]}")
    tables["decode-growth"] = "\n\n".join(pieces)
    if write:
        for name, text in tables.items():
            writing.write_section(PAGE, name, text)


PARTS = {
    "list": "reading the list",
    "design": "hashing, design",
    "search": "selection",
    "rest": "estimates, rows",
}


def _shape(job: Job) -> list[str]:
    return [_thousands(job.candidates), str(job.bits), str(job.cohorts), str(job.hashes)]


def _cost(told: dict[str, Any]) -> list[str]:
    return [
        _thousands(told["found"]),
        _thousands(told["absent"]),
        f"{told['seconds']:.2f}",
        f"{told['peak'] / 1e6:,.0f}",
    ]


def _limits(job: Job) -> str:
    memory = f", {job.wanted_memory / 1e6:,.0f} MB" if job.wanted_memory else ""
    return f"< {job.wanted:g} s{memory}"


def _thousands(number: int) -> str:
    return f"{number:,}"
