"""The looks of a series: line, points, theory, band and bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from hubbub.collector.charts.theme import key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from hubbub.collector.charts.figure import Panel, Series
    from hubbub.collector.charts.theme import Style, Styles, Theme

    Numbers = NDArray[np.float64]

LINE, THIN, MARK, CAP = 1.7, 1.2, 5.5, 6.0
"""Points: lines, thin lines, and the width of markers and of the caps of error bars."""

GROUP = 0.8
"""The share of the room between two positions that their bars fill."""

LARGEST = 1e150
"""Numbers beyond are treated as infinite: their squares would be."""


class Points:
    """The points of a series that can be drawn; the others are left out."""

    def __init__(self, series: Series, panel: Panel) -> None:
        x, y = _numbers(series.x), _numbers(series.y)
        low, high = (np.full_like(y, np.nan) if ends is None else _numbers(ends) for ends in (series.low, series.high))
        kept = np.isfinite(x) & np.isfinite(y)
        if panel.x.log:
            kept &= x > 0
        if panel.y.log:
            kept &= y > 0
        self.x, self.y = x[kept], y[kept]
        low, high = low[kept], high[kept]
        # Of an error bar with one end, the point is the other.
        low, high = np.where(np.isnan(low), self.y, low), np.where(np.isnan(high), self.y, high)
        self.low, self.high = np.minimum(low, high), np.maximum(low, high)
        self.ranged = series.low is not None or series.high is not None


def _numbers(values: object) -> Numbers:
    numbers = np.asarray(values, np.float64)
    return np.where(np.abs(numbers) < LARGEST, numbers, np.nan)


def plot(axes: Axes, panel: Panel, styles: Styles, theme: Theme) -> list[Artist]:
    """Draw all series of a panel, and give what stands for each of them in the legend."""
    points = [Points(series, panel) for series in panel.series]
    bars = [each for each, series in zip(points, panel.series, strict=True) if series.look == "bars"]
    spaces = _spaces(bars, log=panel.x.log)
    for order, (series, each) in enumerate(zip(panel.series, points, strict=True)):
        style, height = styles[key(series)], 3 + order / 100
        if series.look == "bars":
            _bars(axes, each, style, theme, next(spaces))
        elif series.look == "theory":
            axes.plot(each.x, each.y, color=style.colour, linewidth=THIN, dashes=style.dashes, zorder=2.5)
        elif series.look == "band":
            axes.fill_between(each.x, each.low, each.high, color=style.colour, alpha=0.22, linewidth=0, zorder=height)
            axes.plot(each.x, each.y, color=style.colour, linewidth=LINE, zorder=height)
        else:
            _ranges(axes, each, each.x, style.colour, height)
            axes.plot(each.x, each.y, zorder=height, **_marked(style, theme, joined=series.look == "line"))
    return samples(panel, styles, theme)


def samples(panel: Panel, styles: Styles, theme: Theme) -> list[Artist]:
    """What stands for each series in a legend."""
    return [_sample(series, styles[key(series)], theme) for series in panel.series]


def _marked(style: Style, theme: Theme, *, joined: bool) -> dict[str, Any]:
    return {
        "color": style.colour,
        "linewidth": LINE,
        "linestyle": "-" if joined else "none",
        "marker": style.marker,
        "markersize": MARK,
        "markeredgecolor": theme.paper,
        "markeredgewidth": 0.6,
    }


def _ranges(axes: Axes, points: Points, x: Numbers, colour: str, height: float) -> None:
    """Error bars with caps."""
    if points.ranged:
        axes.vlines(x, points.low, points.high, color=colour, linewidth=THIN, zorder=height)
        for ends in (points.low, points.high):
            axes.plot(
                x, ends, linestyle="none", marker="_", markersize=CAP, color=colour, markeredgewidth=THIN, zorder=height
            )


def _spaces(bars: list[Points], *, log: bool) -> Iterator[tuple[Numbers, Numbers]]:
    """For each bar series the left and right edges of its bars, side by side with those of the others."""
    places = [np.log10(each.x) if log else each.x for each in bars]
    every = np.unique(np.concatenate(places)) if places else np.empty(0)
    room = GROUP * (np.diff(every).min() if len(every) > 1 else 1.0)
    for number, place in enumerate(places):
        left = place - room / 2 + room * number / len(places)
        right = left + room / len(places)
        yield (10**left, 10**right) if log else (left, right)


def _bars(axes: Axes, points: Points, style: Style, theme: Theme, space: tuple[Numbers, Numbers]) -> None:
    left, right = space
    axes.bar(left, points.y, width=right - left, align="edge", linewidth=0.6, zorder=2.4, **_filled(style, theme))
    _ranges(axes, points, np.sqrt(left * right) if axes.get_xscale() == "log" else (left + right) / 2, theme.ink, 3)


def _filled(style: Style, theme: Theme) -> dict[str, Any]:
    return {"facecolor": style.colour, "edgecolor": theme.paper, "hatch": style.hatch}


def _sample(series: Series, style: Style, theme: Theme) -> Artist:
    if series.look == "bars":
        return Patch(linewidth=0.6, **_filled(style, theme))
    if series.look == "theory":
        return Line2D([], [], color=style.colour, linewidth=THIN, dashes=style.dashes)
    if series.look == "band":
        return Line2D([], [], color=style.colour, linewidth=LINE)
    return Line2D([], [], **_marked(style, theme, joined=series.look == "line"))
