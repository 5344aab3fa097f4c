"""A figure becomes a picture: the one door to the library that draws."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hubbub.collector.charts.figure import Figure

Form = Literal["svg", "png"]

_ONE_AT_A_TIME = threading.Lock()
"""The library reads some of its settings from one place for all threads."""


def draw(figure: Figure, form: Form = "svg", *, dark: bool = False, narrow: bool = False) -> bytes:
    """Draw: the same figure always gives the same bytes, from any thread.

    `narrow` is for paper as wide as a phone: letters are as large as ever, and panels stand one under the other.

    The SVG carries its title and caption for those who cannot see it, keeps text as text, and has neither style
    elements nor style attributes, so that a page with a strict Content-Security-Policy may hold it inline.
    """
    # The library takes a second to load, which nobody should pay who draws nothing.
    from hubbub.collector.charts.picture import picture  # noqa: PLC0415

    with _ONE_AT_A_TIME:
        return picture(figure, form, dark, narrow)
