"""Several collectors on one PostgreSQL, and what a batch costs each side then: measured with `ingest.py`.

`python -m benchmarks replicas` shows the same alone, with times to answer.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from benchmarks import replicas
from benchmarks.findings import Findings, Row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.replicas import Measured


def measure(folder: Path, postgres: str) -> Findings:
    """Rates beside that of one, and how much more processor time a batch takes where there are most."""
    found = replicas.measure(folder, postgres)
    one, most = found[1], found[max(found)]
    rows = [
        Row(
            what=f"durable ingest, PostgreSQL, {replicas.CONCURRENCY} at a time, batches/s: {number} collectors",
            by="replicas",
            beside="1 collector",
            ours=_rate(rounds),
            theirs=_rate(one),
        )
        for number, rounds in found.items()
        if number > 1
    ]
    figures = {
        "several": float(max(found)),
        "several_collector_cpu": _times(most, one, "collectors"),
        "several_database_cpu": _times(most, one, "database"),
    }
    return Findings(rows, figures=figures)


def _rate(rounds: Sequence[Measured]) -> float:
    return median(each.rate for each in rounds)


def _times(most: Sequence[Measured], one: Sequence[Measured], part: str) -> float:
    """How many times the processor time of one collector a batch takes: the median over the rounds."""
    rounds = zip(most, one, strict=True)
    times: list[float] = [getattr(many, part) / getattr(single, part) for many, single in rounds]
    return median(times)
