"""Estimates against the truth, which only simulations know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.collector.pictures import wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hubbub.collector.charts import Look


@dataclass(frozen=True, slots=True)
class Compared:
    """One value: what is true, what the reports say, and the interval that should hold the truth."""

    value: str
    truth: float
    estimate: float
    low: float
    high: float


def of_comparison(name: str, rows: Sequence[Compared], *, percent: bool = True, note: str = "") -> Figure:
    """Show estimates in their intervals over the truth. `percent` for shares; `note` is put before the caption."""
    if not rows:
        return Figure(f"{name}: nothing to compare", note, ())
    places = range(len(rows))
    low, high = [row.low for row in rows], [row.high for row in rows]
    estimate = Series("estimate", places, [row.estimate for row in rows], low, high, "points", sideways=True)
    look: Look = "backdrop" if percent else "points"
    truth = Series("truth", places, [row.truth for row in rows], look=look, sideways=True)
    write, reach = (wording.share if percent else wording.number), wording.usual_reach(low, high)
    notes = [write(row.estimate, reach) for row in rows]
    x = Axis("share", percent=True) if percent else Axis(name)
    panel = Panel("", x, Axis("", names=[row.value for row in rows], notes=notes), [estimate, truth])
    held = sum(row.low <= row.truth <= row.high for row in rows)
    told = f"{held:,} of {len(rows):,} intervals hold the truth. The numbers at the side are the estimates."
    return Figure(f"{name}: estimate against truth", wording.sentences((note, told)), [panel])
