"""What a part of `make bench` has found: rows of the one table of ratios, other tables, and figures to reckon with."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field


class Row(Struct, frozen=True):
    """Hubbub beside something else, a peer or a limit."""

    what: str
    """The job, with its unit."""
    by: str
    """The benchmark that measures it alone: a name for `python -m benchmarks`, or that of the part."""
    beside: str
    ours: float | None = None
    theirs: float | None = None
    better: Literal["more", "less"] = "more"
    wanted: float | None = None
    """The least ratio that is wanted."""
    fault: str = ""
    """Why there is no number."""

    @property
    def ratio(self) -> float | None:
        """How many times better hubbub is."""
        if not self.ours or not self.theirs:
            return None
        return self.ours / self.theirs if self.better == "more" else self.theirs / self.ours

    @property
    def cells(self) -> list[str]:
        """The row as the page shows it."""
        ratio = self.ratio
        shown = self.fault or ("-" if ratio is None else number(ratio))
        wanted = "" if self.wanted is None else f">= {number(self.wanted)}"
        if wanted and ratio is not None and ratio < (self.wanted or 0):
            wanted += ", missed"
        return [self.what, number(self.ours), self.beside, number(self.theirs), shown, wanted, f"`{self.by}`"]


LIMIT = "the limit that was set"
"""Beside what there is no peer for."""

HEADER = ["what", "hubbub", "beside", "that", "ratio", "wanted", "by"]
WORDS = (0, 2, 6)
"""The columns that hold words."""


class Table(Struct, frozen=True):
    """A table of its own."""

    section: Literal["ingest", "growth", "peers"]
    title: str
    header: list[str]
    rows: list[list[str]]


class Findings(Struct, frozen=True):
    """All that one part has found."""

    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    """What `scale.py` reckons with, by name."""
    missing: list[str] = field(default_factory=list)
    """What could not be measured, and why."""


def number(value: float | None) -> str:
    """Three digits, and commas in what is large."""
    if value is None:
        return ""
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.{1 if size >= 10 else 2 if size >= 1 else 3}f}" if size >= 0.01 else f"{value:.2g}"
