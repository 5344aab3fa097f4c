"""Nothing that is sent makes the collector fail, and it counts exactly what it says that it counts."""

import asyncio
import json
import re
import resource
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from collector.called import (
    MAX_ANSWER,
    TOKEN,
    Answer,
    application,
    asgi_application,
    asgi_head,
    call_asgi,
    call_wsgi,
    wsgi_head,
)
from collector.hostile import Hostile, Request
from collector.reference import DAY, MalformedError, Reference, read
from hubbub.collector.refusal import CODES, PROBLEM
from hubbub.shared import Registry
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES, MSGPACK
from shared.registries import example

pytestmark = pytest.mark.unmeasured

SEED = 20311231
FEW = 2_500
MANY_WSGI, MANY_ASGI = 70_000, 130_000
"""Requests of a run. WSGI gets fewer, because it commits each batch by itself."""

KEY = "an-ingest-key-for-tests"
ORIGIN = "https://app.example"
PUBLIC = (b"/v1/registry", b"/livez", b"/readyz", b"/openapi.json")


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
