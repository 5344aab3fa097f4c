"""Handing requests for pages on to the office, in the process that serves."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import socket
import subprocess
from typing import TYPE_CHECKING

import msgspec

from hubbub.collector.dashboard.background import PAGE_SECONDS
from hubbub.collector.front import BODY_SECONDS, SECURITY_HEADERS, send_answer
from hubbub.collector.messages import SIZE, framed
from hubbub.collector.meter import Meter
from hubbub.collector.monitoring import SHARED_FOLDER
from hubbub.collector.office import ALL_BUSY, COMMAND, READY, Answer, Request
from hubbub.collector.refusal import PROBLEM, Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hubbub.collector.front import Receive, Scope, Send
    from hubbub.collector.office import Opening

TRIES = 2
"""A page whose office was killed by somebody else is asked for once more."""

END_SECONDS = 5.0
SEEN_SECONDS = 1.0
READ_BYTES = 1 << 18
IS_POSSIBLE = hasattr(socket, "send_fds")
"""Not on Windows, where the one that serves makes the pages too."""

_PAGES = frozenset({"/", "/login", "/logout"})
_BELOW = ("/metric/", "/static/")
_WITHOUT_BODY = frozenset({"GET", "HEAD"})
logger = logging.getLogger("hubbub.collector")


def is_page(path: str) -> bool:
    """Whether an address is one of the dashboard."""
    return path in _PAGES or path.startswith(_BELOW)


class Office:
    """The process that makes pages: started when somebody looks for the first time, and again when it has ended."""

    def __init__(self, opening: Opening) -> None:
        self._opening = msgspec.msgpack.encode(opening)
        self._process: subprocess.Popen[bytes] | None = None
        self._hatch: socket.socket | None = None
        self._started: asyncio.Task[bool] | None = None
        self._ended = asyncio.Event()
        self._meter = Meter()
        atexit.register(self.close)

    async def is_open(self) -> bool:
        """Have it started, wait a moment, and tell whether it is there."""
        if self._started is None or (self._started.done() and self._ended.is_set()):
            self._ended.clear()
            self._started = asyncio.get_running_loop().create_task(self._start())
        try:
            return await asyncio.wait_for(asyncio.shield(self._started), PAGE_SECONDS)
        except TimeoutError:
            return False

    def connect(self) -> socket.socket:
        """Give one end of a connection, and the other one to the office."""
        if self._hatch is None:
            raise BrokenPipeError
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._hatch, [bytes([round(self._meter.busy() * ALL_BUSY)])], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        return ours

    async def has_ended(self) -> bool:
        """Tell whether it is gone, when it has left a request without an answer: a moment later that is seen."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), SEEN_SECONDS)
        return self._ended.is_set()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if self._hatch is not None:
            with contextlib.suppress(OSError):  # the other end has gone already
                self._hatch.shutdown(socket.SHUT_RDWR)
        if process is not None:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    async def _start(self) -> bool:
        loop = asyncio.get_running_loop()
        hatch = self._hatch = await loop.run_in_executor(None, self._begin)
        with contextlib.suppress(OSError):
            await loop.sock_sendall(hatch, framed(self._opening))
            if await loop.sock_recv(hatch, len(READY)) == READY:
                loop.add_reader(hatch, self._end, hatch)  # it has nothing more to say
                return True
        logger.warning("the process that makes pages ended before the first of them; it is started again when needed")
        self._end(hatch)
        return False

    def _end(self, hatch: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(hatch)
        hatch.close()
        self._hatch = None
        self._ended.set()

    def _begin(self) -> socket.socket:
        self.close()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        environment = {key: value for key, value in os.environ.items() if key != SHARED_FOLDER}
        with theirs:
            self._process = subprocess.Popen(COMMAND, stdin=theirs.fileno(), env=environment)  # noqa: S603  (it is our own)
        return ours


class Relay:
    """An ASGI application that has the office answer for pages, and hands every other request on.

    What the office cannot answer yet is handed on as well: that page says to wait.
    """

    def __init__(self, office: Office, inner: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._office = office
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if not is_page(scope["path"]):
            await self._inner(scope, receive, send)
            return
        for _ in range(TRIES if scope["method"] in _WITHOUT_BODY else 1):
            if not await self._office.is_open():
                await self._inner(scope, receive, send)
                return
            try:
                answer = await self._exchange(scope, receive)
            except (OSError, EOFError):
                if await self._office.has_ended():
                    continue
                break
            except Refused as refused:
                await _refuse(send, refused)
                return
            with contextlib.suppress(OSError):  # nobody is there to read it
                await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
                await send({"type": "http.response.body", "body": answer.body})
            return
        await _refuse(send, Refused("decoding_failed", "the process that makes pages has ended; try again later"))

    async def _exchange(self, scope: Scope, receive: Receive) -> Answer:
        request = {name: scope.get(name) for name in Request.__struct_fields__}
        with self._office.connect() as connection:
            if scope["method"] in _WITHOUT_BODY:
                await _send(connection, msgspec.msgpack.encode(request), b"")
                return await _receive(connection)
            await _send(connection, msgspec.msgpack.encode(request))
            sending = asyncio.get_running_loop().create_task(_hand_over(receive, connection))
            try:
                return await _receive(connection)  # that may be before all of the body has been sent
            except (OSError, EOFError):
                if sending.done():
                    sending.result()  # where it failed, that is the reason
                raise
            finally:
                sending.cancel()
                await asyncio.wait({sending})


async def _hand_over(receive: Receive, connection: socket.socket) -> None:
    """Send a body to the office, and its end; without that the office knows that it is not whole."""
    try:
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            if part := message.get("body"):
                await _send(connection, part)
        await _send(connection, b"")
    except TimeoutError:
        told = f"form: took too long to arrive; allowed: {BODY_SECONDS:g} s for each part"
        raise Refused("body_too_slow", told) from None
    finally:
        if more:
            with contextlib.suppress(OSError):  # the office has gone
                connection.shutdown(socket.SHUT_RDWR)


async def _send(connection: socket.socket, *messages: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(connection, b"".join(map(framed, messages)))


async def _receive(connection: socket.socket) -> Answer:
    loop = asyncio.get_running_loop()
    received = bytearray()
    wanted = SIZE
    while len(received) < wanted:
        part = await loop.sock_recv(connection, READ_BYTES)
        if not part:
            raise EOFError
        received += part
        if len(received) >= SIZE:
            wanted = SIZE + int.from_bytes(received[:SIZE])
    return msgspec.msgpack.decode(memoryview(received)[SIZE:], type=Answer)


async def _refuse(send: Send, refused: Refused) -> None:
    headers = (*SECURITY_HEADERS, *refused.headers, ("Content-Type", PROBLEM))
    await send_answer(send, refused.status, headers, refused.body())
