"""Where everybody begins: the overview, what an empty one tells to do, and that the demo has seen every page before."""

import html
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import make_server

from collector.apps import collector_of, running
from collector.dashboards import CANDIDATES, DAYS, HTML, REGISTRY, SHARD, TRUTH, browser, fill, page, upload
from hubbub.client import Client
from hubbub.collector import decoding
from hubbub.collector.dashboard import background, workshop
from hubbub.collector.dashboard.orders import Drawing
from hubbub.collector.store.backend import writing
from hubbub.collector.store.bulk import put_tallies
from hubbub.collector.store.shard import COUNTS
from hubbub.simulations import simulate_tally
from hubbub.simulations.demo import visit
from hubbub.simulations.demo.visit import warm
from told import run_here

pytestmark = pytest.mark.usefixtures("patient")


def test_the_overview_tells_what_there_is_of_each_metric(visitor: FlaskClient) -> None:
    shown = page(visitor, "/")
    for name, metric in REGISTRY.items():
        assert {"href": f"/metric/{name}"} in shown.all("a")
        assert metric.description in shown.text
    assert f"{3 * 970:,} Last period {DAYS[-1]} Health no alarms" in shown.text  # crashed
    assert f"week of {DAYS[-1]}" in shown.text
    assert "no reports yet" in shown.text  # of language
    assert f"Reports per day last: {970:,}" in shown.text
    assert "Reports per week last:" in shown.text
    labels = [each["aria-label"] or "" for each in shown.all("svg")]
    assert len(labels) == len(TRUTH)
    assert any("crashed" in label for label in labels)


def test_the_overview_decodes_no_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decode_apart(*_: object) -> bytes:
        raise AssertionError("strings were decoded")

    monkeypatch.setattr(decoding, "decode_apart", decode_apart)
    with running(tmp_path, REGISTRY, admin_token=None) as app:
        fill(collector_of(app).store)
        client = browser(app)
        assert "needs candidates" in page(client, "/").text
        upload(client, strings="example.org")
        assert "not decoded yet" in page(client, "/").text


def test_the_overview_tells_the_alarms_of_the_last_decoding(opened: Flask, tmp_path: Path) -> None:
    with running(tmp_path, REGISTRY, admin_token=None) as app:
        tally = simulate_tally(REGISTRY["crashed"], {True: 5, False: 5}, 1)
        rows = [("crashed", 1, DAYS[0], 0, int(tally.n[0]), tally.counts[0].astype(COUNTS).tobytes())]
        with writing(collector_of(app).store.engine) as connection:
            put_tallies(connection, SHARD, rows)
        client = browser(app)
        assert "1 alarm" in page(client, "/").text
        shown = page(client, "/metric/crashed")
        assert shown.has("alarms")
        assert "There are only 10 reports" in shown.text
    client = browser(opened)
    page(client, "/metric/homepage")
    assert "not decoded yet" not in page(client, "/").text


def test_an_empty_overview_tells_what_to_do_next(empty: FlaskClient) -> None:
    shown = page(empty, "/")
    assert shown.has("start-here")
    assert 'Client( "http://localhost", registry="metrics.toml", state="device.db"' in shown.text
    assert "no reports yet" in shown.text
    assert not shown.all("svg")


@pytest.mark.parametrize("key", [None, "a-key-for-the-tests"])
def test_what_an_empty_page_tells_works_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], key: str | None
) -> None:
    """The collector keeps its store in the same folder, under the name that it has unless somebody chooses another."""
    monkeypatch.chdir(tmp_path)
    with running(tmp_path, REGISTRY, admin_token=None, ingest_key=key) as app, serving(app) as address:
        shown = requests.get(address, headers=HTML, timeout=60).text
        blocks = re.findall(r"<pre[^>]*><code>(.*?)</code>", shown, re.DOTALL)
        fetch, told, look = (html.unescape(each) for each in blocks)
        assert fetch == f"curl -s {address}/v1/registry > metrics.toml"
        Path("metrics.toml").write_bytes(requests.get(f"{address}/v1/registry", timeout=60).content)
        assert ("ingest_key=ingest_key" in told) == (key is not None)
        assert key is None or key not in shown
        known = {"consent": True, "value": "example.org", "ingest_key": key}
        exec(told, known)
        client = known["client"]
        assert isinstance(client, Client)
        assert client.stats().problem is None
        client.close(30)
    assert look.startswith("hubbub preview ")
    seen = run_here("preview", capsys, monkeypatch)(*shlex.split(look)[2:])
    assert (seen.code, seen.err) == (0, "")
    assert "homepage" in seen.out


def test_the_demo_looks_at_every_page_before_anybody_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    draw = workshop.WORKSHOP.draw

    def count(order: Drawing) -> bytes:
        drawn.append(order.estimates[0].metric)
        return draw(order)

    monkeypatch.setattr(workshop.WORKSHOP, "draw", count)
    with running(tmp_path, REGISTRY, admin_token=None) as app, serving(app) as address:
        fill(collector_of(app).store)
        upload(browser(app), strings="\n".join(CANDIDATES))
        with monkeypatch.context() as patched:
            patched.setattr(background, "PAGE_SECONDS", 0.05)  # some pages say that they are being worked out
            assert warm(address, TRUTH)
        assert "not decoded yet" not in page(browser(app), "/").text
    assert sorted(drawn) == sorted([*TRUTH, *TRUTH]), "the estimates of each, and their history"


def test_the_demo_does_not_wait_for_ever() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(visit, "WARM_SECONDS", 0.0)
        assert not warm("http://127.0.0.1:9", ["theme"])


@contextmanager
def serving(app: Flask) -> Iterator[str]:
    """Serve an app on a port of this machine."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
