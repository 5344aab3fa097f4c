"""Counting an archive here and on Dask, with one worker and with two, and keeping one: a part of `make bench`.

`python -m benchmarks aggregate` shows counting alone, and how long workers take to start; `python -m benchmarks
counters` counting with numpy and with numba; `python -m benchmarks archive` what keeping one costs.
"""

from __future__ import annotations

from benchmarks import aggregate, archive, counters
from benchmarks.aggregate import BITS, LIMIT, PIECES, RATIOS, REPORTS
from benchmarks.findings import Findings, Row

IN_COMMIT = 32
"""Batches in a commit, as a busy collector has them."""


def measure() -> Findings:
    """How long it takes, and what is kept of it."""
    counted = aggregate.measure()
    missing = [] if counted.alike else ["archive: THE TALLIES OF THE ENGINES DIFFER"]
    rows = [
        Row(
            what=f"counting an archive of {REPORTS:,} reports, {BITS} bits, reports/s: {_words(one)}",
            by="aggregate",
            beside=_words(other),
            ours=REPORTS * counted.rate(one),
            theirs=REPORTS * counted.rate(other),
            wanted=wanted,
        )
        for one, other, wanted in RATIOS
    ]
    alone, of_one = (PIECES * counted.rate(name) for name in LIMIT[:2])
    rows.append(Row("arithmetic that shares nothing, pieces/s: 2 processes", "aggregate", "1 process", alone, of_one))
    rows += _counters()
    rows.append(_kept(commit := archive.measure(IN_COMMIT)))
    figures = {
        "archive_rate": REPORTS * counted.rate("local, 1"),
        "archive_slower": commit.archived / commit.bare,
        "archive_cpu": commit.archived_cpu / commit.bare_cpu,
    }
    return Findings(rows, figures=figures, missing=missing)


def _counters() -> list[Row]:
    rates = {name: counters.rate(times) for name, times in counters.measure().items()}
    what = f"counting an archive of {counters.REPORTS:,} reports, {BITS} bits, reports/s: %s"
    return [Row(what % one, "counters", other, rates[one], rates[other]) for one, other in counters.RATIOS]


def _kept(commit: archive.Commit) -> Row:
    return Row(
        what=f"commits/s on SQLite of {IN_COMMIT} batches of {archive.REPORTS} reports, with an archive",
        by="archive",
        beside="without one",
        ours=1 / commit.archived,
        theirs=1 / commit.bare,
    )


def _words(name: str) -> str:
    engine, number = name.split(", ")
    return f"{engine}, {number} worker{'s' if number != '1' else ''}"
