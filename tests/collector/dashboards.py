"""A dashboard with data and one without, and what a browser would find on a page of it."""

import html
import re
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from collector.apps import TOKEN, collector_of, running
from hubbub.collector.candidates import unpack
from hubbub.collector.dashboard import background
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.collector.store.bulk import put_tallies
from hubbub.collector.store.candidates import get_chunks
from hubbub.collector.store.shard import COUNTS
from hubbub.shared import Registry
from hubbub.simulations import simulate_tally
from shared.registries import EXAMPLE

SHARD = 99


EVIL = '<script>alert("x")</script>'


FORMULA = '=HYPERLINK("http://example.org")'


REGISTRY = Registry.parse(
    EXAMPLE.replace('"Colour theme"', f"'{EVIL} & theme'").replace('"system"]', f"'{EVIL}', '{FORMULA}']")
)


DAYS = [date(2026, 11, 2), date(2026, 11, 9), date(2026, 11, 16)]


TRUTH: dict[str, dict[str | bool | float, int]] = {
    "homepage": {"example.org": 9000, EVIL: 6000, FORMULA: 6000},
    "theme": {"light": 500, "dark": 1200, EVIL: 900, FORMULA: 700},
    "crashed": {True: 70, False: 900},
    "minutes_used": {0.0: 400, 12.5: 300, 1440.0: 20},
    "startup_ms": {50.0: 500, 432.0: 2000, 60000.0: 3},
    "newcomer": {True: 40, False: 60},
}


CANDIDATES = ["example.org", EVIL, FORMULA, *(f"site-{n}" for n in range(20))]


POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def fill(store: Store) -> None:
    rows = []
    for name, truth in TRUTH.items():
        for seed, day in enumerate(DAYS):
            tally = simulate_tally(REGISTRY[name], truth, seed)
            for cohort, (n, counts) in enumerate(zip(tally.n.tolist(), tally.counts, strict=True)):
                rows.append((name, tally.version, day, cohort, n, counts.astype(COUNTS).tobytes()))
    with writing(store.engine) as connection:
        put_tallies(connection, SHARD, rows)


def browser(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = HTML["Accept"]
    return client


class Page(HTMLParser):
    """What a browser would find: elements with their attributes, and the text."""

    def __init__(self, answer: TestResponse) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.told: list[str] = []
        self.source = answer.text
        self.feed(self.source)
        self.text = " ".join(" ".join(self.told).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.told.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def has(self, identity: str) -> bool:
        return any(attributes.get("id") == identity for _, attributes in self.elements)

    def tables(self) -> list[list[str]]:
        """The cells of each table, but those of its head."""
        bodies = re.findall(r"<tbody[^>]*>(.*?)</tbody>", self.source, re.DOTALL)
        return [[html.unescape(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", body)] for body in bodies]

    def rows(self) -> list[list[str]]:
        """The rows of all tables, with the cell that names each."""
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", self.source, re.DOTALL)
        return [[html.unescape(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in rows]

    def field(self, name: str) -> str:
        found = [each["value"] for each in self.all("input") if each.get("name") == name]
        assert found[0] is not None
        return found[0]


def page(client: FlaskClient, path: str, status: int = 200) -> Page:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert answer.content_type == "text/html; charset=utf-8"
    return Page(answer)


def upload(client: FlaskClient, name: str = "homepage", **fields: object) -> TestResponse:
    token = page(client, f"/metric/{name}").field("form_token")
    return client.post(f"/metric/{name}/candidates", data={"form_token": token, **fields})


def candidates_of(app: Flask) -> list[str]:
    found = get_chunks(collector_of(app).store.engine, "homepage")
    return [string for chunk in unpack(found[1]) for string in chunk] if found else []


@pytest.fixture(scope="module")
def patient() -> Iterator[None]:
    """Wait for answers, however busy the machine is; the test of waiting itself does not."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(background, "PAGE_SECONDS", 120.0)
        patched.setattr(background, "OLDER_SECONDS", 120.0)
        yield


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, patient: None) -> Iterator[Flask]:
    """A collector with data and without a token, for tests that change nothing."""
    with running(tmp_path_factory.mktemp("opened"), REGISTRY, admin_token=None) as app:
        fill(collector_of(app).store)
        client = browser(app)
        assert upload(client, strings="\n".join(CANDIDATES)).status_code == 303
        yield app


@pytest.fixture
def visitor(opened: Flask) -> FlaskClient:
    return browser(opened)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[FlaskClient]:
    with running(tmp_path, REGISTRY, admin_token=None) as app:
        yield browser(app)


def log_in(client: FlaskClient, token: str = TOKEN, following: str = "/", **headers: str) -> TestResponse:
    form = {"form_token": page(client, "/login").field("form_token"), "token": token, "next": following}
    return client.post("/login", data=form, headers=headers)
