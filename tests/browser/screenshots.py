"""Takes the pictures of the dashboard that the documentation shows.

PYTHONPATH=tests .venv/bin/python -m browser.screenshots docs/pictures
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ViewportSize

from browser.chromium import MISSING, PHONE, browsing, find_browser
from browser.crowd import KINDS, collecting, wait_until_shown

DEVICES = 100_000
TALL: ViewportSize = {"width": 1280, "height": 1900}
CHART: ViewportSize = {"width": 1280, "height": 1285}
ROOMY: ViewportSize = {"width": 1280, "height": 1000}
PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "dashboard-overview": ("/", {"viewport": ROOMY}),
    "dashboard-strings": ("/metric/homepage?control=family-wise:0.05", {"viewport": CHART}),
    "dashboard-dark": ("/metric/minutes_used", {"viewport": TALL, "color_scheme": "dark"}),
    "dashboard-phone": ("/", {"viewport": PHONE, "device_scale_factor": 2}),
}
"""For each its page, and the window that it is seen in."""


def take(browser: Browser, url: str, name: str, folder: Path) -> None:
    """Take one picture, when all charts on the page have been drawn."""
    path, options = PICTURES[name]
    context = browser.new_context(base_url=url, **options)
    page = context.new_page()
    page.goto(path, wait_until="networkidle")
    page.screenshot(path=folder / f"{name}.png")
    context.close()


def main() -> None:
    """Take them all."""
    browser_path = find_browser()
    if browser_path is None:
        sys.exit(MISSING)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as temporary,
        collecting(Path(temporary), devices=DEVICES, guarded=False) as collector,
        browsing(browser_path) as browser,
    ):
        for path in [*(f"/metric/{name}" for name in KINDS), *(path for path, _ in PICTURES.values())]:
            wait_until_shown(collector, path)
        for name in PICTURES:
            take(browser, collector.url, name, folder)


if __name__ == "__main__":
    main()
