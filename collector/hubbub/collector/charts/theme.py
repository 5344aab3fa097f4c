"""Colours, markers and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hubbub.collector.charts.figure import Panel, Series

TITLE_SIZE, PANEL_SIZE, TEXT_SIZE, SMALL_SIZE = 13.0, 11.0, 10.0, 9.0
"""Points: the figure's title, a panel's, axes and legend, ticks and caption."""

FONTS = ["DejaVu Sans", "Verdana", "Segoe UI", "Helvetica", "Arial", "sans-serif"]
"""The first comes with the library, so that text is measured alike everywhere; a browser takes the first it has."""

MARKERS = ("o", "s", "D", "^", "v", "<", ">", "p", "X")
HATCHES = ("", "////", "\\\\\\\\", "----", "xxxx")
DASHES: tuple[tuple[float, ...], ...] = ((5.0, 2.5), (1.5, 1.8), (7.0, 2.0, 1.5, 2.0), (9.0, 3.0))


@dataclass(frozen=True, slots=True)
class Theme:
    """Paper, ink and the colours of the series."""

    paper: str
    ink: str
    quiet: str
    """Axes, caption and what else should stand back."""
    grid: str
    backdrop: str
    colours: tuple[str, ...]


# Okabe and Ito's colours (2008), which differ for colour-blind eyes too, those of least contrast last. Their yellow is
# darkened on white paper, their blue and black are lightened on dark.
LIGHT = Theme(
    paper="#ffffff",
    ink="#1b1b1b",
    quiet="#5c5c5c",
    grid="#e4e4e4",
    backdrop="#c3c8ce",
    colours=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#c9b900"),
)
DARK = Theme(
    paper="#14171c",
    ink="#ececec",
    quiet="#a9adb3",
    grid="#2d323a",
    backdrop="#434a55",
    colours=("#56b4e9", "#f0803c", "#1fc299", "#e08fbd", "#e6a817", "#5f8fe8", "#ffffff", "#f0e442"),
)


@dataclass(frozen=True, slots=True)
class Style:
    """How one series is told from the others, in colour and in grey."""

    colour: str
    marker: str
    hatch: str
    dashes: tuple[float, ...]


Styles = dict[tuple[str, bool], Style]


def styles(panels: Sequence[Panel], theme: Theme) -> Styles:
    """A style for each label, the same in all panels that have it; theory has styles of its own.

    Where a panel has several theories, one for each other series, they take the colours of those in their order.
    """
    found: Styles = {}
    for theory in (False, True):
        numbers: dict[str, int] = {}
        for panel in panels:
            series = [each for each in panel.series if (each.look == "theory") is theory]
            others = [each for each in panel.series if (each.look == "theory") is not theory]
            for place, each in enumerate(series):
                if each.label not in numbers:
                    numbers[each.label] = _free(each.label, panels, numbers, theory)
                    style = _numbered(numbers[each.label], theme)
                    if theory:
                        paired = 1 < len(series) == len(others)
                        style = _dashed(style, found[key(others[place])].colour if paired else theme.ink, paired)
                    found[key(each)] = style
    return found


def key(series: Series) -> tuple[str, bool]:
    """What a style is looked up by: theory and measurement may have the same name."""
    return series.label, series.look == "theory"


def _free(label: str, panels: Sequence[Panel], numbers: Mapping[str, int], theory: bool) -> int:
    """The first number that no neighbour in any panel has."""
    labels = [{each.label for each in panel.series if (each.look == "theory") is theory} for panel in panels]
    taken = {numbers[other] for panel in labels if label in panel for other in panel if other in numbers}
    return next(number for number in count() if number not in taken)


def _numbered(number: int, theme: Theme) -> Style:
    # Nine markers and eight colours: no two of the first seventy-two series share both.
    return Style(
        theme.colours[number % len(theme.colours)],
        MARKERS[number % len(MARKERS)],
        HATCHES[number % len(HATCHES)],
        DASHES[number % len(DASHES)],
    )


def _dashed(style: Style, colour: str, paired: bool) -> Style:
    return Style(colour, style.marker, style.hatch, DASHES[0] if paired else style.dashes)
