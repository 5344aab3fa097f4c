"""The dashboard in a real browser: what people see, do and download, and that nothing else happens."""

import csv
import io
import json
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from browser.chromium import MISSING, find_browser
from browser.conftest import PATIENCE, Open, log_in
from browser.crowd import KINDS, LAST_DAY, PERIODS, SITES
from browser.odd import LANGUAGES, MARKUP
from browser.visits import assert_charts_are_there, visit
from hubbub.simulations.live import LiveCollector

pytestmark = [pytest.mark.skipif(find_browser() is None, reason=MISSING), pytest.mark.unmeasured]
expect.set_options(timeout=PATIENCE)

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_overview_leads_to_every_metric(inside: Open) -> None:
    page, _ = inside()
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Metrics")
    for name, kind in KINDS.items():
        row = page.get_by_test_id(f"metric-{name}")
        expect(row).to_contain_text(kind)
        expect(row.get_by_role("img")).to_be_visible()
        expect(row).to_contain_text("no alarms")
        expect(page.get_by_test_id(f"metric-empty_{name}")).to_contain_text("no reports yet")
    page.get_by_role("link", name="theme", exact=True).click()
    expect(page).to_have_url("/metric/theme")
    page.get_by_role("link", name="Metrics").click()
    expect(page).to_have_url("/")


@pytest.mark.parametrize("name", KINDS)
def test_a_metric_with_reports_is_shown_with_charts_and_numbers(inside: Open, name: str) -> None:
    page, _ = inside()
    visit(page, f"/metric/{name}")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.locator("picture")).to_have_count(2)
    assert page.locator("#estimates-table tbody tr").count() > 0
    expect(page.locator("#quantiles-table")).to_have_count(1 if KINDS[name] == "histogram" else 0)
    expect(page.locator("#history-table")).not_to_be_visible()
    page.get_by_text("The numbers").click()
    expect(page.locator("#history-table")).to_be_visible()
    assert page.locator("#history-table tbody tr").count() == PERIODS
    expect(page.locator("#privacy")).to_contain_text("by a factor of at most")
    expect(page.locator("#diagnostics")).to_contain_text("fine")


@pytest.mark.parametrize("name", KINDS)
def test_a_metric_without_reports_says_what_to_do_next(inside: Open, name: str) -> None:
    page, _ = inside()
    visit(page, f"/metric/empty_{name}")
    expect(page.locator("#start-here")).to_contain_text(f'client.record("empty_{name}", value)')
    expect(page.locator("#privacy")).to_be_visible()
    expect(page.locator("picture")).to_have_count(0)


def test_login_and_logout(anew: Open, collector: LiveCollector) -> None:
    page, watch = anew()
    page.goto("/metric/theme")
    expect(page).to_have_url("/login?next=%2Fmetric%2Ftheme")
    page.get_by_label("Admin token").fill("not-the-admin-token")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("That is not the admin token of this collector.")
    assert watch.refusals == 1
    assert "hubbub_session" not in {cookie["name"] for cookie in page.context.cookies()}

    page.get_by_label("Admin token").fill(collector.token or "")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url("/metric/theme")
    expect(page.get_by_role("heading", level=1)).to_have_text("theme")
    kept = [cookie for cookie in page.context.cookies() if cookie["name"] == "hubbub_session"]
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in kept] == [(True, "Strict")]
    assert (collector.token or "") not in page.content()

    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url("/login")
    assert "hubbub_session" not in {cookie["name"] for cookie in page.context.cookies()}
    page.goto("/metric/theme")
    expect(page).to_have_url("/login?next=%2Fmetric%2Ftheme")
    page.go_back()
    expect(page.locator("#estimates")).to_have_count(0)


@pytest.mark.parametrize("scripts", [True, False], ids=["with_scripts", "without_scripts"])
def test_candidates_are_given_replaced_and_forgotten(inside: Open, tmp_path: Path, *, scripts: bool) -> None:
    page, _ = inside(java_script_enabled=scripts)
    page.goto("/metric/language")
    expect(page.locator("#no-candidates")).to_be_visible()
    expect(page.locator("#forget-candidates")).to_have_count(0)

    page.get_by_label("Or a short list").fill("\n".join(LANGUAGES))
    page.get_by_role("button", name="Replace the list").click()
    expect(page.locator("#saved")).to_have_text("The new list is in place.")
    expect(page.locator("#candidates")).to_contain_text("There are 3 candidates")
    wait_for_news(page)
    for language in LANGUAGES:
        expect(page.locator("#estimates-table")).to_contain_text(language)

    file = tmp_path / "languages.ndjson"
    file.write_text("".join(f"{json.dumps(language)}\n" for language in LANGUAGES[:2]))
    page.get_by_label("A text file").set_input_files(file)
    page.get_by_role("button", name="Replace the list").click()
    expect(page.locator("#candidates")).to_contain_text("There are 2 candidates")
    wait_for_news(page)
    expect(page.locator("#estimates-table")).not_to_contain_text(LANGUAGES[2])

    page.get_by_role("button", name="Forget the list").click()
    expect(page.locator("#saved")).to_have_text("The list has been forgotten.")
    expect(page.locator("#no-candidates")).to_be_visible()


def wait_for_news(page: Page) -> None:
    """Load a page until it shows the newest: what the older list gave stands there until the new one is decoded."""
    expect(page.locator("#estimates")).to_be_visible()
    while page.locator("#news").count():
        page.reload()


def test_downloads_are_what_they_say(inside: Open) -> None:
    page, _ = inside()
    page.goto("/metric/homepage")
    got: dict[str, bytes] = {}
    for form in ("csv", "json", "png"):
        with page.expect_download() as waiting:
            page.locator(f"#download-{form}").click()
        assert waiting.value.suggested_filename == f"homepage.{form}"
        got[form] = Path(waiting.value.path()).read_bytes()
    rows = list(csv.DictReader(io.StringIO(got["csv"].decode())))
    told = json.loads(got["json"])
    assert told["metric"] == "homepage"
    names = {row["value"] for row in told["rows"]}
    assert SITES[0] in names
    assert names <= {row["value"] for row in rows}
    assert got["png"].startswith(PNG)


def test_the_period_picker_narrows_what_is_shown(inside: Open) -> None:
    page, _ = inside()
    page.goto("/metric/crashed")
    everything = number_in(page, "#reports-shown")
    assert everything == number_in(page, "#reports")
    page.get_by_role("link", name="Last 7 days").click()
    expect(page.get_by_role("link", name="Last 7 days")).to_have_attribute("aria-current", "true")
    week = number_in(page, "#reports-shown")
    assert 0 < week < everything
    assert_charts_are_there(page)

    start = LAST_DAY - timedelta(days=1)
    page.get_by_label("From").fill(str(start))
    page.get_by_label("To").fill(str(LAST_DAY))
    page.get_by_label("Confidence").select_option("0.99")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#estimates-table caption")).to_contain_text("99 % intervals")
    expect(page.get_by_label("From")).to_have_value(str(start))
    assert 0 < number_in(page, "#reports-shown") < week
    with page.expect_download() as waiting:
        page.locator("#download-json").click()
    told = json.loads(Path(waiting.value.path()).read_bytes())
    assert (told["start"], told["end"], told["confidence"]) == (str(start), str(LAST_DAY), 0.99)

    page.get_by_role("link", name="All", exact=True).click()
    assert number_in(page, "#reports-shown") == everything


def number_in(page: Page, where: str) -> int:
    return int(page.locator(where).inner_text().replace(",", ""))


def test_search_shows_what_holds_the_text(inside: Open) -> None:
    page, _ = inside()
    page.goto("/metric/homepage")
    rows = page.locator("#estimates-table tbody th")
    assert rows.count() > 2
    page.get_by_role("searchbox").fill("SITE-02")
    page.get_by_role("button", name="Search").click()
    expect(rows).to_have_text([SITES[1]])
    page.get_by_role("searchbox").fill("NOBODY-1")
    page.get_by_role("button", name="Search").click()
    expect(rows).to_have_text(["nobody-1.example"])
    expect(page.locator("#estimates-table td[data-name=found]")).to_have_text("no")
    page.get_by_role("searchbox").fill("<nothing>")
    page.get_by_role("searchbox").press("Enter")
    expect(page.locator("#no-match")).to_contain_text("“<nothing>”")
    page.get_by_role("link", name="Show all").click()
    expect(rows.filter(has_text=SITES[0])).to_have_count(1)


def test_everything_is_reached_without_scripts(anew: Open, collector: LiveCollector) -> None:
    page, _ = anew(java_script_enabled=False)
    log_in(page, collector)
    for prefix in ("", "empty_"):
        for name in KINDS:
            expect(page.get_by_role("link", name=prefix + name, exact=True)).to_have_attribute(
                "href", f"/metric/{prefix}{name}"
            )
    for name in KINDS:
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.locator("#estimates")).to_be_visible()
        page.goto(f"/metric/empty_{name}")
        expect(page.locator("#start-here")).to_be_visible()
        page.get_by_role("link", name="Metrics").click()
    page.goto("/metric/homepage")
    page.get_by_text("The numbers").click()
    expect(page.locator("#history-table")).to_be_visible()
    page.get_by_role("searchbox").fill(SITES[0])
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#estimates-table tbody th")).to_have_text([SITES[0]])
    page.goto("/metric/theme")
    page.get_by_role("link", name="Last 30 days").click()
    expect(page.locator("#estimates")).to_be_visible()
    with page.expect_download() as waiting:
        page.locator("#download-csv").click()
    assert waiting.value.suggested_filename == "theme.csv"
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Admin token")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_markup_in_names_is_shown_as_text(inside: Open, *, dark: bool) -> None:
    page, _ = inside(color_scheme="dark" if dark else "light")
    visit(page, "/metric/markup_theme")
    expect(page.locator(".lead")).to_have_text(MARKUP[0] + MARKUP[1])
    for text in MARKUP:
        expect(page.locator("#estimates-table")).to_contain_text(text)
    visit(page, "/metric/markup_page")
    for text in MARKUP:
        expect(page.locator("#estimates-table")).to_contain_text(text)
    page.get_by_role("searchbox").fill(MARKUP[2])
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("searchbox")).to_have_value(MARKUP[2])
    # A chart opened by itself is a document, in which a script could run.
    for chart in ("chart.svg", "history.svg"):
        page.goto(f"/metric/markup_theme/{chart}{'?dark=1' if dark else ''}")
        expect(page.locator("svg")).to_have_count(1)
        assert page.locator("script, img, foreignObject, [onload], [onerror]").count() == 0
    visit(page, "/")
    expect(page.get_by_test_id("metric-markup_theme")).to_contain_text(MARKUP[0] + MARKUP[1])
    assert page.locator("script, [onload], [onerror]").count() == 0


def test_the_watch_sees_what_must_not_happen(inside: Open) -> None:
    page, watch = inside()
    bad = (
        '<img src="https://elsewhere.example/x.png"><p style="color: red">inline</p>'
        "<script>alert(1)</script><img src='/metric/none/chart.svg'>"
    )

    def spoil(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("</main>", f"{bad}</main>"))

    page.route("**/metric/theme", spoil)
    page.goto("/metric/theme")
    page.evaluate("() => { alert(2); console.error('three'); setTimeout(() => { throw new Error('four') }) }")
    page.wait_for_function("() => true")
    told = "\n".join(watch.faults)
    for what in (
        "policy: img-src https://elsewhere.example/x.png",
        "policy: style-src-attr inline",
        "policy: script-src-elem inline",
        "elsewhere: https://elsewhere.example/x.png",
        "dialog: 2",
        "console: three",
        "error: four",
    ):
        assert what in told
    assert "dialog: 1" not in told
    watch.faults.clear()
