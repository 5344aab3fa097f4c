"""Panels of a histogram: its buckets, and below them how much lies up to each number, on the same scale."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from hubbub.collector.charts import Axis, Panel, Series
from hubbub.collector.charts.words import number
from hubbub.collector.pictures import wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hubbub.collector.decode.estimates import Estimates


def histogram_panels(estimates: Estimates) -> list[Panel]:
    """One panel, or two where every bucket was observed, so that their curve is known; none without buckets."""
    rows = estimates.rows
    if not rows:
        return []
    places = range(len(rows))
    shares = [wording.MISSING if row.share is None else row.share for row in rows]
    bars = Series("", places, shares, [row.low for row in rows], [row.high for row in rows], "bars")
    x = Axis("", names=[row.value for row in rows], low=-0.5, high=len(rows) - 0.5)
    panel = Panel("share of each bucket", x, Axis("share of reports", percent=True), [bars])
    return [panel, _curve(estimates)] if estimates.cumulative else [panel]


def in_words(estimates: Estimates) -> list[str]:
    """What else the caption tells: the scale, the quantiles and the mean."""
    told = [wording.intervals(estimates, "Thin lines and the band" if estimates.cumulative else "Thin lines")]
    if estimates.cumulative:
        told.append("Buckets are drawn equally wide.")
    elif estimates.no_value is None:
        told.append("Some buckets were observed by no report.")
    else:
        told.append("There are too few valid values for a curve.")
    told.append(wording.no_value(estimates))
    below = [
        f"{wording.per_cent(point.at)} are below {wording.number(point.estimate, (point.high - point.low) / 2)}"
        for point in estimates.quantiles
    ]
    told += [f"Of the values, {', '.join(below)}."] if below else []
    if estimates.mean is not None:
        mean = estimates.mean
        each = [wording.number(each, (mean.high - mean.low) / 2) for each in (mean.estimate, mean.low, mean.high)]
        told += [f"The mean is {each[0]} ({each[1]} to {each[2]}) if values are spread evenly within buckets."]
    return told


def _curve(estimates: Estimates) -> Panel:
    """The cumulative curve and its quantiles, over buckets that are equally wide as those of the bars."""
    points, quantiles = estimates.cumulative, estimates.quantiles
    edges = [point.at for point in points]
    curve = Series(
        "share at or below",
        range(len(edges)),
        [point.estimate for point in points],
        [point.low for point in points],
        [point.high for point in points],
        "band",
    )
    marks = Series(
        "quantiles",
        [point.at for point in quantiles],
        [_place(point.estimate, edges) for point in quantiles],
        [_place(point.low, edges) for point in quantiles],
        [_place(point.high, edges) for point in quantiles],
        "points",
        sideways=True,
    )
    x = Axis(estimates.metric, names=[number(edge) for edge in edges], low=0, high=len(edges) - 1)
    return Panel("share up to each number", x, Axis("share of valid values", percent=True), [curve, marks])


def _place(value: float, edges: Sequence[float]) -> float:
    """Where a number stands when the edges stand at 0, 1, 2 and so on."""
    bucket = min(max(bisect_right(edges, value) - 1, 0), len(edges) - 2)
    return bucket + (value - edges[bucket]) / (edges[bucket + 1] - edges[bucket])
