"""Counting an archive here and on Dask, with one worker and with two: a part of `make bench`.

`python -m benchmarks aggregate` shows the same alone, and how long workers take to start.
"""

from __future__ import annotations

import contextlib
import tempfile
import time

from benchmarks.aggregate import BITS, RATIOS, REPORTS, ROUNDS, dask, fill
from benchmarks.findings import Findings, Row
from hubbub.collector.archive.aggregate import aggregate
from hubbub.collector.archive.choice import Choice
from hubbub.collector.archive.place import Place
from hubbub.collector.work import Workers


def measure() -> Findings:
    """All engines take turns; the best round of each counts."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        place = Place(folder)
        fill(place)
        files = place.files()
        workers = {f"local, {number}": opened.enter_context(Workers(number)) for number in (1, 2)}
        for number in (1, 2):
            address = opened.enter_context(dask(number))
            workers[f"Dask, {number}"] = opened.enter_context(Workers(scheduler=address))
        tallies = set()
        best = dict.fromkeys(workers, float("inf"))
        for turn in range(ROUNDS + 1):
            for name, hands in workers.items():
                begin = time.perf_counter()
                tallies.add(aggregate(place, Choice(), hands, files).tally().json())
                if turn:  # the first time, a process loads its libraries
                    best[name] = min(best[name], time.perf_counter() - begin)
    missing = [] if len(tallies) == 1 else ["archive: THE TALLIES OF THE ENGINES DIFFER"]
    rows = [
        Row(
            what=f"counting an archive of {REPORTS:,} reports, {BITS} bits, reports/s: {_words(one)}",
            by="aggregate",
            beside=_words(other),
            ours=REPORTS / best[one],
            theirs=REPORTS / best[other],
            wanted=wanted,
        )
        for one, other, wanted in RATIOS
    ]
    return Findings(rows, figures={"archive_rate": REPORTS / best["local, 1"]}, missing=missing)


def _words(name: str) -> str:
    engine, number = name.split(", ")
    return f"{engine}, {number} worker{'s' if number != '1' else ''}"
