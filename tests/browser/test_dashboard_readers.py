"""The dashboard for all its readers: by keyboard, on a phone, in the dark, and without a fault that a checker finds."""

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, ViewportSize, expect

from browser.chromium import DESK, MISSING, PHONE, find_browser
from browser.conftest import PATIENCE, Open
from browser.crowd import KINDS, PERIODS
from browser.visits import REFUSED, visit

pytestmark = [pytest.mark.skipif(find_browser() is None, reason=MISSING), pytest.mark.unmeasured]
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

PAGES = ["/", *FULL, *EMPTY, *SPECIAL, REFUSED]
SERIOUS = {"serious", "critical"}


def overflow(page: Page) -> int:
    """Points that the page is wider than the window."""
    wider: int = page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
    return wider


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
    expect(table.get_by_role("row")).to_have_count(5)
    for name in ("dark", "(no valid value)"):
        expect(table.get_by_role("rowheader", name=name, exact=True)).to_have_count(1)
    expect(table.get_by_role("cell")).to_have_count(19)  # the last row has no p-value


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
