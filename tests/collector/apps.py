"""Collectors inside the test's own process, spoken to without a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from hubbub.collector import create_app
from hubbub.collector.collector import Collector
from hubbub.shared import Registry
from shared.registries import example

TOKEN = "a-token-for-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def running(folder: Path, registry: Registry | None = None, **options: object) -> Iterator[Flask]:
    """An app that is ready to take batches."""
    settings: dict[str, object] = {"store": f"sqlite:///{folder}/hubbub.db", "admin_token": TOKEN, **options}
    app = create_app(registry=registry or example(), **settings)  # type: ignore[arg-type]
    collector = collector_of(app)
    try:
        assert collector.writer.wait_until_ready(30)
        yield app
    finally:
        assert collector.close(30)


def collector_of(app: Flask) -> Collector:
    collector: Collector = app.extensions["hubbub"]
    return collector


def post(client: FlaskClient, body: bytes, content_type: str = "application/json", **headers: str) -> TestResponse:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/v1/batches", data=body, content_type=content_type, headers=sent)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    """An app that is ready to take batches."""
    with running(tmp_path) as served:
        yield served


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """Somebody who speaks to it, without a token."""
    return app.test_client()
