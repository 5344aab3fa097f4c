"""The browser of this machine."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ViewportSize, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "chromium was not found: apt-get install chromium; the browser tests were not run"
DESK: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 800}


def find_browser() -> str | None:
    """Tell where Chromium is, or whatever it is called here."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browsing(path: str) -> Iterator[Browser]:
    """A browser without a window."""
    # It refuses to run as root with its sandbox; the pages that it opens are our own.
    arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
