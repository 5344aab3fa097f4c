"""Draw with matplotlib. Only its objects are used, never pyplot, which would keep every figure and choose a window."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from hubbub.collector.charts import words
from hubbub.collector.charts.layout import arrange
from hubbub.collector.charts.svg import accessible
from hubbub.collector.charts.theme import DARK, FONTS, LIGHT, SMALL_SIZE, TEXT_SIZE

if TYPE_CHECKING:
    from hubbub.collector.charts.draw import Form
    from hubbub.collector.charts.figure import Figure
    from hubbub.collector.charts.theme import Theme

DOTS_PER_INCH = 160
NO_METADATA = {"svg": dict.fromkeys(("Date", "Creator", "Format", "Type")), "png": {"Software": None}}


def picture(figure: Figure, form: Form, dark: bool, narrow: bool) -> bytes:
    """Draw under our own settings: a user's matplotlibrc changes nothing. For one thread at a time."""
    theme = DARK if dark else LIGHT
    with mpl.rc_context(), warnings.catch_warnings():
        # A letter that the measuring font lacks is the business of the reader's fonts.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        mpl.rcParams.update(_settings(theme))
        canvas = Canvas(dpi=DOTS_PER_INCH)
        arrange(canvas, figure, theme, narrow=narrow)
        out = io.BytesIO()
        canvas.savefig(out, format=form, metadata=NO_METADATA[form])
    if form == "png":
        return out.getvalue()
    return accessible(out.getvalue().decode(), words.plain(figure.title), words.plain(figure.caption)).encode()


def _settings(theme: Theme) -> dict[Any, Any]:
    ours = {
        "axes.axisbelow": True,
        "axes.edgecolor": theme.quiet,
        "axes.facecolor": theme.paper,
        "axes.grid": True,
        "axes.labelcolor": theme.ink,
        "axes.labelsize": TEXT_SIZE,
        "axes.linewidth": 0.8,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": theme.paper,
        "font.family": "sans-serif",
        "font.sans-serif": FONTS,
        "font.size": TEXT_SIZE,
        "grid.color": theme.grid,
        "grid.linewidth": 0.7,
        "hatch.color": theme.paper,
        "hatch.linewidth": 0.7,
        "svg.fonttype": "none",
        "svg.hashsalt": "hubbub",
        "text.color": theme.ink,
        "text.parse_math": False,
        "xtick.color": theme.quiet,
        "xtick.labelcolor": theme.ink,
        "xtick.labelsize": SMALL_SIZE,
        "ytick.color": theme.quiet,
        "ytick.labelcolor": theme.ink,
        "ytick.labelsize": SMALL_SIZE,
    }
    return _DEFAULTS | ours


_DEFAULTS = {name: value for name, value in mpl.rcParamsDefault.items() if not name.startswith("backend")}
