"""From the rows of a result to the series of its figure and the numbers of its caption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from hubbub.collector.charts import Series
from hubbub.simulations.experiment import Cell

if TYPE_CHECKING:
    from hubbub.collector.charts import Look

Row: TypeAlias = dict[str, Cell]
Rows: TypeAlias = Sequence[Row]

BARS = ("low", "high")
"""The columns that error bars usually end at."""


def where(rows: Rows, **cells: Cell) -> list[Row]:
    """Select the rows that hold these cells."""
    return [row for row in rows if all(row[key] == cell for key, cell in cells.items())]


def number(row: Row, key: str) -> float:
    """Take a cell that holds a number."""
    cell = row[key]
    if cell is None:
        raise TypeError(key)
    return float(cell)


def column(rows: Rows, key: str) -> list[float]:
    """Take a column of numbers."""
    return [number(row, key) for row in rows]


def last(rows: Rows, key: str, **cells: Cell) -> float:
    """Take a number of the last row that holds these cells."""
    return number(where(rows, **cells)[-1], key)


def series(
    label: str, rows: Rows, x: str, y: str = "measured", look: Look = "line", bars: tuple[str, str] | None = BARS
) -> Series:
    """Draw one column over another, with error bars unless told otherwise; rows that hold no `y` are left out."""
    seen = [row for row in rows if row[y] is not None]
    low, high = (column(seen, end) for end in bars) if bars else (None, None)
    return Series(label, column(seen, x), column(seen, y), low, high, look)


def theory_line(label: str, rows: Rows, x: str, y: str = "theory") -> Series:
    """Draw what was computed for the same rows, not measured."""
    return series(label, rows, x, y, "theory", bars=None)


def level(*groups: Rows) -> list[Row]:
    """Give the rows of all groups the same keys."""
    keys = dict.fromkeys(key for rows in groups for row in rows for key in row)
    return [{key: row.get(key) for key in keys} for rows in groups for row in rows]


def per_cent(share: float, digits: int = 0) -> str:
    """Write a share as the axes do; number and sign stay on one line."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"
