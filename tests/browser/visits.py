"""Visits of a page, until all of it is there."""

from playwright.sync_api import Page, expect

REFUSED = "/metric/no_such_metric"


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
