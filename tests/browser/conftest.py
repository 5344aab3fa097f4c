"""One collector with data and one browser for all tests of a file; whoever opens a page has it watched.

The browser ends with the file: as long as it is there, its event loop counts as running in this thread, and no other
test of the process could run one of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState

from browser.chromium import DESK, MISSING, browsing, find_browser
from browser.crowd import METRICS, collecting, wait_until_shown
from browser.odd import EMPTY, ODD, ODD_CANDIDATES, ODD_HABITS
from browser.watch import Watch
from hubbub.simulations.live import LiveCollector

PATIENCE = 60_000
"""Milliseconds that anything may take, on however busy a machine."""

DEVICES = 10_000

Opened: TypeAlias = tuple[Page, Watch]
Open: TypeAlias = Callable[..., Opened]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_browser()
    assert path is not None, MISSING  # the tests are skipped then
    with browsing(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def collector(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCollector]:
    """It has an admin token."""
    folder = tmp_path_factory.mktemp("browser")
    with collecting(folder, METRICS + EMPTY + ODD, ODD_HABITS, devices=DEVICES, candidates=ODD_CANDIDATES) as running:
        for name in running.registry:
            wait_until_shown(running, f"/metric/{name}")
        wait_until_shown(running, "/")
        yield running


@pytest.fixture(scope="module")
def session(browser: Browser, collector: LiveCollector) -> StorageState:
    """The cookies of somebody who has logged in."""
    context = _context(browser, collector)
    log_in(context.new_page(), collector)
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def anew(browser: Browser, collector: LiveCollector) -> Iterator[Open]:
    """Gives pages of a browser that has never been here, with what watches them. At the end there must be no fault."""
    with ExitStack() as opened:
        watches: list[Watch] = []

        def open_page(**options: Any) -> Opened:
            context = _context(browser, collector, **options)
            opened.callback(context.close)
            watches.append(Watch(context, collector.url))
            return context.new_page(), watches[-1]

        yield open_page
        assert [fault for watch in watches for fault in watch.faults] == []


@pytest.fixture
def inside(anew: Open, session: StorageState) -> Open:
    """The same, logged in."""

    def open_page(**options: Any) -> Opened:
        return anew(storage_state=session, **options)

    return open_page


def log_in(page: Page, collector: LiveCollector, token: str | None = None) -> None:
    """Log in by the form, wherever it leads."""
    page.goto("/login")
    page.get_by_label("Admin token").fill(token or collector.token or "")
    page.get_by_role("button", name="Log in").click()


def _context(browser: Browser, collector: LiveCollector, **options: Any) -> BrowserContext:
    context = browser.new_context(**{"base_url": collector.url, "viewport": DESK, **options})
    context.set_default_timeout(PATIENCE)
    return context
