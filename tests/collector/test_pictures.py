"""Pictures of estimates: every kind with data, without, and with an alarm; whatever the values are called.

Reports are drawn with a fixed seed. Of what is drawn, figures are looked into, and SVG is read where words matter.
"""

import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date, timedelta
from importlib.resources import files

import msgspec
import pytest

from hubbub.collector import Estimates, Tally, decode
from hubbub.collector.charts import Figure, Series, draw
from hubbub.collector.decode.estimates import Diagnostic, Number, Row
from hubbub.collector.pictures import Compared, of_comparison, of_estimates, of_history, sparkline, wording
from hubbub.shared import Registry
from hubbub.simulations import simulate_tally

SVG = "{http://www.w3.org/2000/svg}"
MONDAY = date(2026, 11, 16)
TOML = files("hubbub.simulations").joinpath("demo.toml").read_text("utf-8")
REGISTRY = Registry.parse(TOML)
TRUTH: dict[str, dict[str | bool | float, int]] = {
    "homepage": {"a.example": 120_000, "b.example": 60_000, "c.example": 20_000},
    "theme": {"light": 100_000, "dark": 90_000, "system": 10_000},
    "crashed": {True: 20_000, False: 180_000},
    "minutes_used": {20.0: 100_000, 220.0: 100_000},
    "startup_ms": {100.0: 50_000, 700.0: 100_000, 1500.0: 50_000},
}
CANDIDATES = ("a.example", "b.example", "c.example", *(f"absent{number}.example" for number in range(30)))
HOSTILE = '</svg><script>alert("$1$")</script>&amp; \x00\u202e' + "w" * 500


def decoded(name: str, share: float = 1.0, seed: int = 1, day: date = MONDAY) -> Estimates:
    """What the crowd's reports of one day say; `share` takes a part of the crowd."""
    metric = REGISTRY[name]
    truth = {value: int(count * share) for value, count in TRUTH[name].items()}
    tally = simulate_tally(metric, truth, seed) if share else Tally.empty(metric)
    asked = CANDIDATES if metric.kind == "string" else None
    return decode(metric, replace(tally, start=day, end=day), candidates=asked, periods=1)


@pytest.fixture(scope="module")
def full() -> dict[str, Estimates]:
    return {name: decoded(name) for name in TRUTH}


def alarmed(estimates: Estimates) -> Estimates:
    wrong = Diagnostic("misfit", 9.0, 1.0, 1e-9, True, "some reports are not honest ones")
    return msgspec.structs.replace(estimates, diagnostics=(*estimates.diagnostics, wrong))


def rows_of(shares: dict[str, float], reach: float = 0.01, *, found: bool = True) -> tuple[Row, ...]:
    return tuple(
        Row(value, share * 1000, share, reach / 2, share - reach, share + reach, 0.0, found, share, reach / 2,
            share - reach, share + reach)
        for value, share in shares.items()
    )  # fmt: skip


def made(kind: str, rows: tuple[Row, ...] = (), **more: object) -> Estimates:
    known = {"metric": "m", "version": 1, "start": MONDAY, "end": MONDAY, "reports": 1000, "periods": 1}
    return Estimates(**known, devices=1000, confidence=0.9, kind=kind, rows=rows, **more)  # type: ignore[arg-type]


def series(figure: Figure) -> list[Series]:
    return [each for panel in figure.panels for each in panel.series]


def shown(figure: Figure) -> list[str]:
    """All texts of the picture, which has to be sound, too."""
    root = ET.fromstring(draw(figure))
    assert not list(root.iter(f"{SVG}script"))
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("value", "reach", "told"),
    [
        (1979.43, 301.4, "1,980"),
        (919.777, 22.4, "920"),
        (86.9851, 0.44, "86.99"),
        (-0.001, 3.0, "0.0"),
        (7.0, 0.0, "7.0"),
    ],
)
def test_numbers_have_the_digits_that_are_known(value: float, reach: float, told: str) -> None:
    assert wording.number(value, reach) == told


class TestEstimates:
    @pytest.mark.parametrize("name", list(TRUTH))
    def test_every_kind_tells_its_reports_days_and_confidence_and_is_drawn(
        self, full: dict[str, Estimates], name: str
    ) -> None:
        figure = of_estimates(full[name])
        assert figure.title.startswith(f"{name}: ")
        assert f"200,000 reports of {name} version 1, 2026-11-16." in figure.caption
        assert "Alarm" not in figure.caption
        texts = shown(figure)
        assert figure.title in texts
        assert "95 %" in " ".join(texts)

    @pytest.mark.parametrize("name", list(TRUTH))
    def test_no_reports_are_words_and_no_empty_frame(self, name: str) -> None:
        figure = of_estimates(decoded(name, 0))
        assert (figure.title, list(figure.panels)) == (f"{name}: no reports", [])
        assert "0 reports" in figure.caption
        assert "Alarm: there are only 0 reports" in figure.caption
        assert len(shown(figure)) >= 2

    @pytest.mark.parametrize("name", list(TRUTH))
    def test_an_alarm_is_a_sentence_of_the_caption(self, full: dict[str, Estimates], name: str) -> None:
        caption = of_estimates(alarmed(full[name])).caption
        assert caption.endswith("Alarm: some reports are not honest ones.")

    def test_categories_are_in_the_order_of_the_rows_with_their_intervals(self, full: dict[str, Estimates]) -> None:
        rows, figure = full["theme"].rows, of_estimates(full["theme"])
        [bars], [panel] = series(figure), figure.panels
        assert panel.y.names == tuple(row.value for row in rows) == ("light", "dark", "system")
        assert (bars.y, bars.low, bars.high) == (
            [row.share for row in rows],
            tuple(row.low for row in rows),
            tuple(row.high for row in rows),
        )
        assert bars.sideways

    def test_a_share_below_zero_is_shown_and_explained(self) -> None:
        figure = of_estimates(made("category", rows_of({"a": 1.02, "b": -0.02})))
        assert list(series(figure)[0].y) == [1.02, -0.02]
        assert "below zero" in figure.caption
        assert {"102.0 %", "-2.0 %"} <= set(shown(figure))
        assert "below zero" not in of_estimates(made("category", rows_of({"a": 1.0}))).caption

    def test_a_flag_tells_its_share_in_the_title(self) -> None:
        assert of_estimates(made("flag", rows_of({"true": 0.042}))).title == "m: true in 4.2 % of reports"

    def test_of_very_many_categories_the_most_common_are_kept_in_their_order(self) -> None:
        figure = of_estimates(made("category", rows_of({f"c{number}": number / 1000 for number in range(45)})))
        assert figure.panels[0].y.names == tuple(f"c{number}" for number in range(5, 45))
        assert "5 less common ones are not shown" in figure.caption

    def test_strings_found_and_all_others(self, full: dict[str, Estimates]) -> None:
        figure = of_estimates(full["homepage"])
        found = full["homepage"].detected
        assert figure.title == f"homepage: {len(found)} of 33 candidates found"
        assert figure.panels[0].y.names == (*(row.value for row in found), "(other)")
        assert (figure.panels[0].y.names or ())[:3] == ("a.example", "b.example", "c.example")
        [bars] = series(figure)
        other = full["homepage"].other
        assert other is not None
        assert list(bars.y) == [*(row.consistent for row in found), other.estimate]
        assert list(bars.low or ()) == [*(row.found_low for row in found), other.low]
        assert "Of those found, at most 10 % are false on average." in figure.caption

    def test_only_the_most_common_strings_are_shown(self) -> None:
        rows = rows_of({"a": 0.5, "b": 0.3, "c": 0.1}) + rows_of({"d": 0.0}, found=False)
        told = {"control": "family-wise:0.05", "method": "selection", "other": Number(0.1, None, 0.0, 1.0)}
        figure = of_estimates(made("string", rows, **told), top=2)
        assert figure.title == "m: 3 of 4 candidates found"
        assert figure.panels[0].y.names == ("a", "b", "(other)")
        for wanted in ("1 less common ones are not shown", "(other) is all that was not found", "is at most 5 %"):
            assert wanted in figure.caption

    def test_strings_that_cannot_be_told_apart_share_a_bar(self) -> None:
        [row] = rows_of({"a": 0.5})
        figure = of_estimates(made("string", (msgspec.structs.replace(row, also=("b", "c")),)))
        assert figure.panels[0].y.names == ("a | b | c",)

    def test_nothing_found_is_words(self) -> None:
        figure = of_estimates(made("string", rows_of({"a": 0.0, "b": 0.0}, found=False)))
        assert (figure.title, list(figure.panels)) == ("m: none of 2 candidates found", [])

    def test_a_histogram_has_bars_a_curve_and_quantiles_on_one_scale(self, full: dict[str, Estimates]) -> None:
        estimates = full["startup_ms"]
        figure = of_estimates(estimates)
        bars, curve, quantiles = series(figure)
        assert list(bars.y) == [row.share for row in estimates.rows]
        assert figure.panels[1].x.names == ["0", "250", "500", "1,000", "2,000", "4,000", "8,000"]
        assert list(curve.x) == list(range(7))
        assert list(curve.y) == [point.estimate for point in estimates.cumulative]
        # The median lies in the third bucket, as far into it as it is between 500 and 1,000.
        middle = estimates.quantiles[2]
        assert (middle.at, quantiles.x[2]) == (0.5, 0.5)
        assert quantiles.y[2] == pytest.approx(2 + (middle.estimate - 500) / 500)
        assert quantiles.sideways
        assert figure.title.startswith("startup_ms: median ")
        assert "The mean is " in figure.caption

    def test_a_bucket_that_no_report_observed_has_no_bar(self) -> None:
        rows = (*rows_of({"0 to 1": 0.5}), Row("1 to 2", None, None, None, 0.0, 1.0, 1.0, False))
        figure = of_estimates(made("histogram", rows))
        [bars] = series(figure)
        assert math.isnan(bars.y[1])
        assert "observed by no report" in figure.caption
        shown(figure)
        figure = of_estimates(made("category", rows))
        assert "not observed" in shown(figure)

    def test_a_mean_in_both_its_intervals(self) -> None:
        figure = of_estimates(made("mean", mean=Number(120.04, 1.0, 118.0, 122.0, 115.0, 125.0)))
        assert figure.title == "m: mean 120.0"
        assert figure.panels[0].y.names == ("90 % interval", "90 % guaranteed")
        assert figure.panels[0].y.notes == ["118.0 to 122.0", "115.0 to 125.0"]
        [points] = series(figure)
        assert (points.low, points.high) == ((118.0, 115.0), (122.0, 125.0))
        assert len(of_estimates(made("mean", mean=Number(1.0, 1.0, 0.0, 2.0))).panels[0].y.names or ()) == 1

    @pytest.mark.parametrize("kind", ["flag", "category", "string", "histogram", "mean"])
    def test_nothing_decoded_is_words_for_every_kind(self, kind: str) -> None:
        assert list(of_estimates(made(kind)).panels) == []

    @pytest.mark.parametrize("kind", ["category", "string", "histogram"])
    def test_hostile_values_are_shown_as_text(self, kind: str) -> None:
        texts = shown(of_estimates(made(kind, rows_of({HOSTILE: 0.5, "$x_": 0.5}))))
        assert any(text.startswith("</svg><script>") for text in texts)
        assert "$x_" in texts
        assert max(map(len, texts)) < 120


class TestHistory:
    def test_the_mean_of_every_period_in_its_band(self) -> None:
        history = [decoded("minutes_used", 0.1, day, MONDAY + timedelta(days=day)) for day in range(4)]
        figure = of_history(history)
        [line] = series(figure)
        means = [each.mean for each in history if each.mean]
        assert list(line.y) == [mean.estimate for mean in means]
        assert list(line.low or ()) == [mean.low for mean in means]
        assert figure.title == "minutes_used: mean by period"
        assert "80,000 reports in 4 periods, 2026-11-16 to 2026-11-19. Bands are 95 % intervals." in figure.caption
        assert {f"2026-11-{day}" for day in (16, 17, 18, 19)} <= set(shown(figure))

    def test_the_most_common_values_over_all_periods(self) -> None:
        days = [{"a": 0.1, "b": 0.2, "c": 0.3}, {"a": 0.6, "b": 0.2, "c": 0.1}]
        every = {f"z{number}": 0.01 for number in range(9)}
        figure = of_history([made("category", rows_of(day | every)) for day in days])
        assert [each.label for each in series(figure)] == ["a", "b", "c", "z0", "z1"]
        assert list(series(figure)[0].y) == [0.1, 0.6]

    def test_the_values_that_were_asked_for(self) -> None:
        history = [made("string", rows_of({"a": 0.5, "b": 0.2})), made("string", rows_of({"b": 0.1}, found=False))]
        figure = of_history(history, values=["b", "nobody"])
        [line] = series(figure)
        assert list(line.y) == [0.2, 0.1]
        assert figure.title == "m: share of b by period"
        assert "Nothing is known of nobody." in figure.caption
        assert list(of_history(history, values=["nobody"]).panels) == []

    def test_strings_that_were_never_found_are_not_followed(self) -> None:
        history = [made("string", rows_of({"a": 0.1}) + rows_of({"b": 0.5}, found=False))]
        assert [each.y for each in series(of_history(history))] == [(0.1,)]

    def test_a_line_breaks_off_where_periods_are_missing(self) -> None:
        days = [MONDAY + timedelta(days=number) for number in (0, 1, 2, 5, 6)]
        rows = rows_of({"true": 0.5})
        history = [msgspec.structs.replace(made("flag", rows), start=day, end=day) for day in days]
        empty = msgspec.structs.replace(history[0], reports=0, rows=(), start=None, end=None)
        [line] = series(of_history([*history, empty]))
        assert [math.isnan(share) for share in line.y] == [False, False, False, True, False, False]
        assert line.look == "trend"

    def test_alarms_of_many_periods_are_told_of_a_few(self) -> None:
        history = [alarmed(made("flag", rows_of({"true": 0.5})))] * 5
        caption = of_history(history).caption
        assert caption.count("Period 2026-11-16: Alarm: some reports are not honest ones.") == 3
        assert "There are alarms in 2 more periods." in caption

    def test_one_period_and_none(self) -> None:
        rows = rows_of({"light": 0.6, HOSTILE: 0.4})
        assert "2026-11-16" in shown(of_history([made("category", rows)]))
        assert list(of_history([]).panels) == list(of_history([decoded("theme", 0)]).panels) == []
        assert of_history([decoded("theme", 0)]).title == "theme: no reports"

    def test_a_long_history_has_few_dates(self) -> None:
        rows = rows_of({"true": 0.5})
        days = [MONDAY + timedelta(days=7 * number) for number in range(120)]
        weeks = [msgspec.structs.replace(made("flag", rows), start=day, end=day + timedelta(days=6)) for day in days]
        dates = [date.fromisoformat(text) for text in shown(of_history(weeks)) if text.startswith("20")][:-1]
        assert 4 <= len(dates) <= 14
        assert all(day.weekday() == 0 for day in dates)


class TestComparison:
    def test_estimates_stand_before_the_truth(self) -> None:
        rows = [Compared("a", 0.5, 0.52, 0.48, 0.56), Compared(HOSTILE, 0.3, 0.2, 0.15, 0.25)]
        figure = of_comparison("homepage", rows, note="200,000 devices.")
        estimate, truth = series(figure)
        assert (list(estimate.y), list(truth.y), truth.look) == ([0.52, 0.2], [0.5, 0.3], "backdrop")
        assert figure.caption.startswith("200,000 devices. 1 of 2 intervals hold the truth.")
        assert {"homepage: estimate against truth", "52.0 %", "truth", "estimate"} <= set(shown(figure))

    def test_of_means_there_are_no_per_cent(self) -> None:
        figure = of_comparison("minutes", [Compared("mean", 90.0, 91.0, 89.0, 93.0)], percent=False)
        assert figure.panels[0].y.notes == ["91.0"]
        assert not any("%" in text for text in shown(figure))

    def test_nothing_to_compare(self) -> None:
        assert list(of_comparison("m", []).panels) == []


class TestSparkline:
    @pytest.mark.parametrize("numbers", [[], [5.0], [2.0, 2.0, 2.0], [1, 3, 2], [math.nan, 1.0, math.inf, 2.0],
                                         [-1.7e308, 1.7e308], [math.nan]])  # fmt: skip
    def test_any_numbers_stay_inside(self, numbers: list[float]) -> None:
        root = ET.fromstring(sparkline(numbers, "reports a day"))
        assert (root.get("role"), root.get("aria-label"), root.get("viewBox")) == (
            "img",
            "reports a day",
            "0 0 120 24",
        )
        lines = [each.get("points", "") for each in root.iter(f"{SVG}polyline")]
        places = [tuple(map(float, pair.split(","))) for line in lines for pair in line.split()]
        assert len(places) == sum(map(math.isfinite, numbers))
        assert all(0 < x < 120 and 0 < y < 24 for x, y in places)

    def test_more_is_higher_and_later_is_further_right(self) -> None:
        line = next(ET.fromstring(sparkline([1, 3, 2], "")).iter(f"{SVG}polyline"))
        first, second, third = (tuple(map(float, pair.split(","))) for pair in line.get("points", "").split())
        assert first[0] < second[0] < third[0]
        assert second[1] < third[1] < first[1]

    def test_a_strict_page_may_hold_it_whatever_its_label(self) -> None:
        drawn = sparkline([1, 2], HOSTILE + "\" onload='x'")
        elements = list(ET.fromstring(drawn).iter())
        assert {each.tag for each in elements} == {f"{SVG}svg", f"{SVG}polyline", f"{SVG}circle"}
        assert not {"style", "onload"} & {name for each in elements for name in each.attrib}
        assert (elements[0].get("aria-label") or "").startswith('</svg><script>alert("$1$")</script>&amp;')
        assert elements[1].get("stroke") == "currentColor"
