"""The office: the process that makes the pages of `hubbub serve`, so that the one that serves is left to its batches.

Flask takes a millisecond and more for a page, and all batches would wait for that. So the process that serves only
hands the requests on (`relay`). The office has low priority, its own connections to the store, and does the jobs of the
workshop itself. It ends when its input does, however the one that serves has ended.

Its input is a socket, over which it is given a connection for each request, and a byte that says how busy the process
is that serves: the more, the longer the office rests after each job (`pace`). What goes over such a connection: the
request without its body, the parts of the body, and an empty message as its end; back comes the answer.
"""

from __future__ import annotations

import io
import logging
import logging.config
import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any

import msgspec

from hubbub.collector.decode.process import NICENESS
from hubbub.collector.messages import SIZE, framed, read_message

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import WSGIApplication

    from hubbub.collector.pace import Pace

_PROGRAM = f"""
import os
os.nice({NICENESS})
from hubbub.collector.office import main
main()
"""
COMMAND = (sys.executable, "-P", "-c", _PROGRAM)
READY = b"!"
ALL_BUSY = 100
"""With each connection comes how busy the process that serves is: a byte, and this is all of a core."""

SWITCH_SECONDS = 0.001
"""Pages do not wait for drawing for longer than that at a time."""


logger = logging.getLogger("hubbub.collector")


class Opening(msgspec.Struct, frozen=True):
    """What the office has to know."""

    registry: str
    """Its text."""
    store: str
    """Its address."""
    admin_token: str | None
    threads: int
    logging: dict[str, Any]
    """How to log, as `logging.config.dictConfig` reads it."""


class Request(msgspec.Struct, frozen=True):
    """A request without its body: what an ASGI server says of it."""

    method: str
    path: str
    query_string: bytes
    headers: list[tuple[bytes, bytes]]
    http_version: str
    scheme: str
    server: tuple[str, int | str | None] | None
    client: tuple[str, int | str] | None


class Answer(msgspec.Struct, frozen=True):
    """An answer, as an ASGI server wants it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def main() -> None:
    """Be the process: answer until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # of a terminal or a service manager: for the one that serves
        signal.signal(number, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_SECONDS)
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as hatch:
        opening = msgspec.msgpack.decode(_receive(hatch, int.from_bytes(_receive(hatch, SIZE))), type=Opening)
        logging.config.dictConfig(opening.logging)
        application, paces = _application(opening)
        threads = ThreadPoolExecutor(opening.threads, "hubbub-page")
        hatch.sendall(READY)
        while True:
            given = next_given(hatch, paces)
            if given is None:
                os._exit(0)  # nobody waits for what is still being made
            for connection in given:
                threads.submit(answer, application, connection)


def next_given(hatch: socket.socket, paces: Iterable[Pace]) -> list[socket.socket] | None:
    """Wait for the next connection, and learn how busy the process is that serves; None: it has ended.

    Where this process has too many files open already, the connection is lost on the way, and its other end sees that.
    """
    message, given, _, _ = socket.recv_fds(hatch, 1, 1)
    if not message:
        return None
    for pace in paces:
        pace.busy = message[0] / ALL_BUSY
    return [socket.socket(fileno=each) for each in given]


def answer(application: WSGIApplication, connection: socket.socket) -> None:
    """Answer the request that comes over a connection."""
    from a2wsgi.wsgi import build_environ  # noqa: PLC0415  (not for the one that serves, which imports this module too)
    from werkzeug.test import run_wsgi_app  # noqa: PLC0415

    with connection, connection.makefile("rb") as reader:
        try:
            request = msgspec.msgpack.decode(read_message(reader), type=Request)
            body: Any = io.BufferedReader(_Body(reader))
            scope: Any = msgspec.structs.asdict(request)
            environ: dict[str, Any] = dict(build_environ(scope, body))
            environ |= {"wsgi.input_terminated": True, "wsgi.errors": sys.stderr}
            parts, status, headers = run_wsgi_app(application, environ, buffered=True)
            lines = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
            made = Answer(int(status.split()[0]), lines, b"".join(parts))
            connection.sendall(framed(msgspec.msgpack.encode(made)))
            while reader.read1(1 << 16):  # whoever closes with something unread takes the answer back
                pass
        except (OSError, EOFError):
            pass  # nobody waits for the answer any more
        except Exception:
            logger.exception("a page could not be made")


class _Body(io.RawIOBase):
    """The body of a request, as its parts arrive."""

    def __init__(self, reader: IO[bytes]) -> None:
        self._reader = reader
        self._part = memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._part and not self._ended:
            try:
                self._part = memoryview(read_message(self._reader))
            except EOFError:
                raise ConnectionResetError("the sender has gone before the end") from None
            self._ended = not self._part
        wanted = memoryview(buffer)
        size = min(len(wanted), len(self._part))
        wanted[:size] = self._part[:size]
        self._part = self._part[size:]
        return size


def _application(opening: Opening) -> tuple[WSGIApplication, list[Pace]]:
    """Make the application, and give what tells those that work for it how fast they may."""
    from hubbub.collector.app import make_flask  # noqa: PLC0415  (not for the one that serves)
    from hubbub.collector.collector import Collector  # noqa: PLC0415
    from hubbub.collector.dashboard import Desk  # noqa: PLC0415
    from hubbub.collector.dashboard.workshop import OwnWorkshop  # noqa: PLC0415
    from hubbub.collector.store import Store  # noqa: PLC0415
    from hubbub.shared.registry import Registry  # noqa: PLC0415

    registry = Registry.parse(opening.registry)
    collector = Collector(registry, Store(opening.store), admin_token=opening.admin_token)  # it is never started
    workshop = OwnWorkshop()
    return make_flask(collector, Desk(collector, workshop)).wsgi_app, [workshop.pace, collector.decoder.pace]


def _receive(hatch: socket.socket, size: int) -> bytes:
    """Receive so many bytes, and not one of the next message: connections come with it."""
    received = bytearray()
    while len(received) < size:
        part = hatch.recv(size - len(received))
        if not part:
            os._exit(0)
        received += part
    return bytes(received)
