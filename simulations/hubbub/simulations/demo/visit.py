"""Looking at every page once, as a browser would, so that the first one who comes need not wait."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import requests

if TYPE_CHECKING:
    from collections.abc import Iterable

WARM_SECONDS = 60.0
"""The longest that is waited for all pages together. What is not there then, the dashboard goes on with."""

PAGE_SECONDS = 10.0
PAUSE_SECONDS = 0.1
_BROWSER = {"Accept": "text/html"}
_AGAIN = '<meta http-equiv="refresh"'
_CHART = re.compile(r'<img src="(/metric/[^"]+)"')


def warm(url: str, names: Iterable[str]) -> bool:
    """Load the page of every metric with its charts, and the overview last; tell whether all of them are there."""
    deadline = time.monotonic() + WARM_SECONDS
    pages = [f"/metric/{name}" for name in names]
    with requests.Session() as browser:
        browser.trust_env = False  # no proxy reaches this machine's own addresses
        return all(_load(browser, url, path, deadline) for path in [*pages, "/"])


def _load(browser: requests.Session, url: str, path: str, deadline: float) -> bool:
    """Load a page until nothing on it is being worked out any more, and then its charts."""
    while time.monotonic() < deadline:
        try:
            page = browser.get(url + path, headers=_BROWSER, timeout=PAGE_SECONDS).text
            if _AGAIN not in page:
                for chart in _CHART.findall(page):
                    browser.get(url + chart, headers=_BROWSER, timeout=PAGE_SECONDS)
                return True
        except requests.RequestException:
            pass  # it is busy
        time.sleep(PAUSE_SECONDS)
    return False
