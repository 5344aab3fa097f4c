"""Nothing that is sent makes the collector fail, and it counts exactly what it says that it counts."""

import asyncio
import io
import json
import re
import resource
import sys
import tracemalloc
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from flask import Flask

from collector.hostile import Hostile, Request, bomb, spell
from collector.reference import DAY, MalformedError, Reference, read
from hubbub.collector import front
from hubbub.collector.app import create_app, create_asgi
from hubbub.collector.collector import Collector
from hubbub.collector.refusal import CODES, MAX_DETAIL, PROBLEM
from hubbub.collector.store import Store
from hubbub.shared import Registry
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES, MSGPACK
from shared.registries import example

SEED = 20311231
FEW = 2_500
MANY_WSGI, MANY_ASGI = 70_000, 130_000
"""Requests of a run. WSGI gets fewer, because it commits each batch by itself."""

TOKEN = "an-admin-token-for-tests"
KEY = "an-ingest-key-for-tests"
ORIGIN = "https://app.example"
HANG_SECONDS = 60
MAX_ANSWER = 6 * MAX_DETAIL + 200
"""The longest refusal, in bytes: nobody has a megabyte of their own said back to them."""

REPORT = {"metric": "crashed", "version": 1, "period": "2031-12-31", "cohort": 0, "bits": b"\x01"}
PUBLIC = (b"/v1/registry", b"/livez", b"/readyz", b"/openapi.json")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Judge:
    """Looks at every answer."""

    def __init__(self, registry: Registry, key: str | None) -> None:
        self.reference = Reference(registry)
        self._key = key
        self.statuses: dict[int, int] = defaultdict(int)

    def look(self, request: Request, answer: Answer, body: bytes, head: dict[str, str]) -> None:
        """Check one answer. `body` and `head` are what the server lets the collector see."""
        self.statuses[answer.status] += 1
        try:
            self._look(request, answer, body, head)
        except AssertionError as error:
            error.add_note(f"{request!r:.2000}\n{answer!r:.2000}")
            raise

    def _look(self, request: Request, answer: Answer, body: bytes, head: dict[str, str]) -> None:
        assert answer.status < 500
        if answer.status >= 400:
            check_problem(request, answer)
        path = unquote_to_bytes(request.path)
        if path == b"/v1/batches":
            self._look_at_receipt(request, answer, body, head)
        elif answer.status < 400 and b"/" + path.lstrip(b"/") not in PUBLIC:
            assert opens(request.given("authorization"), TOKEN), "told without the token"

    def _look_at_receipt(self, request: Request, answer: Answer, body: bytes, head: dict[str, str]) -> None:
        if answer.status == 204:
            assert request.method == "OPTIONS"
            return
        batch = self._sound(request, body, head)
        assert (answer.status == 200) == (batch is not None)
        if batch is None:
            return
        identity, told = batch
        kept, rejected = self.reference.judge(told)
        receipt = json.loads(answer.body)
        duplicate = receipt.pop("duplicate")
        assert answer.headers["content-type"] == JSON
        assert receipt == {"accepted": len(kept), "rejected": rejected}
        if kept and not duplicate:
            self.reference.count(identity, kept)
        elif kept:
            self.reference.claimed.add(identity)
        else:
            assert duplicate is False

    def _sound(self, request: Request, body: bytes, head: dict[str, str]) -> tuple[str, list[dict[str, Any]]] | None:
        """Read a batch as it should be read; None if it should be refused."""
        length = head.get("content-length", "")
        announced = int(length[:19]) if length.isdecimal() else 0
        media_type = head.get("content-type", "").split(";")[0].strip().lower()
        encoding = (head.get("content-encoding", "") or "identity").strip().lower()
        if (
            request.method != "POST"
            or not request.whole
            or (self._key is not None and not opens(request.given("authorization"), self._key))
            or media_type not in {JSON, MSGPACK}
            or encoding not in {"identity", "gzip"}
            or announced > MAX_BATCH_BYTES
            or len(body) > MAX_BATCH_BYTES
        ):
            return None
        try:
            return read(body, media_type, encoding == "gzip")
        except MalformedError:
            return None


def check_problem(request: Request, answer: Answer) -> None:
    """A refusal is a problem document, with a code that is known."""
    assert answer.headers["content-type"] == PROBLEM
    assert len(answer.body) <= MAX_ANSWER
    if request.method != "HEAD" or answer.body:
        problem = json.loads(answer.body)
        assert problem.keys() == {"type", "title", "status", "code", "detail"}
        assert problem["status"] == answer.status == CODES[problem["code"]]
    assert answer.status != 401 or answer.headers["www-authenticate"] == "Bearer"


def opens(given: list[str], secret: str) -> bool:
    """Whether a head shows a secret."""
    return len(given) == 1 and re.fullmatch(rf"(?i:bearer) \s*{re.escape(secret)}\s*", given[0]) is not None


def resident() -> int:
    """Bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


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


class Memory:
    """Looks at the memory of the process half way, and at the end."""

    def __init__(self, cases: int) -> None:
        self._half = cases // 2
        self._then = 0

    def look(self, case: int) -> None:
        if case == self._half:
            self._then = resident()

    def verify(self) -> None:
        assert resident() <= 1.2 * self._then


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY_WSGI, marks=pytest.mark.slow)])
def test_no_request_breaks_wsgi_and_what_was_acknowledged_is_counted(tmp_path: Path, cases: int) -> None:
    registry = example()
    hostile = Hostile(SEED, registry, DAY, TOKEN, None)
    judge = Judge(registry, None)
    memory = Memory(cases)
    with application(tmp_path) as app:
        for case in range(cases):
            memory.look(case)
            request = hostile.request()
            answer = call_wsgi(app, request)
            head = wsgi_head(request)
            length = head.get("content-length", "")
            body = request.body[: int(length[:19])] if length.isdecimal() else b""
            judge.look(replace(request, whole=True), answer, body, head)  # WSGI cannot tell an early end
        memory.verify()
        judge.reference.verify(app.extensions["hubbub"].store)
    assert {200, 204, 400, 401, 404, 405, 413, 415, 422} <= judge.statuses.keys()


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY_ASGI, marks=pytest.mark.slow)])
def test_no_request_breaks_asgi_and_what_was_acknowledged_is_counted(tmp_path: Path, cases: int) -> None:
    registry = example()
    hostile = Hostile(SEED + 1, registry, DAY, TOKEN, KEY)
    judge = Judge(registry, KEY)
    memory = Memory(cases)

    async def fuzz(app: Any) -> None:
        together = 50
        for case in range(0, cases, together):
            memory.look(case)
            requests = [hostile.request() for _ in range(together)]
            answers = await asyncio.gather(*(call_asgi(app, request) for request in requests))
            for request, answer in zip(requests, answers, strict=True):
                judge.look(request, answer, request.body, asgi_head(request))

    with asgi_application(tmp_path, ingest_key=KEY, cors_origins=[ORIGIN]) as (collector, app):
        asyncio.run(fuzz(app))
        memory.verify()
        judge.reference.verify(collector.store)
    assert {200, 204, 400, 401, 404, 405, 413, 415, 422} <= judge.statuses.keys()


# Bombs.


def post(body: bytes, media_type: str = JSON, **headers: str) -> Request:
    head = {"content-type": media_type, "content-length": str(len(body))}
    head |= {name.replace("_", "-"): value for name, value in headers.items()}
    return Request("POST", b"/v1/batches", b"", tuple(head.items()), (body,))


def put(body: bytes, query: bytes = b"", *, whole: bool = True) -> Request:
    head = (("content-type", "text/plain"), ("content-length", str(len(body))), ("authorization", f"Bearer {TOKEN}"))
    return Request("PUT", b"/v1/metrics/homepage/candidates", query, head, (body,), whole)


def get(path: bytes, query: bytes = b"") -> Request:
    return Request("GET", path, query, (("authorization", f"Bearer {TOKEN}"),), (b"",))


def code(answer: Answer) -> str:
    problem: str = json.loads(answer.body)["code"]
    return problem


@contextmanager
def little_memory() -> Iterator[None]:
    """Fail if more than a few megabytes were taken at any moment."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield
        assert tracemalloc.get_traced_memory()[1] - before < 8 * MAX_BATCH_BYTES
    finally:
        tracemalloc.stop()


def test_a_gigabyte_of_zeros_in_a_megabyte_is_refused_in_little_memory(tmp_path: Path) -> None:
    gigabyte = bomb(1000 << 20)
    assert len(gigabyte) <= MAX_BATCH_BYTES, "refused for its length, and not for what is in it"
    unpacker, size = zlib.decompressobj(31), 0
    while not unpacker.eof:
        size += len(unpacker.decompress(unpacker.unconsumed_tail or (b"" if size else gigabyte), 1 << 24))
    assert size == 1000 << 20
    request = post(gigabyte, content_encoding="gzip")
    with application(tmp_path) as app, little_memory():
        assert code(call_wsgi(app, request)) == "too_large"
    with asgi_application(tmp_path) as (_, app), little_memory():
        assert code(asyncio.run(call_asgi(app, request))) == "too_large"


def test_a_body_without_end_is_refused_in_little_memory(tmp_path: Path) -> None:
    part = b" " * 65_536
    endless = Request("POST", b"/v1/batches", b"", (("content-type", JSON),), (part,) * 16_384)
    with asgi_application(tmp_path) as (_, app), little_memory():
        assert code(asyncio.run(call_asgi(app, endless))) == "too_large"


# Accidents that were found, each by its name.


def test_a_query_that_is_not_ascii_is_refused_and_not_a_failure(tmp_path: Path) -> None:
    requests = [
        get(path, query) for path in (b"/v1/metrics/homepage/tally", b"/livez") for query in (b"\xc3\xa9", b"\xff")
    ]
    with application(tmp_path) as app:
        assert [code(call_wsgi(app, request)) for request in requests] == ["bad_query"] * 4
    with asgi_application(tmp_path) as (_, app):
        assert [code(asyncio.run(call_asgi(app, request))) for request in requests] == ["bad_query"] * 4


def test_candidates_can_be_uploaded_where_receive_gives_a_future(tmp_path: Path) -> None:
    """An ASGI server owes an awaitable, and granian's is no coroutine."""

    class Part:
        def __await__(self) -> Generator[Any, None, dict[str, Any]]:
            yield from asyncio.sleep(0).__await__()
            return {"type": "http.request", "body": b"a\nb\n", "more_body": False}

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    with asgi_application(tmp_path) as (_, app):
        asyncio.run(app(scope_of(put(b"a\nb\n")), Part, send))
    assert sent[0]["status"] == 200


def test_half_a_list_of_candidates_replaces_nothing(tmp_path: Path) -> None:
    async def upload(app: Any) -> None:
        assert (await call_asgi(app, put(b"a\nb\nc\n"))).status == 200
        assert (await call_asgi(app, put(b"d\ne\n", whole=False))).status == 400
        assert (await call_asgi(app, get(b"/v1/metrics/homepage/candidates"))).body == b"a\nb\nc\n"

    with asgi_application(tmp_path) as (_, app):
        asyncio.run(upload(app))


def test_a_sender_that_stops_in_the_middle_of_a_list_blocks_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front, "BODY_SECONDS", 0.05)

    async def upload(app: Any) -> None:
        stuck = [call_asgi(app, put(b"a\n", whole=False), stays=True) for _ in range(8)]
        assert [answer.status for answer in await asyncio.gather(*stuck)] == [400] * 8
        assert (await call_asgi(app, get(b"/livez"))).status == 200
        assert (await call_asgi(app, get(b"/v1/metrics/homepage/candidates"))).status == 404

    with asgi_application(tmp_path) as (_, app):
        asyncio.run(upload(app))


def test_a_slow_body_is_told_so_and_its_batch_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "BODY_SECONDS", 0.05)
    monkeypatch.setattr(front, "LOOK_SECONDS", 0.01)
    batch = spell({"batch": "ab" * 16, "reports": [REPORT]}, JSON)
    assert batch is not None

    async def upload(app: Any) -> None:
        stuck = [call_asgi(app, replace(post(batch[:-1]), whole=False), stays=True) for _ in range(50)]
        assert [code(answer) for answer in await asyncio.gather(*stuck)] == ["body_too_slow"] * 50
        assert json.loads((await call_asgi(app, post(batch))).body)["accepted"] == 1

    with asgi_application(tmp_path) as (collector, app):
        asyncio.run(upload(app))
        assert [each.reports for each in collector.store.held()] == [1]


def test_a_sender_that_goes_away_in_its_body_is_refused_and_not_a_failure(tmp_path: Path) -> None:
    request = replace(post(b'{"batch":'), whole=False)
    with asgi_application(tmp_path) as (_, app):
        assert code(asyncio.run(call_asgi(app, request))) == "bad_request"


def test_an_answer_that_nobody_takes_is_no_failure(tmp_path: Path) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        raise BrokenPipeError

    with asgi_application(tmp_path) as (_, app):
        asyncio.run(app(scope_of(post(b"{}")), receive, send))


def test_a_refusal_does_not_repeat_a_megabyte(tmp_path: Path) -> None:
    batch = spell({"batch": "0" * 32, "reports": [], "x" * 1_000_000: 1}, JSON)
    assert batch is not None
    with application(tmp_path) as app:
        answer = call_wsgi(app, post(batch))
    assert (answer.status, code(answer)) == (422, "not_a_batch")
    assert len(answer.body) <= MAX_ANSWER


def test_slashes_are_not_corrected_by_a_redirect_to_the_host_that_was_named(tmp_path: Path) -> None:
    request = replace(get(b"/v1//metrics"), headers=(("host", "evil.example"),))
    with application(tmp_path) as app:
        answer = call_wsgi(app, request)
    assert (answer.status, code(answer)) == (404, "not_found")


def test_a_body_of_single_bytes_costs_as_much_as_its_length(tmp_path: Path) -> None:
    """Each part once was copied together with all before it: a minute of work for a megabyte."""
    bytes_one_by_one = Request("POST", b"/v1/batches", b"", (("content-type", JSON),), (b" ",) * MAX_BATCH_BYTES)
    with asgi_application(tmp_path) as (_, app):
        assert code(asyncio.run(call_asgi(app, bytes_one_by_one))) == "not_readable"
