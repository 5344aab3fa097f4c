"""The sides of a panel: scale, limits, ticks and what is written at them."""

from __future__ import annotations

import math
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from hubbub.collector.charts import words
from hubbub.collector.charts.theme import SMALL_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as Side

    from hubbub.collector.charts.figure import Axis

MOST_NAMES = 40
"""Of more names than this only some are written."""
MOST_LETTERS = 32
WIDTH = 0.6
"""The width of a letter or digit at most, as a share of its size."""
OVER = 0.4
"""How far over the middle of its row a name stands that has no room beside it."""
BELOW_NAME = 0.42
"""The share of a row that its bar fills where the name stands over it."""
DATE = 0.76
"""Inches that a date needs."""
MONDAY = 4
"""A Monday, in days since 1970-01-01."""


def prepare(axes: Axes, x: Axis, y: Axis) -> None:
    """Choose linear or logarithmic scales, before there are data."""
    if x.log:
        axes.set_xscale("log")
    if y.log:
        axes.set_yscale("log")


def finish(axes: Axes, x: Axis, y: Axis, inches: tuple[float, float], *, over: bool = False) -> None:
    """Set limits, ticks and names, once the data are there. `over`: upright names stand over what they name."""
    axes.set_xlabel(words.wrapped(x.label, inches[0], SMALL_SIZE))
    axes.set_ylabel(words.wrapped(y.label, inches[1], SMALL_SIZE))
    left, right = _limits(x, *axes.get_xlim())
    axes.set_xlim(left, right)
    bottom, top = _limits(y, *axes.get_ylim())
    axes.set_ylim(bottom, top)
    _ticks(axes.xaxis, x, (left, right), inches[0] / DATE if x.dates else max(4, int(inches[0] * 1.8)))
    _ticks(axes.yaxis, y, (bottom, top), max(4, int(inches[1] * 2.2)))
    if y.names is not None and over:
        _rows_over(axes, y, inches[0])
    elif y.names is not None:
        _rows(axes, y)
    if x.names is not None:
        axes.grid(visible=False, axis="x")
        _lean(axes, inches[0])


def _limits(axis: Axis, low: float, high: float) -> tuple[float, float]:
    """Take the limits that were asked for, where they can be used."""
    wanted_low, wanted_high = (low if axis.low is None else axis.low), (high if axis.high is None else axis.high)
    floor = 0.0 if axis.log else -math.inf
    return (wanted_low, wanted_high) if floor < wanted_low < wanted_high < math.inf else (low, high)


def _ticks(side: Side, axis: Axis, limits: tuple[float, float], most: float) -> None:
    write = words.percent if axis.percent else words.number
    if axis.names is not None:
        step = math.ceil(len(axis.names) / MOST_NAMES) or 1
        side.set_ticks(
            range(0, len(axis.names), step), [words.label(name, MOST_LETTERS) for name in axis.names[::step]]
        )
        side.set_minor_locator(NullLocator())
    elif axis.dates:
        side.set_major_locator(FixedLocator(_days(limits, most)))
        side.set_major_formatter(_formatter(words.day))
    elif axis.log:
        _log_ticks(side, axis, limits, most, write)
    else:
        side.set_major_locator(MaxNLocator(int(most), steps=[1, 2, 2.5, 5, 10]))
        side.set_major_formatter(_formatter(write))


def _log_ticks(side: Side, axis: Axis, limits: tuple[float, float], most: float, write: Callable[[float], str]) -> None:
    """Powers of ten, or 1, 2 and 5 times them where there are too few powers to read values from."""
    first, last = (math.log10(limit) for limit in limits)
    factors = (1, 2, 5) if last - first < 2 else (1,)
    powers = range(math.floor(first), math.ceil(last) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    ticks = [tick for tick in ticks if limits[0] <= tick * (1 + 1e-9) and tick <= limits[1] * (1 + 1e-9)]
    side.set_major_locator(FixedLocator(ticks[:: math.ceil(len(ticks) / most) or 1]))
    side.set_minor_locator(NullLocator())
    near_one = limits[0] >= 0.9e-3 and limits[1] <= 1.1e4
    if axis.percent or near_one or len(factors) > 1:
        side.set_major_formatter(_formatter(write))
    else:
        side.set_major_formatter(_formatter(lambda value: words.power(round(math.log10(value)))))


def _days(limits: tuple[float, float], most: float) -> list[int]:
    """Every day, every other, each Monday, every other Monday, and so on, with so many steps at most."""
    first, last = math.ceil(limits[0]), math.floor(limits[1])
    steps = chain((1, 2), (7 * 2**power for power in count()))
    step = next(step for step in steps if (last - first) / step <= max(most, 2))
    return list(range(first + (MONDAY - first) % step, last + 1, step))


def _rows(axes: Axes, side: Axis) -> None:
    """Names one under the other, each with its note at the other end."""
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(side.names or ()) - 0.5, -0.5)
    notes = [words.label(note, MOST_LETTERS) for note in side.notes or ()]
    right = 8 + max(map(len, notes), default=0) * SMALL_SIZE * WIDTH
    for place, text in enumerate(notes):
        _write(axes, text, (1, place), "right", (right, 0))


def _rows_over(axes: Axes, side: Axis, inches: float) -> None:
    """Names over what they name, each with its note at the other end of the line: narrow paper has no room beside."""
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0, labelleft=False)
    axes.set_ylim(len(side.names or ()) - 0.6, -0.7)
    notes = [words.label(note, MOST_LETTERS) for note in side.notes or ()]
    widest = max(map(len, notes), default=0)
    letters = max(8, int(inches * 72 / (SMALL_SIZE * WIDTH)) - widest - 1)
    for place in axes.get_yticks():
        name = words.label((side.names or ())[int(place)], letters)
        _write(axes, name, (0, place - OVER), "left", (4, 0))
    for place, text in enumerate(notes):
        _write(axes, text, (1, place - OVER), "right", (0, 0))


def _write(axes: Axes, text: str, at: tuple[float, float], side: str, points: tuple[float, float]) -> None:
    """Write at a share of the width and a place on the upright side, some points away."""
    where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    how: dict[str, Any] = {"horizontalalignment": side, "verticalalignment": "center_baseline"}
    axes.annotate(text, at, points, size=SMALL_SIZE, **where, **how)


def _formatter(write: Callable[[float], str]) -> FuncFormatter:
    return FuncFormatter(lambda value, _: write(float(value)))


def _lean(axes: Axes, inches: float) -> None:
    """Turn the names below a panel when they would run into each other."""
    shown = [tick.get_text() for tick in axes.get_xticklabels()]
    widest = max(map(len, shown), default=0) * SMALL_SIZE * WIDTH / 72
    if shown and widest > 0.92 * inches / len(shown):
        axes.tick_params(axis="x", labelrotation=90 if len(shown) > 16 else 40)
        for tick in axes.get_xticklabels():
            tick.set(horizontalalignment="right", rotation_mode="anchor", verticalalignment="center")
