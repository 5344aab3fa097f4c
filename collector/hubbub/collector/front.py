"""The ingest route, in front of Flask: as a WSGI function, and as an ASGI one.

Flask's own dispatch costs more than all the rest of taking a batch. WSGI is what every Python server speaks, and what
`create_app` gives. `hubbub serve` uses ASGI: a WSGI server ties a thread to each body that is on its way, so that a few
dozen senders of a byte a second keep everybody else out; an ASGI one waits for thousands of them without a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from hubbub.collector.ingest import PATH, Head, look_at_head, read_batch, receipt, too_large
from hubbub.collector.refusal import PROBLEM, Refused
from hubbub.collector.writer import NotTakenError, Ticket
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from hubbub.collector.acceptance import Judged
    from hubbub.collector.collector import Collector
    from hubbub.collector.ingest import Header

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Headers = tuple[tuple[str, str], ...]

COMMIT_SECONDS = 10.0
"""The longest that a request waits for its commit; its sender then has to ask again, and is not counted twice."""

BODY_SECONDS = 30.0
"""The longest that a body may take to arrive."""

SECURITY_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)

_INGEST_HEADERS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
"""Of these, what can matter for the answer to a batch."""

LOOK_SECONDS = 1.0
"""How often the two limits above are looked after."""

_NAMES = {
    name: name.encode() for name in ("authorization", "content-encoding", "content-length", "content-type", "origin")
}
_JSON_TYPE = ("Content-Type", JSON)
_CORS_SECONDS = 86400
_NOT_TAKEN = {
    "store_down": "the store cannot be reached now; try again later",
    "queue_full": "more batches wait than can be kept; try again later",
    "closing": "the collector is being stopped; try again later",
}


class Front:
    """What WSGI and ASGI have in common."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def head(self, method: str, header: Header) -> Head | None:
        """Judge a request before its body; None: it is a browser that asks whether it may post."""
        if method == "OPTIONS" and self._collector.cors_origins:
            return None
        if method != "POST":
            raise Refused(
                "method_not_allowed", f"{PATH}: is not for {method[:20]}; allowed: POST", (("Allow", "POST"),)
            )
        return look_at_head(header, self._collector.ingest_key)

    def judge(self, head: Head, body: bytes) -> Judged:
        """Read a batch."""
        return read_batch(head, body, self._collector.acceptance)

    def submit(self, ticket: Ticket) -> None:
        """Hand a batch to the writer."""
        try:
            self._collector.writer.submit(ticket)
        except NotTakenError as error:
            raise Refused(error.code, _NOT_TAKEN[error.code]) from None

    def answer(self, judged: Judged, ticket: Ticket | None) -> bytes:
        """Spell the answer to a batch; without a ticket it had nothing to commit."""
        if ticket is None:
            self._collector.nothing_counted(judged)
        elif ticket.failed:
            raise Refused("store_down", _NOT_TAKEN["store_down"])
        return receipt(judged, new=ticket is not None and ticket.new)

    def headers(self, method: str, header: Header) -> Headers:
        """Head lines of every answer; those of CORS for origins that the operator has listed, and for no other."""
        origins = self._collector.cors_origins
        if not origins:
            return _INGEST_HEADERS
        origin = header("origin")
        lines = [*_INGEST_HEADERS, ("Vary", "Origin")]
        if origin is not None and (origin in origins or "*" in origins):
            lines.append(("Access-Control-Allow-Origin", "*" if "*" in origins else origin))
            if method == "OPTIONS":
                lines += [
                    ("Access-Control-Allow-Methods", "POST"),
                    ("Access-Control-Allow-Headers", "authorization, content-encoding, content-type"),
                    ("Access-Control-Max-Age", str(_CORS_SECONDS)),
                ]
        return tuple(lines)

    def refuse(self, refused: Refused, headers: Headers) -> tuple[int, Headers, bytes]:
        """Answer with a refusal, and count it."""
        self._collector.monitoring.refused(refused.code)
        return refused.status, (*headers, *refused.headers, ("Content-Type", PROBLEM)), refused.body()

    def refuse_query(self) -> tuple[int, Headers, bytes]:
        """Answer to a query that RFC 3986 does not know, and that both Flask and what leads to it would fail on."""
        refused = Refused("bad_query", "query: is not ASCII; allowed: other characters as %XX")
        return refused.status, (*SECURITY_HEADERS, ("Content-Type", PROBLEM)), refused.body()


class WsgiFront(Front):
    """A WSGI application that takes batches, and hands every other request on."""

    def __init__(self, collector: Collector, inner: WSGIApplication) -> None:
        super().__init__(collector)
        self._inner = inner

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        if environ.get("PATH_INFO") == PATH:
            status, headers, body = self._serve(environ)
        elif environ.get("QUERY_STRING", "").isascii():
            return self._inner(environ, start_response)
        else:
            status, headers, body = self.refuse_query()
        lines = [*headers, ("Content-Length", str(len(body)))]
        start_response(f"{status} {HTTPStatus(status).phrase}", lines)
        return [body]

    def deliver(self, tickets: list[Ticket]) -> None:
        """Wake the threads that wait for these tickets."""
        for ticket in tickets:
            ticket.waiter.release()

    def _serve(self, environ: WSGIEnvironment) -> tuple[int, Headers, bytes]:
        method = environ["REQUEST_METHOD"]
        header = functools.partial(_wsgi_header, environ)
        headers = self.headers(method, header)
        try:
            head = self.head(method, header)
            if head is None:
                return 204, headers, b""
            judged = self.judge(head, _wsgi_body(environ))
            ticket = self._commit(judged) if judged.reports else None
            return 200, (*headers, _JSON_TYPE), self.answer(judged, ticket)
        except Refused as refused:
            return self.refuse(refused, headers)

    def _commit(self, judged: Judged) -> Ticket:
        waiter = threading.Lock()
        waiter.acquire()
        ticket = Ticket(judged, self, waiter)
        self.submit(ticket)
        if not waiter.acquire(timeout=COMMIT_SECONDS):
            raise Refused("store_down", _NOT_TAKEN["store_down"])
        return ticket


class AsgiFront(Front):
    """An ASGI application that takes batches, and hands every other request on."""

    def __init__(self, collector: Collector, inner: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        super().__init__(collector)
        self._inner = inner
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watch: asyncio.Task[None] | None = None
        self._arriving: dict[asyncio.Task[Any] | None, float] = {}
        """Requests whose body has not arrived, with the time they began at."""
        self._waiting: dict[Ticket, float] = {}
        """Batches that wait for a commit, with the time they began at."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the start and the end of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and scope["path"] == PATH:
            await send_answer(send, *await self._serve(scope, receive))
        elif scope["type"] == "http" and not scope["query_string"].isascii():
            await send_answer(send, *self.refuse_query())
        else:
            await self._inner(scope, _whole(receive), send)

    def deliver(self, tickets: list[Ticket]) -> None:
        """Wake the tasks that wait for these tickets: one call into the loop for all of them."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                self._loop.call_soon_threadsafe(_wake, tickets)

    async def _serve(self, scope: Scope, receive: Receive) -> tuple[int, Headers, bytes]:
        method = scope["method"]
        header = functools.partial(_asgi_header, dict(scope["headers"]))
        headers = self.headers(method, header)
        try:
            head = self.head(method, header)
            if head is None:
                return 204, headers, b""
            judged = self.judge(head, await self._body(receive))
            ticket = None
            if judged.reports:
                ticket = Ticket(judged, self, self._running().create_future())
                self.submit(ticket)
                self._waiting[ticket] = time.monotonic()
                try:
                    await ticket.waiter
                finally:
                    del self._waiting[ticket]
            return 200, (*headers, _JSON_TYPE), self.answer(judged, ticket)
        except Refused as refused:
            return self.refuse(refused, headers)

    async def _body(self, receive: Receive) -> bytes:
        self._running()
        task = asyncio.current_task()
        self._arriving[task] = time.monotonic()
        try:
            body = bytearray()  # bytes would be copied with every part of them, and parts may be single bytes
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refused("bad_request", "batch: ends too early; allowed: as many bytes as were announced")
                body += message.get("body", b"")
                if len(body) > MAX_BATCH_BYTES:
                    raise too_large()
                if not message.get("more_body"):
                    return bytes(body)
        except asyncio.CancelledError:
            if task in self._arriving:
                raise
            raise Refused("body_too_slow", f"batch: took too long to arrive; allowed: {BODY_SECONDS:g} s") from None
        finally:
            self._arriving.pop(task, None)

    def _running(self) -> asyncio.AbstractEventLoop:
        """Give the loop, and make sure that somebody looks after those who take too long."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._watch = self._loop.create_task(self._look_after())
        return self._loop

    async def _look_after(self) -> None:
        """End what takes too long. A timer for each request would cost more than all else about it."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            for task, began in list(self._arriving.items()):
                if now - began > BODY_SECONDS and task is not None:
                    del self._arriving[task]
                    task.cancel()
            for ticket, began in list(self._waiting.items()):
                if now - began > COMMIT_SECONDS:
                    ticket.failed = True
                    _wake([ticket])

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._watch is not None:
            self._watch.cancel()
        # Requests have been answered by now; what nobody waits for any more is committed all the same.
        await asyncio.get_running_loop().run_in_executor(None, self._collector.close)
        await send({"type": "lifespan.shutdown.complete"})


async def send_answer(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send an answer, if somebody is there to read it."""
    try:
        await send({"type": "http.response.start", "status": status, "headers": [*_asgi_lines(headers, len(body))]})
        await send({"type": "http.response.body", "body": body})
    except OSError:  # nobody is there to read it
        return


def _whole(receive: Receive) -> Receive:
    """Give the parts of a body to Flask, and an error if there is no end to it: half a list is no list."""

    async def part() -> dict[str, Any]:
        async with asyncio.timeout(BODY_SECONDS):
            message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        return message

    return part


def _wake(tickets: list[Ticket]) -> None:
    for ticket in tickets:
        if not ticket.waiter.done():
            ticket.waiter.set_result(None)


def _wsgi_header(environ: WSGIEnvironment, name: str) -> str | None:
    key = name.upper().replace("-", "_")
    value = environ.get(key if name in {"content-type", "content-length"} else f"HTTP_{key}")
    return value or None


def _wsgi_body(environ: WSGIEnvironment) -> bytes:
    length = environ.get("CONTENT_LENGTH") or ""
    if length.isdecimal():
        limit = min(int(length[:19]), MAX_BATCH_BYTES + 1)
    else:
        limit = MAX_BATCH_BYTES + 1 if environ.get("wsgi.input_terminated") else 0
    parts: list[bytes] = []
    while limit > 0 and (part := environ["wsgi.input"].read(limit)):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def _asgi_header(given: dict[bytes, bytes], name: str) -> str | None:
    value = given.get(_NAMES[name])
    return None if value is None else value.decode("latin-1")


@functools.lru_cache(maxsize=64)
def _asgi_lines(headers: Headers, length: int) -> tuple[tuple[bytes, bytes], ...]:
    lines = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return *lines, (b"content-length", b"%d" % length)
