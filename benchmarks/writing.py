"""Tables of the documentation, written by the benchmark that measured them: `python -m benchmarks NAME --write`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

ROOT = Path(__file__).parents[1]
FLAG = "--write"


def wanted() -> bool:
    """Tell whether the tables are to be written; those of a quick run never are."""
    if FLAG in sys.argv and os.environ.get("HUBBUB_BENCH_QUICK"):
        sys.exit(f"{FLAG}: a quick run measures too little; allowed: without HUBBUB_BENCH_QUICK")
    return FLAG in sys.argv


def write_section(path: str | Path, name: str, markdown: str) -> None:
    """Put text between `<!-- begin NAME -->` and `<!-- end NAME -->` of a page, in place of what was there."""
    page = ROOT / path
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    text = page.read_text(encoding="utf-8")
    before, opened, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not opened or not closed or begin in after:
        raise ValueError(f"{path}: has no place for {name}; allowed: one {begin.strip()} with its {end}")
    page.write_text(f"{before}{begin}\n{markdown.strip()}\n\n{end}{after}", encoding="utf-8")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], words: Collection[int] = (0,)) -> str:
    """Lay out a table so that it reads well in a terminal and in a page; columns that hold words are flush left."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    shown = [
        [cell.ljust(width) if place in words else cell.rjust(width) for place, (cell, width) in enumerate(each)]
        for each in (list(zip(line, widths, strict=True)) for line in lines)
    ]
    rule = ["-" * width if place in words else "-" * (width - 1) + ":" for place, width in enumerate(widths)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (shown[0], rule, *shown[1:]))
