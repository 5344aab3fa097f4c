"""A collector with tallies of every kind, who asks it for estimates, and the processes that decode them."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date

import msgspec
import pytest
import requests
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from collector.apps import BEARER, TOKEN, collector_of
from hubbub.collector import Estimates, decode, decoding
from hubbub.collector.decode.process import Order, decode_apart
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.collector.store.bulk import put_tallies
from hubbub.collector.store.shard import COUNTS
from hubbub.simulations import simulate_tally
from shared.registries import example

HANG_SECONDS = 300
"""Waiting for longer than this is a failure, also on a busy machine, of which decoding gets what others leave."""

SHARD = 99
"""Not that of any writer."""

REGISTRY = example()
STRINGS = [name for name, metric in REGISTRY.items() if metric.kind == "string"]
DAYS = [date(2026, 11, 2), date(2026, 11, 9), date(2026, 11, 16)]
CANDIDATES = ["example.org", "example.com", "eo", "ünïcödé", "with, a comma", *(f"site-{n}" for n in range(45))]
ESTIMATES = "/v1/metrics/homepage/estimates"

TRUTH: dict[str, dict[str | bool | float, int]] = {
    "homepage": {"example.org": 6000, "example.com": 3000, "with, a comma": 1500, "nobody asks about this": 500},
    "homepage_classic": {"example.org": 9000, "ünïcödé": 4000},
    "theme": {"light": 500, "dark": 1200, "system": 10},
    "crashed": {True: 70, False: 900},
    "minutes_used": {0.0: 400, 12.5: 300, 1440.0: 20},
    "startup_ms": {50.0: 500, 432.0: 2000, 60000.0: 3},
    "language": {"eo": 3000, "tlh": 200},
    "newcomer": {True: 40, False: 60},
}


def fill(store: Store, *names: str) -> None:
    """Put tallies of three periods into a store, as many reports would have made them."""
    rows = []
    for name in names or TRUTH:
        for seed, day in enumerate(DAYS):
            tally = simulate_tally(REGISTRY[name], TRUTH[name], seed)
            for cohort, (n, counts) in enumerate(zip(tally.n.tolist(), tally.counts, strict=True)):
                rows.append((name, tally.version, day, cohort, n, counts.astype(COUNTS).tobytes()))
    with writing(store.engine) as connection:
        put_tallies(connection, SHARD, rows)


def list_candidates(client: FlaskClient, name: str = "homepage", strings: list[str] = CANDIDATES) -> None:
    path = f"/v1/metrics/{name}/candidates"
    answer = client.put(path, data="\n".join(strings), content_type="text/plain", headers=BEARER)
    assert answer.status_code == 200


def directly(store: Store, name: str, start: date | None = None, end: date | None = None, **how: object) -> Estimates:
    """What the decoder itself says about what is in a store."""
    metric = REGISTRY[name]
    asked = {"candidates": CANDIDATES} if metric.kind == "string" else {}
    periods = 1 if metric.every == "once" else store.periods(metric, start, end)
    return decode(metric, store.tally(metric, start, end), periods=periods, **asked, **how)  # type: ignore[arg-type]


def detected(estimates: Estimates) -> Estimates:
    return msgspec.structs.replace(estimates, rows=estimates.detected)


def told(answer: TestResponse | requests.Response) -> Estimates:
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.data if isinstance(answer, TestResponse) else answer.content
    estimates = msgspec.json.decode(body, type=Estimates)
    assert json.loads(body) == json.loads(msgspec.json.encode(estimates.to_dict()))
    return estimates


@pytest.fixture
def stocked(app: Flask, reader: FlaskClient) -> Store:
    """The store of the app, with tallies of everything and candidates for one metric."""
    store = collector_of(app).store
    fill(store)
    list_candidates(reader)
    return store


@pytest.fixture
def reader(app: Flask) -> FlaskClient:
    """A client that shows the admin token with every request."""
    return reader_of(app)


def reader_of(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {TOKEN}"
    return client


class Processes:
    """The processes that decode: how many there were, and the last of them, stopped if it was to be held up."""

    def __init__(self) -> None:
        self.number = 0
        self.holding = False
        self.quick: bytes | None = None
        """What to answer in place of decoding, where only the number of times matters."""
        self.begun = threading.Event()
        self.last: subprocess.Popen[bytes] | None = None

    def decode_apart(self, order: Order, started: Callable[[subprocess.Popen[bytes]], None]) -> bytes:
        def begin(each: subprocess.Popen[bytes]) -> None:
            started(each)
            self.number += 1
            self.last = each
            if self.holding:
                each.send_signal(signal.SIGSTOP)
            self.begun.set()

        if self.quick is None:
            return decode_apart(order, begin)
        self.number += 1
        return self.quick

    def signal(self, number: signal.Signals) -> None:
        assert self.last is not None
        self.last.send_signal(number)

    @property
    def returncode(self) -> int | None:
        assert self.last is not None
        return self.last.returncode


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    """What is decoded apart from now on."""
    watched = Processes()
    monkeypatch.setattr(decoding, "decode_apart", watched.decode_apart)
    return watched


@pytest.fixture
def asking(app: Flask) -> Iterator[Callable[..., Future[TestResponse]]]:
    """Ask from threads of their own."""
    with ThreadPoolExecutor() as threads:
        yield lambda path=ESTIMATES: threads.submit(lambda: reader_of(app).get(path))


def refusal(answer: TestResponse) -> tuple[int, str]:
    assert answer.content_type == "application/problem+json"
    if answer.status_code == 503:
        assert int(answer.headers["Retry-After"]) > 0
    return answer.status_code, answer.get_json()["code"]
