"""Bombs are refused in little memory, and no accident that was found happens again."""

import asyncio
import json
import tracemalloc
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collector.called import MAX_ANSWER, TOKEN, Answer, application, asgi_application, call_asgi, call_wsgi, scope_of
from collector.hostile import Request, spell
from collector.oddities import bomb
from hubbub.collector import front
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES

REPORT = {"metric": "crashed", "version": 1, "period": "2031-12-31", "cohort": 0, "bits": b"\x01"}


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


# Bombs.


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
