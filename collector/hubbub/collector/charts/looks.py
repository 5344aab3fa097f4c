"""The looks of a series: line, points, theory, band, trend, bars and backdrop."""

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

    from hubbub.collector.charts.figure import Axis, Panel, Series
    from hubbub.collector.charts.theme import Style, Styles, Theme

    Numbers = NDArray[np.float64]

LINE, THIN, MARK, CAP = 1.7, 1.2, 5.5, 6.0
"""Points: lines, thin lines, and the width of markers and of the caps of error bars."""

GROUP = 0.8
"""The share of the room between two positions that their bars fill."""

MANY = 45
"""Points of a trend from which on its markers are small."""

LARGEST = 1e150
"""Numbers beyond are treated as infinite: their squares would be."""


class Points:
    """The points of a series that can be drawn; the others are left out."""

    def __init__(self, series: Series, panel: Panel) -> None:
        x, y = _numbers(series.x), _numbers(series.y)
        low, high = (np.full_like(y, np.nan) if ends is None else _numbers(ends) for ends in (series.low, series.high))
        along = _along(series, panel)
        across = panel.x if along is panel.y else panel.y
        kept = np.isfinite(x) & (np.isfinite(y) | (series.look == "trend"))
        if along.log:
            kept &= x > 0
        if across.log:
            kept &= ~(y <= 0)
        self.x, self.y = x[kept], y[kept]
        low, high = low[kept], high[kept]
        # Of an error bar with one end, the point is the other.
        low, high = np.where(np.isnan(low), self.y, low), np.where(np.isnan(high), self.y, high)
        self.low, self.high = np.minimum(low, high), np.maximum(low, high)
        self.ranged = series.low is not None or series.high is not None
        self.sideways = series.sideways


def _along(series: Series, panel: Panel) -> Axis:
    """The side that the positions of a series run along."""
    return panel.y if series.sideways else panel.x


def _numbers(values: object) -> Numbers:
    numbers = np.asarray(values, np.float64)
    return np.where(np.abs(numbers) < LARGEST, numbers, np.nan)


def plot(axes: Axes, panel: Panel, styles: Styles, theme: Theme, group: float = GROUP) -> list[Artist]:
    """Draw all series of a panel, and give what stands for each of them in the legend."""
    points = [Points(series, panel) for series in panel.series]
    bars = [each for each, series in zip(points, panel.series, strict=True) if series.look == "bars"]
    spaces = _spaces(bars, group, log=any(_along(series, panel).log for series in panel.series))
    for order, (series, each) in enumerate(zip(panel.series, points, strict=True)):
        style, height = styles[key(series)], 3 + order / 100
        if series.look == "bars":
            _bars(axes, each, _filled(style, theme), theme, next(spaces))
        elif series.look == "backdrop":
            space = next(_spaces([each], group, log=_along(series, panel).log))
            _bars(axes, each, {"facecolor": theme.backdrop}, theme, space)
        elif series.look == "theory":
            axes.plot(each.x, each.y, color=style.colour, linewidth=THIN, dashes=style.dashes, zorder=2.5)
        elif series.look == "band":
            axes.fill_between(each.x, each.low, each.high, color=style.colour, alpha=0.22, linewidth=0, zorder=height)
            axes.plot(each.x, each.y, color=style.colour, linewidth=LINE, zorder=height)
        elif series.look == "trend":
            _trend(axes, each, style, theme, height)
        else:
            _ranges(axes, each, each.x, style.colour, height)
            places = (each.y, each.x) if each.sideways else (each.x, each.y)
            axes.plot(*places, zorder=height, **_marked(style, theme, joined=series.look == "line"))
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
    if not points.ranged:
        return
    lines, marker = (axes.hlines, "|") if points.sideways else (axes.vlines, "_")
    lines(x, points.low, points.high, color=colour, linewidth=THIN, zorder=height)
    cap: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": CAP, "markeredgewidth": THIN}
    for ends in (points.low, points.high):
        axes.plot(*((ends, x) if points.sideways else (x, ends)), color=colour, zorder=height, **cap)


def _trend(axes: Axes, points: Points, style: Style, theme: Theme, height: float) -> None:
    """Joined markers in a band. A number that has no neighbours has no band to stand in: it gets an error bar."""
    axes.fill_between(points.x, points.low, points.high, color=style.colour, alpha=0.18, linewidth=0, zorder=height)
    there = np.isfinite(points.y)
    alone = there & ~np.append(False, there[:-1]) & ~np.append(there[1:], False)
    axes.vlines(
        points.x[alone], points.low[alone], points.high[alone], color=style.colour, linewidth=THIN, zorder=height
    )
    look = _marked(style, theme, joined=True) | {"markersize": MARK if len(points.x) <= MANY else 0.45 * MARK}
    axes.plot(points.x, points.y, zorder=height, **look)


def _spaces(bars: list[Points], group: float, *, log: bool) -> Iterator[tuple[Numbers, Numbers]]:
    """For each bar series the left and right edges of its bars, side by side with those of the others."""
    places = [np.log10(each.x) if log else each.x for each in bars]
    every = np.unique(np.concatenate(places)) if places else np.empty(0)
    room = group * (np.diff(every).min() if len(every) > 1 else 1.0)
    for number, place in enumerate(places):
        left = place - room / 2 + room * number / len(places)
        right = left + room / len(places)
        yield (10**left, 10**right) if log else (left, right)


def _bars(axes: Axes, points: Points, filled: dict[str, Any], theme: Theme, space: tuple[Numbers, Numbers]) -> None:
    left, right = space
    look = {"align": "edge", "linewidth": 0.6, "zorder": 2.4, **filled}
    if points.sideways:
        axes.barh(left, points.y, height=right - left, **look)
    else:
        axes.bar(left, points.y, width=right - left, **look)
    if (np.minimum(points.low, points.y) < 0).any():
        (axes.axvline if points.sideways else axes.axhline)(0, color=theme.quiet, linewidth=THIN, zorder=2.45)
    log = (axes.get_yscale() if points.sideways else axes.get_xscale()) == "log"
    _ranges(axes, points, np.sqrt(left * right) if log else (left + right) / 2, theme.ink, 3)


def _filled(style: Style, theme: Theme) -> dict[str, Any]:
    return {"facecolor": style.colour, "edgecolor": theme.paper, "hatch": style.hatch}


def _sample(series: Series, style: Style, theme: Theme) -> Artist:
    if series.look == "bars":
        return Patch(linewidth=0.6, **_filled(style, theme))
    if series.look == "backdrop":
        return Patch(facecolor=theme.backdrop)
    if series.look == "theory":
        return Line2D([], [], color=style.colour, linewidth=THIN, dashes=style.dashes)
    if series.look == "band":
        return Line2D([], [], color=style.colour, linewidth=LINE)
    return Line2D([], [], **_marked(style, theme, joined=series.look in {"line", "trend"}))
