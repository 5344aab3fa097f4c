"""`make bench`: one run, one table of ratios, one page.

What was measured is kept in docs/benchmarks.json; docs/benchmarks.md, the tables of docs/design/scale.md and what other
pages quote (`quoted.py`) are made from it, here, and by nobody's hand. `python -m benchmarks.page` makes them again
without measuring.
"""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from textwrap import fill
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from benchmarks import machine, part, quoted, scale, writing
from benchmarks.findings import HEADER, WORDS, Findings, Row
from benchmarks.peer_environment import PEERS, Peers, label
from benchmarks.sized import QUICK

if TYPE_CHECKING:
    from pathlib import Path

FIGURES = writing.ROOT / "docs" / "benchmarks.json"
PAGE = writing.ROOT / "docs" / "benchmarks.md"
SCALE = writing.ROOT / "docs" / "design" / "scale.md"

INTRO = """# Benchmarks

This page was written by `make bench`, in one run on one machine. Compare the numbers of a row with each other, not with
those of another machine: run it on yours. `HUBBUB_BENCH_QUICK=1 make bench` is a shorter run, to see that it works.
README.md and the guides quote this page, by the same script; where another page has a table of its own run, this one
counts.
"""
RATIOS = """
A ratio says how many times better hubbub is: above 1 it makes more in the same time, or needs less for the same. Beside
a limit it says how much of it is left. *Wanted* is the least ratio that was asked for before anything was built. Rates
of clients and of counting are those of one core, in processor time. *By*: `python -m benchmarks NAME` measures the row
alone.

Of the peers none has the piecewise mechanism for means, nor another one that sends one bit: what they have for a number
is Laplace noise, and so that is what the mean is measured beside. diffprivlib has nothing that adds up reports.
"""
INGEST = "\nEvery batch of hubbub is on disk before it is acknowledged; the other servers keep nothing.\n"
GROWTH = "\nWhat a thing costs should grow with the work, and no faster. All lines are from the same run.\n"
UNLIKE = """
The peers are libraries of mechanisms and estimators; hubbub is a client and a collector. So some of what a client must
do on a device, year after year, they do not try. It is measured here because it is easy to overlook.
"""


class Measured(Struct, frozen=True):
    """All of one run."""

    day: date
    quick: bool
    seconds: float
    machine: dict[str, str]
    peers: dict[str, str]
    """Each peer with its version, and whether it could be installed."""
    parts: dict[str, Findings]

    @property
    def figures(self) -> dict[str, float]:
        """Every figure to reckon with, by name."""
        return {name: value for each in self.parts.values() for name, value in each.figures.items()}


def main() -> None:
    """Measure everything, keep it, and write the pages."""
    begin = time.perf_counter()
    peers = Peers.find(again=True)
    states = {label(package): peers.state(package) for package in PEERS}
    found = {}
    for name, about in part.PARTS.items():
        print(f"{time.perf_counter() - begin:6.0f} s  {about}", flush=True)
        found[name] = part.run(name)
        for line in found[name].missing:
            print(f"          {line}")
    seconds = time.perf_counter() - begin
    measured = Measured(datetime.now(UTC).date(), QUICK, seconds, machine.describe(), states, found)
    FIGURES.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    write()
    print(f"{seconds:6.0f} s  {PAGE.relative_to(writing.ROOT)}, {SCALE.relative_to(writing.ROOT)}")


def show(name: str) -> None:
    """Measure one part, and print it."""
    found = part.measure(name)
    pieces = [writing.table(HEADER, [row.cells for row in found.rows], WORDS)] if found.rows else []
    pieces += [f"{table.title}\n\n{writing.table(table.header, table.rows)}" for table in found.tables]
    pieces += [f"{figure}: {value:g}" for figure, value in found.figures.items()]
    print("\n\n".join(["", *pieces, *found.missing]))


def read(path: Path = FIGURES) -> Measured:
    """Take what was measured."""
    return msgspec.json.decode(path.read_bytes(), type=Measured)


def write() -> None:
    """Make the pages from what was measured."""
    measured = read()
    PAGE.write_text(page(measured), encoding="utf-8")
    for name, text in scale.sections(measured.figures).items():
        writing.write_section(SCALE, name, text)
    quoted.write(measured)


def page(measured: Measured) -> str:
    """The page as text."""
    told = ", ".join(f"{name} {value}" for name, value in measured.machine.items())
    quick = "\n**A quick run: too short to be believed.**\n" if measured.quick else ""
    when = wrapped(f"{measured.day}, {measured.seconds / 60:.0f} minutes. The machine: {told}.")
    pieces = [INTRO, quick, f"\n{when}\n", "\n## Ratios\n", RATIOS, "\n", ratios(measured), "\n"]
    missing = [line for each in measured.parts.values() for line in each.missing]
    if missing:
        pieces += ["\n## What was not measured\n\n", "".join(f"- {line}\n" for line in missing)]
    for section, title, words in (
        ("ingest", "Durable ingest", INGEST),
        ("growth", "How cost grows with work", GROWTH),
        ("peers", "What the peers do not do", UNLIKE),
    ):
        tables = [table for each in measured.parts.values() for table in each.tables if table.section == section]
        pieces += [f"\n## {title}\n", words] if tables else []
        pieces += [f"\n{wrapped(table.title)}\n\n{writing.table(table.header, table.rows)}\n" for table in tables]
    states = [[name, state] for name, state in measured.peers.items()]
    pieces += [
        "\nThe peers of this run, in an environment of their own:\n\n",
        writing.table(["peer", "state"], states, (0, 1)),
    ]
    pieces.append("\n\nMore beside others: [comparison.md](comparison.md). What it means for large fleets: ")
    pieces.append("[design/scale.md](design/scale.md).\n")
    return "".join(pieces)


def wrapped(text: str) -> str:
    """A paragraph, in lines of the width that the other pages have."""
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def ratios(measured: Measured) -> str:
    """The one table."""
    rows: list[Row] = [row for each in measured.parts.values() for row in each.rows]
    return writing.table(HEADER, [row.cells for row in rows], WORDS)


if __name__ == "__main__":
    write()
