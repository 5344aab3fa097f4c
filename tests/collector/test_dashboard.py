"""The dashboard: what it shows of a metric, and that nothing in it is taken for markup or for a formula."""

import csv
import io
import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from collector.dashboards import DAYS, EVIL, FORMULA, POLICY, REGISTRY, TRUTH, Page, browser, page
from hubbub.collector import Estimates
from hubbub.collector.dashboard import desk, words, workshop
from hubbub.collector.dashboard.background import OLDER_SECONDS, PAGE_SECONDS
from hubbub.collector.decode.estimates import harmless
from hubbub.collector.decode.process import NICENESS
from hubbub.shared.budget import metric_year

pytestmark = pytest.mark.usefixtures("patient")


@pytest.mark.parametrize("name", TRUTH)
def test_a_metric_has_charts_numbers_promises_and_diagnostics(visitor: FlaskClient, name: str) -> None:
    shown = page(visitor, f"/metric/{name}")
    metric = REGISTRY[name]
    assert metric.description in shown.text
    for identity in ("estimates-table", "estimates-chart", "history-table", "history-chart", "privacy", "diagnostics"):
        assert shown.has(identity), identity
    assert shown.has("quantiles-table") == (name == "startup_ms")
    assert shown.has("candidates") == (metric.kind == "string")
    assert f"a factor of at most {words.factor(metric.epsilon())}." in shown.text
    for image in shown.all("img")[1:]:
        assert image["alt"]
        answer = visitor.get(image["src"] or "")
        assert (answer.status_code, answer.content_type) == (200, "image/svg+xml")
        assert answer.headers["Content-Security-Policy"] == POLICY
    assert len(shown.all("img")) == 3


@pytest.mark.parametrize("name", REGISTRY)
def test_a_metric_without_reports_tells_what_to_do_next(empty: FlaskClient, name: str) -> None:
    shown = page(empty, f"/metric/{name}")
    assert shown.has("start-here")
    assert shown.has("privacy")
    assert not shown.has("estimates-table")
    assert f'client.record("{name}", value)' in shown.text


def test_charts_are_drawn_light_and_dark_and_each_once(visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/metric/crashed/chart.svg?confidence=0.9"
    light, dark = visitor.get(path), visitor.get(f"{path}&dark=1")
    assert light.data != dark.data
    assert b"crashed" in light.data

    def draw(*_: object, **__: object) -> bytes:
        raise AssertionError("drawn again")

    narrow = visitor.get(f"{path}&narrow=1")
    both = visitor.get(f"{path}&narrow=1&dark=1")
    assert len({each.data for each in (light, dark, narrow, both)}) == 4
    assert width_of(narrow) == width_of(both) < width_of(light) == width_of(dark)
    monkeypatch.setattr(workshop.WORKSHOP, "draw", draw)
    assert visitor.get(path).data == light.data
    assert visitor.get(f"{path}&dark=1&narrow=1").data == both.data


def width_of(chart: TestResponse) -> float:
    """In points."""
    found = re.search(rb'<svg [^>]*width="([0-9.]+)pt"', chart.data)
    assert found is not None
    return float(found[1])


def test_numbers_are_those_of_the_api(opened: Flask, visitor: FlaskClient) -> None:
    for name in ("theme", "homepage", "minutes_used"):
        query = "start=2026-11-09&confidence=0.9&control=family-wise:0.05"
        answer = visitor.get(f"/metric/{name}/estimates.json?{query}")
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}.json"'
        assert answer.get_json() == opened.test_client().get(f"/v1/metrics/{name}/estimates?{query}").get_json()
        estimates = msgspec.json.decode(answer.data, type=Estimates)
        told = page(visitor, f"/metric/{name}?{query}").text
        assert f"{estimates.reports:,}" in told
        for row in estimates.rows:
            assert row.consistent is not None
            # Rounded to what the interval lets anybody know: no further off than a twentieth of it, and no more digits.
            near = [float(each) / 100 for each in re.findall(r"(-?[0-9.]+) %", told)]
            assert min(abs(each - row.consistent) for each in near) <= (row.high - row.low) / 20
        if estimates.mean is not None:
            assert f" {estimates.mean.estimate:.0f} " in told or f" {estimates.mean.estimate:.1f} " in told


def test_tables_have_the_digits_that_intervals_support(visitor: FlaskClient) -> None:
    seen = 0
    for name in TRUTH:
        shown = page(visitor, f"/metric/{name}")
        for table in shown.tables():
            for cell in table:
                ends = re.fullmatch(r"(?:(\S+)(?: %)? \()?(\S+?)(?: %)? to (\S+?)(?: %)?\)?", cell)
                if not ends:
                    continue
                seen += 1
                written = [each.replace(",", "") for each in ends.groups() if each is not None]
                assert len({len(each.partition(".")[2]) for each in written}) == 1, cell
                low, high = map(float, written[-2:])
                digits = f"{(high - low) / 2:.10f}".replace(".", "").strip("0")
                assert len(digits) <= 4, cell
    assert seen > 3 * len(TRUTH)


@pytest.mark.parametrize(
    ("p_value", "told"), [(0.0, "< 1e-300"), (5e-324, "< 1e-300"), (1e-299, "1e-299"), (0.034567, "0.035"), (1.0, "1")]
)
def test_a_chance_is_never_nothing(p_value: float, told: str) -> None:
    assert words.chance(p_value) == told


def test_downloads_are_files(visitor: FlaskClient) -> None:
    answer = visitor.get("/metric/theme/chart.png")
    assert answer.data.startswith(b"\x89PNG")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="theme.png"'
    answer = visitor.get("/metric/theme/estimates.csv")
    assert answer.content_type == "text/csv; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="theme.csv"'


@pytest.mark.parametrize("name", ["theme", "homepage"])
def test_text_that_a_spreadsheet_would_run_is_made_plain(opened: Flask, visitor: FlaskClient, name: str) -> None:
    answer = visitor.get(f"/metric/{name}/estimates.csv")
    if name == "theme":  # strings would have to be decoded once more
        api = opened.test_client().get(f"/v1/metrics/{name}/estimates", headers={"Accept": "text/csv"})
        assert answer.data == api.data
    rows = {row["value"]: row for row in csv.DictReader(io.StringIO(answer.text))}
    assert f"'{FORMULA}" in rows
    assert EVIL in rows
    assert all(re.fullmatch(r"-?[0-9.e-]+", row["share"]) for row in rows.values())


def test_only_text_is_made_harmless() -> None:
    for cell in ("=1", "+1", "-1", "@a", "\ta", "\ra"):
        assert harmless(cell) == f"'{cell}"
    assert [harmless(cell) for cell in ("a=1", "", -1.5, None)] == ["a=1", "", -1.5, None]


def test_markup_is_shown_as_text_everywhere(opened: Flask, visitor: FlaskClient) -> None:
    paths = ["/", "/metric/theme", "/metric/homepage", f"/metric/homepage?q={EVIL}", f"/metric/homepage?q=x{EVIL}"]
    for path in paths:
        shown = page(visitor, path)
        assert not shown.all("script"), path
        assert EVIL in shown.text, path
    for path in ("/metric/theme/chart.svg", "/metric/homepage/history.svg"):
        drawn = visitor.get(path).data
        assert b"<script" not in drawn
        assert b"&lt;script&gt;" in drawn
    for path in (f"/metric/{EVIL}", f"/metric/theme?{EVIL}=1", f"/metric/theme?start={EVIL}", f"/?{EVIL}"):
        shown = Page(visitor.get(path))
        assert not shown.all("script"), path


def test_pages_need_no_inline_style_and_no_script(visitor: FlaskClient) -> None:
    for path in ("/", *(f"/metric/{name}" for name in TRUTH)):
        shown = page(visitor, path)
        assert not shown.all("style")
        assert not shown.all("script")
        for _, attributes in shown.elements:
            assert not [name for name in attributes if name == "style" or name.startswith("on")]
            for key in ("src", "srcset", "href", "action"):
                assert not re.match(r"\w+:|//", attributes.get(key) or ""), attributes


def test_pages_can_be_used_without_seeing_them(visitor: FlaskClient) -> None:
    for path in ("/", "/metric/startup_ms", "/metric/homepage"):
        shown = page(visitor, path)
        assert shown.all("html") == [{"lang": "en"}]
        assert len(shown.all("main")) == len(shown.all("h1")) == len(shown.all("title")) == 1
        assert shown.all("a")[0]["href"] == "#content"
        levels = [int(tag[1]) for tag, _ in shown.elements if re.fullmatch("h[1-6]", tag)]
        assert all(later <= before + 1 for before, later in pairwise(levels))
        labelled = {each.get("for") for each in shown.all("label")}
        for tag in ("input", "select", "textarea"):
            for each in shown.all(tag):
                assert each.get("type") == "hidden" or each.get("id") in labelled, each
        assert len(shown.all("caption")) == len(shown.all("table"))
        assert all(each.get("scope") for each in shown.all("th"))
        assert all("alt" in each for each in shown.all("img"))
        identities = [each["id"] for _, each in shown.elements if "id" in each]
        assert len(identities) == len(set(identities))


def test_periods_are_picked_by_form_and_by_link(visitor: FlaskClient) -> None:
    one = 3000 // 3 - 30
    shown = page(visitor, "/metric/crashed?start=2026-11-09&end=2026-11-09&confidence=&control=")
    assert f"Reports shown here {one}" in shown.text
    assert shown.field("start") == "2026-11-09"
    week = DAYS[-1] - timedelta(days=6)
    assert {"href": f"/metric/crashed?start={week}"} in page(visitor, "/metric/crashed").all("a")
    shown = page(visitor, f"/metric/crashed?start={week}")
    assert {"href": f"/metric/crashed?start={week}", "aria-current": "true"} in shown.all("a")
    assert f"Reports shown here {one}" in shown.text
    assert not shown.has("history"), "one period has no history"


def test_a_period_without_reports_says_so(visitor: FlaskClient) -> None:
    shown = page(visitor, "/metric/crashed?start=2020-01-01&end=2020-01-31")
    assert shown.has("no-reports")
    assert not shown.has("estimates")


@pytest.mark.parametrize(
    "query",
    ["start=yesterday", "start=2026-11-16&end=2026-11-15", "confidence=2", "confidence=x", "control=once:0.1",
     "control=fdr:nan", "nonsense=1", "start=2026-11-02&start=2026-11-03", "q=a&q=b"],
)  # fmt: skip
def test_what_cannot_be_read_is_told_in_a_sentence(visitor: FlaskClient, query: str) -> None:
    for path in ("/metric/homepage", "/metric/homepage/chart.svg", "/metric/homepage/estimates.csv"):
        shown = page(visitor, f"{path}?{query}", 400)
        if shown.has("backwards"):
            continue
        assert shown.has("refused")
        assert "allowed:" in shown.text


def test_a_period_that_ends_before_it_begins_is_told_above_the_form(visitor: FlaskClient) -> None:
    path = "/metric/homepage?start=2026-11-16&end=2026-11-15&confidence=0.9"
    shown = page(visitor, path, 400)
    assert "From (2026-11-16) is after To (2026-11-15)." in shown.text
    places = [each.get("id") for _, each in shown.elements]
    assert places.index("backwards") < places.index("picker")
    assert (shown.field("start"), shown.field("end")) == ("2026-11-16", "2026-11-15")
    assert {"value": "0.9", "selected": None} in shown.all("option")
    assert shown.has("privacy")
    assert shown.has("candidates")
    for identity in ("estimates", "no-reports", "no-candidates", "saved", "news"):
        assert not shown.has(identity), identity
    answer = visitor.get(path, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.content_type) == (400, "application/problem+json")


def test_an_unknown_metric_is_a_page_that_says_so(visitor: FlaskClient) -> None:
    for path in ("/metric/nonsense", "/metric/nonsense/chart.svg", "/metric/nonsense/estimates.json"):
        shown = page(visitor, path, 404)
        assert "nonsense" in shown.text
        assert {"href": "/"} in shown.all("a")


def test_programs_are_refused_as_by_the_api(opened: Flask) -> None:
    answer = opened.test_client().get("/metric/nonsense")
    assert (answer.status_code, answer.content_type) == (404, "application/problem+json")


def test_what_could_not_be_looked_at_is_not_called_fine(visitor: FlaskClient) -> None:
    shown = page(visitor, "/metric/crashed")
    assert shown.has("diagnostics")
    assert "one cohort" not in shown.text
    assert "cohorts" in page(visitor, "/metric/homepage").text.partition("Do the data look right?")[2]


def test_every_choice_has_a_line_of_help(visitor: FlaskClient) -> None:
    assert "Confidence: how often" in page(visitor, "/metric/theme").text
    assert "May be false: how many" in page(visitor, "/metric/homepage").text
    assert "May be false" not in page(visitor, "/metric/theme").text


def test_pages_say_which_numbers_are_exact_and_the_login_says_nothing(visitor: FlaskClient, app: Flask) -> None:
    for path in ("/", "/metric/theme"):
        assert "numbers of reports are exact" in page(visitor, path).text
    login = page(browser(app), "/login")
    assert "reports" not in login.text
    assert not login.all("footer")


def test_nobody_can_make_it_read_a_large_form(app: Flask) -> None:
    client = browser(app)
    data = {"form_token": page(client, "/login").field("form_token"), "token": "x" * 20_000}
    for content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.post("/login", data=data, content_type=content_type).status_code == 413


def test_promises_are_plain_sentences_and_never_too_small() -> None:
    told = {name: words.promises(metric) for name, metric in REGISTRY.items()}
    first = told["homepage"][0]
    assert first.sentence == ("One report changes anyone's odds about a person's answer by a factor of at most 2.72.")
    names = ["One report", "7 reports", "30 reports", "A lifetime", "All 8 answers"]
    assert [each.name for each in told["homepage"]] == names
    assert len(told["newcomer"]) == 1
    for name, metric in REGISTRY.items():
        if metric.every != "once":  # `hubbub privacy` says as much
            epsilon = metric_year(metric).epsilon
            assert epsilon <= float(told[name][-1].epsilon) <= epsilon + 0.001, name
    assert told["homepage_classic"][-1].name == "A year of new answers"
    assert told["crashed"][-1].name == "Both answers"
    assert words.factor(0.0) == "1.00"
    assert words.factor(1.0) == "2.72"
    assert words.factor(5.0) == "149"
    assert words.factor(float("inf")) == "hundreds of millions or more"
    assert "never reveals more than 8" in words.values_promise(REGISTRY["homepage"])
    assert "nothing limits" in words.values_promise(REGISTRY["homepage_classic"])


def test_the_operators_page_tells_every_limit() -> None:
    told = " ".join((Path(__file__).parents[2] / "docs" / "operator.md").read_text(encoding="utf-8").split())
    for sentence in (
        f"at low priority (nice {NICENESS})",
        f"A page is shown as it is for {desk.FRESH_SECONDS:g} s,",
        f"Estimates of strings stand for {desk.FRESH_STRINGS_SECONDS:g} s,",
        f"A page waits at most {PAGE_SECONDS:g} s for",
        f"shown after {OLDER_SECONDS:g} s,",
        f"The last {desk.KEPT_ANSWERS} answers and {desk.KEPT_CHARTS} charts are kept",
        f"the last {desk.HISTORY_PERIODS} periods, those of strings the last {desk.HISTORY_STRING_PERIODS}",
        f"the {desk.HISTORY_VALUES} most common strings",
    ):
        assert sentence in told
