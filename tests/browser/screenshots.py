"""Takes the pictures of the dashboard that the documentation shows: of what `hubbub demo` shows to everybody.

PYTHONPATH=tests .venv/bin/python -m browser.screenshots docs/pictures
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize

from browser.chromium import DESK, MISSING, browsing, find_browser

PHONE: ViewportSize = {"width": 390, "height": 844}
MARGIN = 16
"""Points around what a picture shows."""

DEMO = (Path(sys.executable).with_name("hubbub"), "demo")
TOLD = "Dashboard: "


@dataclass(frozen=True)
class Picture:
    """A page, how it is seen, and from where to where."""

    path: str
    last: str
    """The part that the picture ends below."""
    first: str = "body"
    """The part that it begins with."""
    seen: dict[str, Any] = field(default_factory=lambda: {"viewport": DESK})


PICTURES = {
    "dashboard-overview": Picture("/", ".metrics li:last-child"),
    "dashboard-strings": Picture("/metric/homepage", "#estimates-chart"),
    "dashboard-dark": Picture(
        "/metric/minutes_used", "#history", "#estimates", {"viewport": DESK, "color_scheme": "dark"}
    ),
    "dashboard-phone": Picture(
        "/metric/theme", "#estimates", "#estimates", {"viewport": PHONE, "device_scale_factor": 2}
    ),
}


def take(browser: Browser, url: str, picture: Picture, file: Path) -> None:
    """Take one picture, when all charts on the page have been drawn."""
    context = browser.new_context(base_url=url, **picture.seen)
    page = context.new_page()
    page.goto(picture.path, wait_until="networkidle")
    top = max(_edges(page, picture.first)[0] - MARGIN, 0)
    bottom = _edges(page, picture.last)[1] + MARGIN
    width = picture.seen["viewport"]["width"]
    page.screenshot(path=file, full_page=True, clip={"x": 0, "y": top, "width": width, "height": bottom - top})
    context.close()


def _edges(page: Page, selector: str) -> tuple[float, float]:
    """Where a part begins and ends, from the top of the page."""
    box = page.locator(selector).bounding_box()
    assert box is not None, selector
    return box["y"], box["y"] + box["height"]


@contextmanager
def showing() -> Iterator[str]:
    """A demo that stays up; all that is to be seen on its dashboard has been made when it tells the address."""
    with subprocess.Popen(DEMO, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        try:
            line = next(line for line in demo.stdout if line.startswith(TOLD))
            yield line.removeprefix(TOLD).split()[0].rstrip("/")
        finally:
            demo.terminate()


def main() -> None:
    """Take them all."""
    browser_path = find_browser()
    if browser_path is None:
        sys.exit(MISSING)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with showing() as url, browsing(browser_path) as browser:
        for name, picture in PICTURES.items():
            take(browser, url, picture, folder / f"{name}.png")


if __name__ == "__main__":
    main()
