"""Figures: the same bytes for the same figure, readable by everybody, and no data that breaks them."""

import io
import re
import struct
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from hubbub.collector.charts import Axis, Figure, Panel, Series, draw
from hubbub.collector.charts.figure import Look
from hubbub.collector.charts.layout import NARROW
from hubbub.collector.charts.theme import DARK, LIGHT, styles
from hubbub.collector.charts.words import day, number, percent
from hubbub.shared.errors import ParameterError

SVG = "{http://www.w3.org/2000/svg}"
NAN, INFINITE = float("nan"), float("inf")
LOOKS: tuple[Look, ...] = ("line", "points", "theory", "band", "trend", "bars", "backdrop")


DAYS, SHARE = Axis("days"), Axis("share")


def one(*series: Series, x: Axis = DAYS, y: Axis = SHARE, title: str = "a panel") -> Figure:
    return Figure("A title", "What there is to learn.", [Panel(title, x, y, series)])


def texts(svg: bytes) -> list[str]:
    return ["".join(each.itertext()) for each in ET.fromstring(svg).iter(f"{SVG}text")]


def dark_pixels(png: bytes) -> NDArray[np.bool_]:
    """Where there is ink on white paper."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("L")) < 200


def points(svg: bytes) -> int:
    """How many markers there are, the one in the legend included: ticks are lines, not closed shapes."""
    root = ET.fromstring(svg)
    closed = {each.get("id") for each in root.iter(f"{SVG}path") if "z" in each.get("d", "") and each.get("id")}
    href = "{http://www.w3.org/1999/xlink}href"
    return sum(each.get(href, "")[1:] in closed for each in root.iter(f"{SVG}use"))


FULL = Figure(
    "Error against devices",
    "Four times the devices halve the error.",
    [
        Panel(
            "measured",
            Axis("devices", log=True),
            Axis("error [ms]", log=True),
            [
                Series("one-bit mean", [1e3, 1e4, 1e5], [0.1, 0.03, 0.01], [0.08, 0.02, 0.005], [0.2, 0.04, 0.02]),
                Series("formula", [1e3, 1e5], [0.1, 0.01], look="theory"),
            ],
        ),
        Panel(
            "shares",
            Axis("theme", names=["light", "dark"]),
            Axis("share of devices", percent=True),
            [
                Series("truth", [0, 1], [0.4, 0.6], look="bars"),
                Series("estimate", [0, 1], [0.42, 0.58], [0.3, 0.5], [0.5, 0.7], look="bars"),
            ],
        ),
    ],
)


@pytest.fixture(scope="module")
def full() -> bytes:
    return draw(FULL)


class TestPicture:
    def test_the_same_bytes_from_any_thread_and_under_any_settings_of_the_user(self, full: bytes) -> None:
        import matplotlib as mpl

        with ThreadPoolExecutor(3) as threads:
            drawn = {full, *threads.map(lambda _: draw(FULL), range(3))}
        with mpl.rc_context({"svg.fonttype": "path", "font.size": 30, "xtick.direction": "in", "svg.hashsalt": "x"}):
            drawn.add(draw(FULL))
            assert mpl.rcParams["font.size"] == 30
        assert len(drawn) == 1

    def test_the_same_bytes_from_another_process_which_never_loads_pyplot(self) -> None:
        program = (
            "import sys, hubbub.collector.charts as charts\n"
            "assert 'matplotlib' not in sys.modules\n"
            "figure = charts.Figure('t', 'c', [charts.Panel('p', charts.Axis('x'), charts.Axis('y'),"
            " [charts.Series('s', [1, 2], [3, 4])])])\n"
            "drawn = charts.draw(figure)\n"
            "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
            "sys.stdout.buffer.write(drawn)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        panel = Panel("p", Axis("x"), Axis("y"), [Series("s", [1, 2], [3, 4])])
        assert done.stdout == draw(Figure("t", "c", [panel]))

    def test_svg_tells_title_caption_and_every_label_as_text(self, full: bytes) -> None:
        root = ET.fromstring(full)
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        assert [(each.tag, each.text) for each in root[:2]] == [
            (f"{SVG}title", FULL.title),
            (f"{SVG}desc", FULL.caption),
        ]
        shown = texts(full)
        for panel in FULL.panels:
            for wanted in (panel.title, panel.x.label, panel.y.label, *(each.label for each in panel.series)):
                assert wanted in shown
        assert {"Error against devices", "Four times the devices halve the error."} <= set(shown)
        assert {"10³", "10⁴", "10⁵", "0.1", "light", "dark", "40 %"} <= set(shown)
        [family] = {each.get("font-family") for each in root.iter(f"{SVG}text")}
        assert family is not None
        assert family.endswith(", sans-serif")

    def test_narrow_paper_has_letters_as_large_and_all_of_them(self, full: bytes) -> None:
        narrow = draw(FULL, narrow=True)
        wide_root, root = ET.fromstring(full), ET.fromstring(narrow)
        (width, height), (wide, low) = (
            [float(each.get(side, "").removesuffix("pt")) for side in ("width", "height")] for each in (root, wide_root)
        )
        assert width == pytest.approx(72 * NARROW)
        assert width < wide
        assert height > low, "panels stand one under the other"
        sizes = [{each.get("font-size") for each in one.iter(f"{SVG}text")} for one in (wide_root, root)]
        assert sizes[0] == sizes[1]
        assert {panel.title for panel in FULL.panels} <= set(texts(narrow))

    @pytest.mark.parametrize("long", ["site.example", "example-" * 60, "many short words " * 20])
    def test_nothing_is_written_beyond_narrow_paper(self, long: str) -> None:
        """Ink stays away from all edges, however long names, labels and titles are."""
        lying = Series("", [0, 1], [0.3, 0.1], [0.2, 0.05], [0.4, 0.2], "bars", sideways=True)
        rows = Panel("", Axis("share", percent=True), Axis("", names=[long, "b"], notes=["12.34 %", "1.20 %"]), [lying])
        days = Axis("day", dates=True, low=20_700, high=20_730)
        lines = [Series(name, [20_701, 20_729], [0.1, 0.2], [0.0, 0.1], [0.2, 0.3], "trend") for name in (long, "b")]
        for panel in (rows, Panel("", days, Axis(long[:60], percent=True), lines)):
            ink = dark_pixels(draw(Figure(long, long, [panel]), "png", narrow=True))
            margin = 8
            assert ink[:, :margin].sum() == ink[:, -margin:].sum() == ink[:margin].sum() == ink[-margin:].sum() == 0
            assert ink.any()

    def test_on_narrow_paper_names_stand_over_their_bars(self) -> None:
        lying = Series("", [0, 1], [0.3, 0.1], look="bars", sideways=True)
        names = Axis("", names=["a-name-of-30-letters-in-a-row.x", "b"], notes=["30 %", "10 %"])
        shown = texts(draw(Figure("t", "", [Panel("", Axis("share", percent=True), names, [lying])]), narrow=True))
        assert {"a-name-of-30-letters-in-a-row.x", "b", "30 %", "10 %"} <= set(shown)

    def test_a_strict_content_security_policy_lets_it_be_inline(self, full: bytes) -> None:
        elements = list(ET.fromstring(full).iter())
        assert not [each for each in elements if "style" in each.attrib or each.tag == f"{SVG}style"]
        assert any(each.get("stroke-dasharray") for each in elements)
        assert full.startswith(b"<svg ")

    def test_png_has_its_signature_and_room_for_two_panels(self) -> None:
        drawn = draw(FULL, "png")
        assert drawn.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", drawn[16:24])
        assert width == 1536
        assert 500 < height < 1200

    def test_dark_has_dark_paper(self, full: bytes) -> None:
        light, dark = full.decode(), draw(FULL, dark=True).decode()
        assert LIGHT.paper in light
        assert DARK.paper not in light
        assert DARK.paper in dark
        assert LIGHT.ink not in dark
        assert texts(light.encode()) == texts(dark.encode())


class TestHostileStrings:
    def test_labels_show_as_themselves(self) -> None:
        label = '$\\frac{1}{0}$ & <script>alert("x")</script> style="fill: red"'
        figure = one(Series("_" + label[:40], [1], [1]), x=Axis(label), y=Axis("_y_"), title=label)
        drawn = draw(Figure(label, label, figure.panels))
        root = ET.fromstring(drawn)
        assert (root[0].text, root[1].text) == (label, label)
        shown = texts(drawn)
        assert shown.count(label) >= 3
        assert {"_y_", "_" + label[:40]} <= set(shown)
        assert not list(root.iter(f"{SVG}script"))

    def test_what_no_font_or_xml_can_show_is_no_error(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn = draw(one(Series("日本語 \x00\x1b[31m \ud800 \uffff", [1], [1]), x=Axis("two\nlines")))
        shown = texts(drawn)
        assert "日本語 \ufffd\ufffd[31m \ufffd \ufffd" in shown
        assert "two lines" in shown

    def test_a_long_label_is_cut_and_a_long_title_wrapped(self) -> None:
        figure = one(Series("x" * 1000, [1], [1]))
        drawn = draw(Figure("WORD " * 60, "word " * 200, figure.panels))
        assert any(re.fullmatch("x+…", each) for each in texts(drawn))
        assert max(map(len, texts(drawn))) < 160
        width = float(ET.fromstring(drawn).get("viewBox", "").split()[2])
        assert width == pytest.approx(7.2 * 72)


class TestOddData:
    @pytest.mark.parametrize("look", LOOKS)
    def test_nothing_crashes(self, look: Look) -> None:
        axis, log = Axis("x"), Axis("x", log=True)
        odd = [NAN, INFINITE, -INFINITE, 0.0, -1.0, 1e308, -1e308, 1e-300, 5.0]
        series = [
            Series("empty", [], [], look=look),
            Series("one", [2.0], [3.0], [NAN], [INFINITE], look=look),
            Series("odd", odd, odd, odd[::-1], odd, look=look),
            Series("nothing", [NAN], [NAN], look=look),
        ]
        lying = [replace(each, sideways=True) for each in series]
        panels = [Panel("", axis, axis, series), Panel("", log, log, series), Panel("", log, axis, series[:1])]
        panels += [Panel("", Axis("x", dates=True), log, lying)]
        ET.fromstring(draw(Figure("", "", panels)))

    def test_points_that_have_no_place_are_left_out(self) -> None:
        x, y = [1.0, 2.0, NAN, 4.0, 5.0, 6.0], [1.0, INFINITE, 3.0, 4.0, 0.0, -2.0]
        assert points(draw(one(Series("s", x, y, look="points")))) == 4 + 1
        assert points(draw(one(Series("s", x, y, look="points"), y=Axis("y", log=True)))) == 2 + 1

    def test_limits_that_cannot_be_are_not_taken(self) -> None:
        def panel(low: float | None, high: float | None) -> Panel:
            return Panel("", Axis("x", log=True, low=low, high=high), SHARE, [Series("", [10, 1000], [1, 2])])

        impossible = [panel(0.0, 1.0), panel(5.0, 1.0), panel(NAN, 1.0), panel(1.0, 1.0), panel(None, INFINITE)]
        plain = draw(Figure("", "", [panel(None, None)] * len(impossible)))
        assert draw(Figure("", "", impossible)) == plain

    def test_limits_are_kept(self) -> None:
        shown = texts(draw(one(Series("s", [1, 2], [0.2, 0.3]), y=Axis("y", percent=True, low=0, high=1))))
        assert {"0 %", "100 %"} <= set(shown)

    def test_a_figure_without_panels_has_its_words(self) -> None:
        assert texts(draw(Figure("title", "caption", []))) == ["title", "caption"]

    @pytest.mark.parametrize("name", ["y", "low", "high"])
    def test_lengths_must_match(self, name: str) -> None:
        given = {"y": [1.0, 2.0], "low": [1.0, 2.0], "high": [1.0, 2.0]} | {name: [1.0]}
        with pytest.raises(ParameterError, match=f'series "s": {name} has length 1, x has 2; allowed: the same'):
            Series("s", [1.0, 2.0], given["y"], given["low"], given["high"])


class TestRows:
    """Names one under the other, with bars and intervals that lie."""

    ROWS = Axis("", names=["first", "second", "third"], notes=["10 %", "20 %", "<5 %"])

    def drawn(self, *series: Series, x: Axis = SHARE) -> bytes:
        return draw(one(*series, x=x, y=self.ROWS))

    def place(self, svg: bytes, text: str) -> tuple[float, float]:
        [found] = [each for each in ET.fromstring(svg).iter(f"{SVG}text") if "".join(each.itertext()) == text]
        return float(found.get("x", "nan")), float(found.get("y", "nan"))

    def test_the_first_is_at_the_top_between_its_name_and_its_note(self) -> None:
        svg = self.drawn(Series("", [0, 1, 2], [1, 2, 3], look="bars", sideways=True))
        names = [self.place(svg, name) for name in self.ROWS.names or ()]
        notes = [self.place(svg, note) for note in self.ROWS.notes or ()]
        assert names[0][1] < names[1][1] < names[2][1]
        for name, note in zip(names, notes, strict=True):
            assert name[1] == pytest.approx(note[1], abs=2)
            assert name[0] + 300 < note[0] < 7.2 * 72

    def test_paper_gets_as_high_as_its_names_need(self) -> None:
        def height(rows: int) -> float:
            names = Axis("", names=["name"] * rows)
            svg = draw(one(Series("", [0], [1], look="bars", sideways=True), y=names))
            return float(ET.fromstring(svg).get("viewBox", "").split()[3])

        assert height(20) - height(10) == pytest.approx(10 * 0.29 * 72, abs=1)

    @pytest.mark.parametrize("look", ["bars", "points", "backdrop"])
    def test_intervals_lie(self, look: Look) -> None:
        """A wide one makes the panel wide, and not high: there is one side that gets so far."""
        narrow, wide = (
            texts(draw(one(Series("", [0, 1, 2], [1, 2, 3], [0, 1, 2], [2, 3, high], look, sideways=True))))
            for high in (4.0, 4000.0)
        )
        assert (narrow.count("4,000"), wide.count("4,000")) == (0, 1)

    def test_stacked_panels_are_one_under_the_other(self) -> None:
        panels = [Panel(title, DAYS, SHARE, [Series("", [0, 1], [0, 1])]) for title in ("upper", "lower")]
        beside, stacked = (draw(Figure("", "", panels, stacked=stacked)) for stacked in (False, True))
        (left, top), (right, level) = (self.place(beside, title) for title in ("upper", "lower"))
        assert (left < right, top) == (True, level)
        (left, top), (right, bottom) = (self.place(stacked, title) for title in ("upper", "lower"))
        assert (left, top < bottom) == (right, True)


class TestTrend:
    def paths(self, *y: float) -> list[str]:
        """The lines of a picture."""
        svg = draw(one(Series("s", range(len(y)), y, [each - 1 for each in y], [each + 1 for each in y], "trend")))
        return [each.get("d", "") for each in ET.fromstring(svg).iter(f"{SVG}path") if each.get("fill") == "none"]

    def test_it_breaks_off_where_a_number_is_missing(self) -> None:
        def strokes(*y: float) -> int:
            return max(path.count("M") for path in self.paths(*y))

        assert strokes(1.0, 2.0, 3.0, 4.0, 5.0) == 1
        assert strokes(1.0, 2.0, NAN, 4.0, 5.0) == 2


class TestDates:
    def dates(self, first: float, last: float) -> list[str]:
        x = Axis("day", dates=True, low=first, high=last)
        return [text for text in texts(draw(one(Series("s", [first, last], [1, 2]), x=x))) if text[:2] in {"20", "19"}]

    def test_days_are_written_as_dates(self) -> None:
        assert self.dates(20_773, 20_776) == ["2026-11-16", "2026-11-17", "2026-11-18", "2026-11-19"]

    def test_weeks_begin_on_mondays(self) -> None:
        assert self.dates(20_774, 20_802) == ["2026-11-23", "2026-11-30", "2026-12-07", "2026-12-14"]

    def test_years_have_few_of_them(self) -> None:
        assert 3 <= len(self.dates(11_000, 20_773)) <= 12

    def test_days_beyond_the_calendar_have_no_name(self) -> None:
        assert day(0) == "1970-01-01"
        assert day(1e9) == day(-1e9) == ""


class TestStyles:
    def test_a_name_has_one_style_in_all_panels_and_neighbours_differ(self) -> None:
        def panel(*labels: str) -> Panel:
            return Panel("", Axis("x"), Axis("y"), [Series(label, [], []) for label in labels])

        many = [f"{place}" for place in range(70)]
        found = styles([panel("a", "b"), panel("b", "c"), panel(*many)], LIGHT)
        assert len({found[label, False].colour for label in "ab"}) == 2
        assert len({found[label, False].colour for label in "bc"}) == 2
        assert len({(found[label, False].colour, found[label, False].marker) for label in many}) == 70

    def test_theories_take_the_colours_of_what_they_explain(self) -> None:
        looks: list[tuple[str, Look]] = [("a", "line"), ("b", "line"), ("of a", "theory"), ("of b", "theory")]
        panel = Panel("", Axis("x"), Axis("y"), [Series(label, [], [], look=look) for label, look in looks])
        found = styles([panel], LIGHT)
        assert found["of a", True].colour == found["a", False].colour != found["b", False].colour
        assert found["of b", True].colour == found["b", False].colour


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0"), (0.25, "0.25"), (-3.0, "-3"), (20_000.0, "20,000"), (2.5e6, "2,500,000"), (1e9, "10⁹"),
     (3e-7, "3·10⁻⁷"), (0.1 + 0.2, "0.3"), (1e-4, "0.0001")],
)  # fmt: skip
def test_numbers_are_written_as_a_person_would(value: float, written: str) -> None:
    assert number(value) == written


def test_shares_are_written_in_per_cent() -> None:
    assert [percent(share) for share in (0.0, 0.07, 0.125, 1.0)] == ["0 %", "7 %", "12.5 %", "100 %"]
