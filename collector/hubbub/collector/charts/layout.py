"""Where everything stands: title, panels, legends and caption, each with the room it needs.

The paper has a given width, and gets as high as its contents. All lengths are inches, counted from the top left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg

from hubbub.collector.charts import looks, scales, theme, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.figure import Figure as Canvas
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    from hubbub.collector.charts.figure import Figure, Panel, Series
    from hubbub.collector.charts.theme import Theme

WIDTHS = {1: 7.2, 2: 9.6, 3: 12.6}
"""Of the paper, by the panels in a row."""
HEIGHTS = {1: 3.7, 2: 3.3, 3: 3.1}
"""Of the plotting area, likewise."""
STACKED = 2.3
"""Of each plotting area where several stand one under the other."""
ROW, NARROW_ROW = 0.29, 0.46
"""Of each name on an upright side; and of each name over its bar."""
NARROW = 3.35
"""The width of narrow paper: what the cards of a page leave of a phone of 390 points."""
SMALLEST = 0.5
"""The room that a line has at least."""
EDGE, GAP = 0.16, 0.14
"""Around everything, and between two things."""
AROUND, AROUND_ROWS = 0.9, 0.3
"""A first guess of what the texts at the sides of a panel need; the same where names stand over their bars."""


SAMPLE, LETTER = 5.0, 0.58
"""What an entry of a legend needs besides its name, and for each letter of it, as multiples of the letters' size."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A panel with its legend, and how far its texts reach beyond its plotting area."""

    axes: Axes
    legend: Legend | None
    left: float
    right: float
    above: float
    below: float
    under: float
    """The height of the legend, with the gap over it."""


class Paper:
    """What is drawn on, and measured with."""

    def __init__(self, canvas: Canvas, columns: int, height: float, *, narrow: bool) -> None:
        self.canvas = canvas
        self.columns = columns
        self.narrow = narrow
        self.width = NARROW if narrow else WIDTHS.get(columns, 4.2 * columns)
        self.height = height
        self.inside = self.width - 2 * EDGE
        canvas.set_size_inches(self.width, 2 * self.height + 2)
        self.renderer: RendererBase = FigureCanvasAgg(canvas).get_renderer()  # type: ignore[no-untyped-call]

    def size(self, part: Text | Legend) -> tuple[float, float]:
        """Width and height of a part."""
        box = part.get_window_extent(self.renderer)
        return box.width / self.canvas.dpi, box.height / self.canvas.dpi

    def text(self, text: str, size: float, **look: Any) -> Text:
        """Put a text of several lines on it."""
        broken = words.wrapped(text, self.inside, size)
        part = self.canvas.text(0, 0, broken, size=size, verticalalignment="top", linespacing=1.35, **look)
        room = self.inside
        while (width := self.size(part)[0]) > self.inside and room > SMALLEST:
            # Wide letters: so much shorter as the lines are too long, and at least a little.
            room *= 0.97 * self.inside / width
            part.set_text(words.wrapped(text, room, size))
        return part

    def panel(self, panel: Panel, styles: theme.Styles, colours: Theme, *, own_legend: bool) -> Placed:
        """Draw a panel at a first guess of its size, and measure it."""
        room = self.inside / self.columns
        over = self.narrow and panel.y.names is not None
        wide = room - (AROUND_ROWS if over else AROUND)
        axes = self.canvas.add_axes((0.2, 0.2, wide / self.width, self.height / float(self.canvas.get_figheight())))
        scales.prepare(axes, panel.x, panel.y)
        samples = looks.plot(axes, panel, styles, colours, scales.BELOW_NAME if over else looks.GROUP)
        scales.finish(axes, panel.x, panel.y, (wide, self.height), over=over)
        if panel.title:
            title = words.wrapped(panel.title, wide, theme.PANEL_SIZE)
            axes.set_title(title, size=theme.PANEL_SIZE, loc="left", pad=8)
        legend = self.legend(panel.series, samples, room - GAP) if own_legend else None
        inner = axes.get_window_extent(self.renderer)
        outer = axes.get_tightbbox(self.renderer) or inner
        reach = (inner.x0 - outer.x0, outer.x1 - inner.x1, outer.y1 - inner.y1, inner.y0 - outer.y0)
        left, right, above, below = (max(0.0, pixels) / self.canvas.dpi for pixels in reach)
        return Placed(axes, legend, left, right, above, below, self.size(legend)[1] + GAP if legend else 0.0)

    def legend(self, series: Sequence[Series], samples: Sequence[Artist], room: float) -> Legend | None:
        """Draw a legend in as many columns as there is room for. A series without a name is left out."""
        letters = room * 72 / theme.SMALL_SIZE
        most = int((letters - SAMPLE) / LETTER) if self.narrow else words.MOST_LETTERS
        named = [
            (words.label(each.label, most), sample) for each, sample in zip(series, samples, strict=True) if each.label
        ]
        if not named:
            return None
        columns = _columns([len(name) for name, _ in named], letters)
        legend = self.canvas.legend(
            [sample for _, sample in named],
            ["?"] * len(named),
            loc="upper left",
            ncols=columns,
            fontsize=theme.SMALL_SIZE,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handlelength=2.4,
            handletextpad=0.6,
            columnspacing=1.8,
        )
        # Handed over here, names may begin with an underscore, which matplotlib would leave out.
        for text, (name, _) in zip(legend.get_texts(), named, strict=True):
            text.set_text(name)
        return legend


def _columns(letters: Sequence[int], room: float) -> int:
    """The most columns that a legend has room for. It is filled column by column; lengths are sizes of letters."""
    for rows in range(1, len(letters)):
        columns = [letters[start : start + rows] for start in range(0, len(letters), rows)]
        if sum(max(column) * LETTER + SAMPLE for column in columns) <= room:
            return len(columns)
    return 1


def _beside(figure: Figure, *, narrow: bool) -> int:
    """How many panels stand side by side."""
    if figure.stacked or narrow:
        return 1
    return 2 if len(figure.panels) == 4 else max(1, min(3, len(figure.panels)))


def _height(figure: Figure, columns: int, *, narrow: bool) -> float:
    """The height of all plotting areas."""
    names = max((len(panel.y.names or ()) for panel in figure.panels), default=0)
    if names:
        return (min(names, scales.MOST_NAMES) + 0.5) * (NARROW_ROW if narrow else ROW)
    return STACKED if figure.stacked or narrow else HEIGHTS.get(columns, HEIGHTS[3])


def arrange(canvas: Canvas, figure: Figure, colours: Theme, *, narrow: bool) -> None:
    """Draw everything, measure it, give each part its place and cut the paper to size."""
    columns = _beside(figure, narrow=narrow)
    paper = Paper(canvas, columns, _height(figure, columns, narrow=narrow), narrow=narrow)
    styles = theme.styles(figure.panels, colours)
    labels = [[(each.label, each.look) for each in panel.series] for panel in figure.panels]
    shared = len(labels) > 1 and all(each == labels[0] for each in labels)
    title = paper.text(figure.title, theme.TITLE_SIZE, weight="bold")
    placed = [paper.panel(panel, styles, colours, own_legend=not shared) for panel in figure.panels]
    legend = None
    if shared:
        legend = paper.legend(figure.panels[0].series, looks.samples(figure.panels[0], styles, colours), paper.inside)
    caption = paper.text(figure.caption, theme.SMALL_SIZE, color=colours.quiet)
    _place(paper, title, [placed[start : start + columns] for start in range(0, len(placed), columns)], legend, caption)


def _place(paper: Paper, title: Text, rows: list[list[Placed]], legend: Legend | None, caption: Text) -> None:
    """From the top down. Positions are shares of the paper, whose height is known only at the end."""
    title_down = EDGE
    down = title_down + (paper.size(title)[1] + GAP if title.get_text() else 0.0)
    lefts = [max(row[column].left for row in rows if column < len(row)) for column in range(paper.columns) if rows]
    rights = [max(row[column].right for row in rows if column < len(row)) for column in range(paper.columns) if rows]
    gaps = 2 * GAP * (paper.columns - 1)
    wide = (paper.inside - sum(lefts) - sum(rights) - gaps) / paper.columns
    boxes: list[tuple[Placed, float, float]] = []
    for row in rows:
        down += max(panel.above for panel in row)
        across = EDGE
        for column, panel in enumerate(row):
            boxes.append((panel, across + lefts[column], down))
            across += lefts[column] + wide + rights[column] + 2 * GAP
        down += paper.height + max(panel.below for panel in row) + max(panel.under for panel in row) + GAP
        down += GAP if row is not rows[-1] else 0.0
    legend_down = down
    down += paper.size(legend)[1] + GAP if legend else 0.0
    caption_down = down
    down += paper.size(caption)[1] + GAP if caption.get_text() else 0.0
    high = down - GAP + EDGE

    paper.canvas.set_size_inches(paper.width, high)
    title.set_position((EDGE / paper.width, 1 - title_down / high))
    caption.set_position((EDGE / paper.width, 1 - caption_down / high))
    for panel, x, y in boxes:
        shares = (x / paper.width, 1 - (y + paper.height) / high, wide / paper.width, paper.height / high)
        panel.axes.set_position(shares)
        if panel.legend:
            below = max(each.below for row in rows if panel in row for each in row)
            _anchor(paper, panel.legend, x, wide, 1 - (y + paper.height + below + GAP) / high)
    if legend:
        _anchor(paper, legend, EDGE, paper.inside, 1 - legend_down / high)


def _anchor(paper: Paper, legend: Legend, x: float, wide: float, top: float) -> None:
    """Centre a legend under something, but on the paper."""
    width = paper.size(legend)[0]
    left = min(max(EDGE, x + (wide - width) / 2), max(EDGE, paper.width - EDGE - width))
    legend.set_bbox_to_anchor((left / paper.width, top), paper.canvas.transFigure)
