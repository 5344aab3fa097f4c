"""The dashboard in a real browser: what people see, do and download, and that nothing else happens."""

import csv
import io
import json
from datetime import timedelta
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, Route, ViewportSize, expect

from browser.chromium import DESK, MISSING, PHONE, find_browser
from browser.conftest import PATIENCE, Open, log_in
from browser.crowd import KINDS, LAST_DAY, PERIODS, SITES
from browser.odd import LANGUAGES, MARKUP
from hubbub.simulations.live import LiveCollector

pytestmark = pytest.mark.skipif(find_browser() is None, reason=MISSING)
expect.set_options(timeout=PATIENCE)

FULL = [f"/metric/{name}" for name in KINDS]
EMPTY = [f"/metric/empty_{name}" for name in KINDS]
SPECIAL = [
    "/metric/language",
    "/metric/markup_page",
    "/metric/markup_theme",
    "/metric/homepage?q=nobody",
    "/metric/crashed?start=2020-01-01&end=2020-01-02",
]
"""Without candidates, full of markup, without a match, and without reports in that time."""

SAME_COLOURS = {*EMPTY[1:], *SPECIAL[1:3]}
"""Pages with nothing on them that another page has not in the same colours."""

REFUSED = "/metric/no_such_metric"
PAGES = ["/", *FULL, *EMPTY, *SPECIAL, REFUSED]
PNG = b"\x89PNG\r\n\x1a\n"
SERIOUS = {"serious", "critical"}


def visit(page: Page, path: str) -> None:
    while (answer := page.goto(path)) is not None and answer.status == 202:
        pass  # it says that it is being worked out, after the collector has waited for it
    assert answer is not None
    assert answer.status == (404 if path == REFUSED else 200), path
    assert_charts_are_there(page)


def assert_charts_are_there(page: Page) -> None:
    """Wait until every chart has been loaded, and see that it is a picture."""
    for chart in page.locator("picture img").all():
        expect(chart).to_have_js_property("complete", True)
        expect(chart).not_to_have_js_property("naturalWidth", 0)


def overflow(page: Page) -> int:
    """Points that the page is wider than the window."""
    wider: int = page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
    return wider


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


def brightness(page: Page) -> float:
    """How bright the ground is, from 0 to 1."""
    told: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(number) for number in told.removeprefix("rgb(").removesuffix(")").split(",")) / 3 / 255


def test_the_keyboard_reaches_the_content_and_shows_where_it_is(inside: Open) -> None:
    page, _ = inside()
    page.goto("/metric/theme")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).not_to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page).to_have_url("/metric/theme#content")
    reached: list[str] = []
    # A date is three numbers and a button, each of which is reached by itself.
    for _ in range(4 * page.locator("main :is(a, input, select, button, summary, [tabindex])").count()):
        page.keyboard.press("Tab")
        focus: dict[str, str] = page.evaluate(
            """() => {
                const here = document.activeElement;
                const { outlineStyle, outlineWidth } = getComputedStyle(here);
                // Inside of a date there are parts that the browser itself draws a ring around.
                const ring = here.type === "date" && !here.matches(":focus-visible") ? "its own"
                    : `${outlineStyle} ${outlineWidth}`;
                return { what: here.id || here.textContent.trim(), ring };
            }"""
        )
        assert focus["ring"] in {"solid 3px", "its own"}, focus
        reached.append(focus["what"])
        if reached[-1] == "The numbers":
            break
    assert reached[0] == "Metrics"
    assert {"Last 7 days", "start", "confidence", "download-csv", "download-png", "The numbers"} <= set(reached)


def test_no_page_has_a_serious_fault_or_is_wider_than_a_phone(inside: Open, anew: Open) -> None:
    # The checker is a script, which the pages' own policy would not let in.
    page, watch = inside(color_scheme="light", bypass_csp=True)
    faults: dict[str, list[str]] = {}
    wide: dict[str, int] = {}

    def look(page: Page, path: str) -> None:
        visit(page, path)
        faults[path] = serious_faults(page)
        page.set_viewport_size(PHONE)
        wide[path] = overflow(page)
        page.set_viewport_size(DESK)
        assert brightness(page) > 0.8
        assert not any("dark=1" in chart for chart in charts_shown(page))

    for path in PAGES:
        look(page, path)
    look(anew(color_scheme="light", bypass_csp=True)[0], "/login")
    assert {path: found for path, found in faults.items() if found} == {}
    assert {path: points for path, points in wide.items() if points > 0} == {}
    assert watch.refusals == 1


def test_every_page_can_be_read_in_the_dark(inside: Open, anew: Open) -> None:
    """Only the colours differ there, so only they are looked at."""
    page, watch = inside(color_scheme="dark", bypass_csp=True)
    faults: dict[str, list[str]] = {}

    def look(page: Page, path: str) -> None:
        visit(page, path)
        faults[path] = serious_faults(page, "color-contrast")
        assert brightness(page) < 0.2
        assert all("dark=1" in chart for chart in charts_shown(page))

    for path in PAGES:
        if path not in SAME_COLOURS:
            look(page, path)
    look(anew(color_scheme="dark", bypass_csp=True)[0], "/login")
    assert {path: found for path, found in faults.items() if found} == {}
    assert watch.refusals == 1


NARROW: ViewportSize = {"width": 390, "height": 844}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_a_phone_shows_all_of_a_chart_and_every_interval(inside: Open, name: str, *, dark: bool) -> None:
    page, _ = inside(viewport=NARROW, color_scheme="dark" if dark else "light")
    visit(page, f"/metric/{name}")
    assert len(charts_shown(page)) == 2
    for address in charts_shown(page):
        assert "narrow=1" in address
        assert ("dark=1" in address) is dark
    for chart in page.locator("picture img").all():
        box = chart.evaluate(
            """image => ({
                shown: image.getBoundingClientRect().width,
                room: image.parentElement.getBoundingClientRect().width,
                drawn: image.naturalWidth,
            })"""
        )
        assert box["shown"] == pytest.approx(box["room"], abs=1)
        assert box["shown"] == pytest.approx(box["drawn"], rel=0.02), "letters are as large as they were drawn"
    page.get_by_text("The numbers").click()
    assert overflow(page) <= 0
    scrolled: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("main *")]
            .filter(each => getComputedStyle(each).overflowX === "auto" && each.scrollWidth > each.clientWidth)
            .map(each => each.outerHTML.slice(0, 80))"""
    )
    assert scrolled == []
    cells: list[tuple[float, float]] = page.evaluate(
        """() => [...document.querySelectorAll("tbody :is(th, td)")]
            .map(each => [each.getBoundingClientRect().left, each.getBoundingClientRect().right])"""
    )
    assert len(cells) > PERIODS
    assert all(left >= 0 and right <= NARROW["width"] for left, right in cells)
    first = page.locator("#estimates-table tbody tr").first
    assert first.locator("td").nth(1).get_attribute("data-name") == "95 % interval"
    assert " to " in first.locator("td").nth(1).inner_text()


def test_a_table_is_one_on_a_phone_too(inside: Open) -> None:
    page, _ = inside(viewport=NARROW)
    visit(page, "/metric/theme")
    table = page.get_by_role("table", name="Estimates of theme")
    expect(table.get_by_role("columnheader")).to_have_count(6)
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table.get_by_role("rowheader", name="dark")).to_have_count(1)
    expect(table.get_by_role("cell")).to_have_count(15)


def charts_shown(page: Page) -> list[str]:
    """The addresses of the charts that the browser has chosen."""
    return [str(chart.evaluate("image => image.currentSrc")) for chart in page.locator("picture img").all()]


def serious_faults(page: Page, *rules: str) -> list[str]:
    """Ask the accessibility checker, about all of its rules or about some."""
    asked = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    return [
        f"{fault['id']}: {node['target']} {node['failureSummary']}"
        for fault in Axe().run(page, options=asked).response["violations"]
        if fault["impact"] in SERIOUS
        for node in fault["nodes"]
    ]


def test_the_accessibility_checker_is_there_and_sees_faults(inside: Open) -> None:
    page, _ = inside(bypass_csp=True)
    page.set_content("<html><body><p style='color: #ccc'>Pale</p><img src='data:,'><input></body></html>")
    assert {fault.partition(":")[0] for fault in serious_faults(page)} >= {"color-contrast", "image-alt", "label"}
    assert {fault.partition(":")[0] for fault in serious_faults(page, "color-contrast")} == {"color-contrast"}


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
