"""What the dashboard keeps, what it makes anew, and what it shows while that takes long."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine
from werkzeug.test import TestResponse

from collector.apps import collector_of, running
from collector.dashboards import CANDIDATES, DAYS, POLICY, REGISTRY, SHARD, Page, browser, fill, page, upload
from hubbub.collector import Estimates, decoding, messages
from hubbub.collector.dashboard import background, desk, workshop
from hubbub.collector.dashboard.orders import History
from hubbub.collector.decode.process import NICENESS
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.collector.store.bulk import put_tallies
from hubbub.collector.store.shard import COUNTS
from shared.registries import EXAMPLE

pytestmark = pytest.mark.usefixtures("patient")


class Held:
    """Decoding that takes as long as a test wants."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.go = threading.Event()
        self.times = 0

    def decode_apart(self, *_: object) -> bytes:
        assert self.go.wait(60)
        self.times += 1
        return self.body


@pytest.fixture
def held(opened: Flask, monkeypatch: pytest.MonkeyPatch) -> Held:
    found = Held(opened.test_client().get("/v1/metrics/homepage/estimates").data)
    monkeypatch.setattr(decoding, "decode_apart", found.decode_apart)
    return found


def test_a_page_that_takes_long_says_so_and_loads_again(
    tmp_path: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, REGISTRY, admin_token=None) as app:
        store = collector_of(app).store
        fill(store)
        client = browser(app)
        upload(client, strings="\n".join(CANDIDATES))
        monkeypatch.setattr(background, "PAGE_SECONDS", 0.01)
        for _ in range(3):
            shown = page(client, "/metric/homepage", 202)
            assert shown.has("waiting")
            assert {"http-equiv": "refresh", "content": "2; url=/metric/homepage"} in shown.all("meta")
        held.go.set()
        monkeypatch.setattr(background, "PAGE_SECONDS", 60.0)
        assert page(client, "/metric/homepage").has("estimates-table")
        assert held.times == 1, "those who wait for the same wait together"
        # News has arrived, and takes long: what there was is shown meanwhile.
        held.go.clear()
        have_more(store)
        at_once(monkeypatch)
        monkeypatch.setattr(background, "OLDER_SECONDS", 0.01)
        shown = page(client, "/metric/homepage")
        assert shown.has("news")
        assert shown.has("estimates-table")
        held.go.set()


def have_more(store: Store, reports: int = 1) -> None:
    """So many reports arrive."""
    with writing(store.engine) as connection:
        put_tallies(connection, SHARD - 1, [("homepage", 1, DAYS[2], 0, reports, bytes(128 * COUNTS.itemsize))])


def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was shown before will do."""
    monkeypatch.setattr(desk, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(desk, "FRESH_STRINGS_SECONDS", 0.0)


def test_a_page_that_was_just_shown_costs_a_look_into_memory(
    visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The overview comes last: it tells the alarms of strings once they have been decoded.
    paths = ["/metric/theme", "/metric/homepage", "/metric/theme/chart.svg", "/metric/homepage/estimates.csv", "/"]
    before = [visitor.get(path).data for path in paths]

    def have(*_: object) -> bytes:
        raise AssertionError("the workshop was asked")

    monkeypatch.setattr(workshop.Workshop, "_have", have)
    monkeypatch.setattr(desk, "FRESH_SECONDS", 120.0)
    monkeypatch.setattr(desk, "FRESH_CHART_SECONDS", 120.0)
    assert [visitor.get(path).data for path in paths] == before


def test_the_process_that_serves_reads_no_tally_for_a_page(
    visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_connection(*_: object) -> object:
        raise AssertionError("the store was asked")

    monkeypatch.setattr(Engine, "connect", no_connection)
    at_once(monkeypatch)
    for path in ("/", "/metric/crashed?confidence=0.77", "/metric/crashed/history.svg?confidence=0.77"):
        assert visitor.get(path).status_code == 200


def test_what_has_not_changed_is_not_made_again(
    opened: Flask, visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = as_of(page(visitor, "/metric/minutes_used"))

    def history(*_: object) -> tuple[Estimates, ...]:
        raise AssertionError("decoded again")

    monkeypatch.setattr(workshop.WORKSHOP, "history", history)
    at_once(monkeypatch)
    shown = page(visitor, "/metric/minutes_used")
    assert shown.has("history-table")
    assert as_of(shown) >= first


def as_of(shown: Page) -> str:
    found = re.search(r"As of (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC", shown.text)
    assert found is not None
    return found[1]


def test_strings_are_decoded_again_after_a_while_or_for_another_list(
    tmp_path: Path, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.go.set()
    monkeypatch.setattr(desk, "FRESH_SECONDS", 0.0)
    with running(tmp_path, REGISTRY, admin_token=None) as app:
        store = collector_of(app).store
        fill(store)
        client = browser(app)
        upload(client, strings="\n".join(CANDIDATES))
        first = page(client, "/metric/homepage")
        have_more(store)
        again = page(client, "/metric/homepage")
        assert (as_of(again), held.times) == (as_of(first), 1)
        assert "Reports in all 63,001" in again.text, "counting takes no time"
        assert not again.has("news")
        # A program gives another list: it does not wait.
        address = "/v1/metrics/homepage/candidates"
        assert app.test_client().put(address, data=b"example.org\n", content_type="text/plain").status_code == 200
        assert "among 1 candidate." in page(client, "/metric/homepage").text
        assert held.times == 2
        monkeypatch.setattr(desk, "FRESH_STRINGS_SECONDS", 0.0)
        have_more(store, 2)
        page(client, "/metric/homepage")
        assert held.times == 3


def test_a_time_series_that_takes_long_loads_by_itself(opened: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    history = workshop.WORKSHOP.history

    def late(order: History) -> tuple[Estimates, ...]:
        assert go.wait(60)
        return history(order)

    monkeypatch.setattr(workshop.WORKSHOP, "history", late)
    client = browser(opened)
    path = "/metric/theme?confidence=0.66"
    monkeypatch.setattr(background, "PAGE_SECONDS", 0.01)
    while (answer := client.get(path)).status_code == 202:
        pass
    shown = Page(answer)
    assert shown.has("history-waiting")
    assert shown.has("estimates-table")
    assert {"http-equiv": "refresh", "content": f"2; url={path}"} in shown.all("meta")
    go.set()
    while (shown := page(client, path)).has("history-waiting"):
        pass
    assert shown.has("history-table")
    assert not [each for each in shown.all("meta") if "http-equiv" in each]


def test_an_older_page_is_better_than_a_refusal(visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    page(visitor, "/metric/theme")
    at_once(monkeypatch)
    monkeypatch.setattr(background, "MAX_JOBS", 0)
    assert page(visitor, "/metric/theme").has("news")
    assert page(visitor, "/metric/theme?confidence=0.55", 503).has("refused")


@pytest.mark.parametrize("path", ["/nonsense", "/metric", "/metric/theme/nonsense.svg", "/static/nonsense"])
def test_an_unknown_address_is_a_page_with_a_way_back(app: Flask, path: str) -> None:
    answer = browser(app).get(path)
    assert (answer.status_code, answer.content_type) == (404, "text/html; charset=utf-8")
    assert {"href": "/"} in Page(answer).all("a")
    assert answer.headers["Content-Security-Policy"] == POLICY
    for client, address in ((app.test_client(), path), (browser(app), f"/v1{path}")):
        refused = client.get(address)
        assert (refused.status_code, refused.content_type) == (404, "application/problem+json")


def test_the_process_that_draws_is_replaced_when_it_dies(visitor: FlaskClient) -> None:
    assert visitor.get("/metric/crashed/chart.svg?confidence=0.8").status_code == 200
    process = workshop.WORKSHOP._process
    assert process is not None
    process.kill()
    process.wait()
    assert visitor.get("/metric/crashed/chart.svg?confidence=0.81").status_code == 200
    assert workshop.WORKSHOP._process is not process


def test_a_job_whose_process_is_killed_is_begun_again(visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    write = messages.write_message
    killed: list[subprocess.Popen[bytes]] = []

    def write_and_kill(pipe: IO[bytes], message: bytes) -> None:
        process = workshop.WORKSHOP._process
        assert process is not None
        first = not killed
        if first:
            killed.append(process)
            process.send_signal(signal.SIGSTOP)  # so that it has the job, and does not answer
        write(pipe, message)
        if first:
            process.kill()

    monkeypatch.setattr(workshop, "write_message", write_and_kill)
    monkeypatch.setattr(workshop, "TRIES", 1)
    assert page(visitor, "/metric/crashed?confidence=0.82", 503).has("refused")
    assert len(killed) == 1
    killed.clear()
    monkeypatch.setattr(workshop, "TRIES", 2)
    assert page(visitor, "/metric/crashed?confidence=0.82").has("estimates-table")
    assert len(killed) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="looks at processes as POSIX has them")
def test_the_process_that_draws_ends_with_the_one_that_serves(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/hubbub.db"
    Store(store).prepare(REGISTRY)
    program = f"""
from hubbub.collector.dashboard.orders import Place
from hubbub.collector.dashboard.workshop import WORKSHOP
assert WORKSHOP.glance(Place({EXAMPLE!r}, {store!r}))
print(WORKSHOP._process.pid, os.getpriority(os.PRIO_PROCESS, WORKSHOP._process.pid), flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", f"import os\n{program}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        pid, priority = map(int, server.stdout.readline().split())
        assert priority >= NICENESS
        server.kill()
        server.wait()
    deadline = time.monotonic() + 60
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether a process is there, and not only its name."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_many_who_look_at_once_all_get_their_page(opened: Flask) -> None:
    def ask(number: int) -> TestResponse:
        return browser(opened).get(f"/metric/theme?confidence=0.{70 + number % 2}")

    with ThreadPoolExecutor(4) as threads:
        assert [answer.status_code for answer in threads.map(ask, range(8))] == [200] * 8


def test_the_cache_lets_go_of_what_was_used_least() -> None:
    kept: background.Kept[str, int] = background.Kept(2)
    for number, key in enumerate("abc"):
        kept.put(key, number)
    assert (kept.get("a"), kept.get("c"), kept.get("b")) == (None, 2, 1)
    kept.put("d", 3)
    assert (kept.get("b"), kept.get("c")) == (1, None)
