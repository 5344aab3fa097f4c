"""A line as small as a word, to stand in a row of a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from hubbub.collector.charts.words import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 120, 24
EDGE = 3.0
"""Room for half the line and for the dot at its end."""


def sparkline(numbers: Sequence[float], label: str) -> str:
    """Draw numbers in their order as an inline SVG in the colour of the text; `label` tells those who cannot see it.

    It has no style, so that a strict Content-Security-Policy allows it. Numbers that are not finite have no place.
    """
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'{head} role="img" aria-label={quoteattr(plain(label))}>{_drawn(numbers)}</svg>'


def _drawn(numbers: Sequence[float]) -> str:
    there = [(place, float(number)) for place, number in enumerate(numbers) if math.isfinite(number)]
    if not there:
        return ""
    low, high = min(number for _, number in there), max(number for _, number in there)
    # Halved first, so that no difference of two floats is too large for one.
    span = high / 2 - low / 2
    dots = [
        (
            EDGE + (WIDTH - 2 * EDGE) * (place / (len(numbers) - 1) if len(numbers) > 1 else 1.0),
            HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * ((number / 2 - low / 2) / span if span else 0.5),
        )
        for place, number in there
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
    x, y = dots[-1]
    return (
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round" '
        f'stroke-linecap="round"/><circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="currentColor"/>'
    )
