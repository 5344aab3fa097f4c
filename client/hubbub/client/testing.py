"""For the tests of apps: a clock that stands still, and a collector in memory.

clock = FrozenClock(datetime(2026, 11, 16, tzinfo=UTC))
with InMemoryCollector() as collector:
    client = Client(collector.url, registry=..., state=tmp_path / "state.db", enabled=True, clock=clock)
    client.record("homepage", "example.org")
    clock.advance(days=2)
    client.flush()
    assert [report.metric for report in collector.reports] == ["homepage"]
"""

from __future__ import annotations

import gzip
import threading
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

import msgspec

from hubbub.shared.errors import WireError
from hubbub.shared.wire import Report, decode_batch

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["FrozenClock", "InMemoryCollector"]


class FrozenClock:
    """A clock that moves only when it is told to."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def __call__(self) -> datetime:
        """Tell the time."""
        return self._moment

    def advance(self, *, days: float = 0, hours: float = 0, seconds: float = 0) -> None:
        """Move on, or back."""
        self._moment += timedelta(days=days, hours=hours, seconds=seconds)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that go away in the middle are what is being tested."""


class InMemoryCollector:
    """A collector on a free port of this machine that keeps what it is sent: each batch once, as a real one does."""

    def __init__(self, registry: str = "") -> None:
        self.registry = registry
        """The TOML that clients may fetch."""
        self.batches: dict[str, tuple[Report, ...]] = {}
        """The reports of each batch, by its id."""
        self.attempts: list[bytes] = []
        """Every body that arrived, uncompressed, retries included."""
        self.headers: list[dict[str, str]] = []
        """The header fields that came with each of them."""
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def reports(self) -> list[Report]:
        """All reports that were accepted."""
        return [report for reports in self.batches.values() for report in reports]

    def answer(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Take a batch and answer with status, headers and body; override it to answer in other ways."""
        try:
            batch = decode_batch(body)
        except WireError:
            return 422, {}, b"{}"
        told = {"accepted": len(batch.reports), "duplicate": batch.batch in self.batches, "rejected": []}
        self.batches[batch.batch] = batch.reports
        return 200, {"Content-Type": "application/json"}, msgspec.json.encode(told)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # headers and body in one packet: otherwise Nagle's algorithm delays the body by 40 ms

            def do_POST(self) -> None:
                """Take a batch."""
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) < length:
                    self.close_connection = True
                    return
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.attempts.append(body)
                collector.headers.append(dict(self.headers))
                status, headers, answer = collector.answer(body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def do_GET(self) -> None:
                """Give the registry away."""
                known = self.path == "/v1/registry" and bool(collector.registry)
                answer = collector.registry.encode() if known else b""
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", "application/toml")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
