"""What a figure shows, in plain values: whoever describes one knows nothing of the library that draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

Look = Literal["line", "points", "theory", "band", "trend", "bars", "backdrop"]
"""line: joined markers; points: markers alone; theory: a thin dashed line; band: a line in its interval; bars.

A trend is joined markers in their interval; where a number is missing, it breaks off instead of guessing. A backdrop
is grey bars that others stand before.
Several theories, as many as there are other series in the panel, take the colours of those, in their order.
"""


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers that belong together, under one name in the legend."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    """Ends of the error bars, or of the band. One of the two may be missing: then the point is that end."""
    high: Sequence[float] | None = None
    look: Look = "line"
    sideways: bool = False
    """Bars, points and lines whose x runs along the upright side, and everything else from left to right."""

    def __post_init__(self) -> None:
        for name, values in (("y", self.y), ("low", self.low), ("high", self.high)):
            if values is not None and len(values) != len(self.x):
                raise ParameterError(
                    f'series "{self.label}": {name} has length {len(values)}, x has {len(self.x)}; allowed: the same'
                )


@dataclass(frozen=True, slots=True)
class Axis:
    """What is measured along one side, with its unit."""

    label: str
    log: bool = False
    percent: bool = False
    """Shares are written in per cent."""
    low: float | None = None
    high: float | None = None
    names: Sequence[str] | None = None
    """Names for the positions 0, 1, 2 and so on, instead of numbers. On an upright side, the first is at the top."""
    notes: Sequence[str] | None = None
    """What is written at the other end of each position of an upright side that has names."""
    dates: bool = False
    """Numbers are days since 1970-01-01, written as dates."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels side by side, and what there is to learn from them."""

    title: str
    caption: str
    panels: Sequence[Panel]
    stacked: bool = False
    """Panels one under the other instead, which suits a narrow page."""
