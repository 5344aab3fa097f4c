"""A collector inside the test's own process, called as servers of both kinds would, with whatever request."""

import asyncio
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from flask import Flask

from collector.hostile import Request
from collector.reference import DAY
from hubbub.collector.app import create_app, create_asgi
from hubbub.collector.collector import Collector
from hubbub.collector.refusal import MAX_DETAIL
from hubbub.collector.store import Store
from shared.registries import example

TOKEN = "an-admin-token-for-tests"
HANG_SECONDS = 60
MAX_ANSWER = 6 * MAX_DETAIL + 200
"""The longest refusal, in bytes: nobody has a megabyte of their own said back to them."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@contextmanager
def application(folder: Path, **options: Any) -> Iterator[Flask]:
    """The collector as a WSGI application."""
    app = create_app(
        registry=example(),
        store=f"sqlite:///{folder}/hubbub.db",
        admin_token=TOKEN,
        clock=lambda: DAY,
        **options,
    )
    collector: Collector = app.extensions["hubbub"]
    try:
        assert collector.writer.wait_until_ready(HANG_SECONDS)
        yield app
    finally:
        assert collector.close()


@contextmanager
def asgi_application(folder: Path, **options: Any) -> Iterator[tuple[Collector, Any]]:
    """The collector as an ASGI application."""
    store = Store(f"sqlite:///{folder}/hubbub.db")
    collector = Collector(example(), store, admin_token=TOKEN, clock=lambda: DAY, **options)
    collector.start()
    try:
        assert collector.writer.wait_until_ready(HANG_SECONDS)
        yield collector, create_asgi(collector, threads=4)
    finally:
        assert collector.close()


def wsgi_head(request: Request) -> dict[str, str]:
    """The head as WSGI gives it: what was said twice is joined."""
    head: dict[str, str] = {}
    for name, value in request.headers:
        head[name] = f"{head[name]},{value}" if name in head else value
    return head


def call_wsgi(app: Flask, request: Request) -> Answer:
    """Send a request to a WSGI application."""
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(request.path).decode("latin-1"),
        "QUERY_STRING": request.query.decode("latin-1"),
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in wsgi_head(request).items():
        key = name.upper().replace("-", "_")
        environ[key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"] = value
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
        started.append((status, headers))
        return lambda _: None

    answered: Any = app.wsgi_app(environ, start_response)
    try:
        body = b"".join(answered)
    finally:
        getattr(answered, "close", lambda: None)()
    status, headers = started[-1]
    return Answer(int(status.split()[0]), {name.lower(): value for name, value in headers}, body)


def asgi_head(request: Request) -> dict[str, str]:
    """The head as the collector reads it behind ASGI: of what was said twice, the last."""
    return {name: value.encode().decode("latin-1") for name, value in request.headers}


def scope_of(request: Request) -> dict[str, Any]:
    """The head of a request, as ASGI tells it."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": request.method,
        "path": unquote_to_bytes(request.path).decode("utf-8", "replace"),
        "raw_path": request.path,
        "query_string": request.query,
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in request.headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


async def call_asgi(app: Any, request: Request, *, stays: bool = False) -> Answer:
    """Send a request to an ASGI application; a sender that stays says nothing more, and does not go away either."""
    last = len(request.parts) - 1
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": part, "more_body": index < last or not request.whole}
        for index, part in enumerate(request.parts)
    ]
    messages.reverse()
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if stays and not messages:
            await asyncio.Event().wait()
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await asyncio.wait_for(app(scope_of(request), receive, send), HANG_SECONDS)
    head = {name.decode("latin-1"): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], head, b"".join(message.get("body", b"") for message in sent[1:]))
