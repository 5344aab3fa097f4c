"""Sending: what each answer of a collector does, and that a retry is the same bytes."""

import gzip
import json
import socket
import ssl
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme

from client.clients import MONDAY, balanced, with_reports
from client.scripted import Answer, Scripted
from hubbub.client import Client, StateError, Stats
from hubbub.client.sender import Sender
from hubbub.client.testing import FrozenClock, InMemoryCollector
from hubbub.shared import Registry
from hubbub.shared.wire import decode_batch
from shared.registries import example


def answered(**changes: object) -> Answer:
    told = {"accepted": 3, "duplicate": False, "rejected": []} | changes
    return 200, {"Content-Type": "application/json"}, json.dumps(told).encode()


def test_200_delivers(client: Client, collector: Scripted) -> None:
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=3)
    assert len(collector.reports) == 3
    assert client.flush()
    assert len(collector.attempts) == 1


def test_a_partial_200_counts_what_was_rejected_and_why(client: Client, collector: Scripted) -> None:
    collector.script = [answered(accepted=1, rejected=[{"index": 0, "reason": "a"}, {"index": 2, "reason": "b"}])]
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=1, lost={"rejected_a": 1, "rejected_b": 1})


def test_a_collector_does_not_name_the_counters(client: Client, collector: Scripted) -> None:
    """Reasons that are no words, reports that were not sent, and the same report twice."""
    indices = [0, 0, 7, -1, 1]
    reasons = ["../../etc", "x" * 5000, "a", "a", "<b>"]
    rejected = [{"index": index, "reason": reason} for index, reason in zip(indices, reasons, strict=True)]
    collector.script = [answered(rejected=rejected)]
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=1, lost={"rejected_other": 2})


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 415, 422])
def test_other_4xx_drop_with_a_reason(client: Client, collector: Scripted, status: int) -> None:
    collector.script = [(status, {}, b"")]
    client.flush()
    assert balanced(client) == Stats(recorded=3, lost={f"http_{status}": 3})
    assert client.flush()
    assert len(collector.attempts) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_with_the_same_bytes(client: Client, collector: Scripted, status: int) -> None:
    collector.script = [(status, {"Location": "/elsewhere"}, b""), (status, {}, b"")]
    assert not client.flush()
    assert balanced(client) == Stats(recorded=3, pending=3)
    assert not client.flush()
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=3)
    assert len(collector.attempts) == 3
    assert len(set(collector.attempts)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"Content-Type": "text/html"}, b"<html>Please log in to the hotel</html>"),
        (200, {}, b""),
        (200, {}, b'{"accepted": 3}'),
        (200, {}, b"[" * 100_000),
        (200, {}, b"\xff\xfe"),
        (200, {}, b" " * 10_000_000),
        (204, {}, b""),
    ],
    ids=["hotel", "empty", "incomplete", "nested", "not text", "10 MB", "204"],
)
def test_a_200_that_does_not_speak_like_a_collector_is_not_believed(
    client: Client, collector: Scripted, answer: Answer
) -> None:
    collector.script = [answer]
    assert not client.flush()
    assert balanced(client) == Stats(recorded=3, pending=3)
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=3)


def test_a_lost_answer_is_counted_once(client: Client, collector: Scripted) -> None:
    """The collector took the batch, but its answer never came: the retry has the same id."""

    def take_and_fail(body: bytes) -> Answer:
        InMemoryCollector.answer(collector, body)
        return 500, {}, b""

    collector.script = [take_and_fail]
    assert not client.flush()
    assert client.flush()
    assert len(collector.batches) == 1
    assert len(collector.reports) == 3
    assert balanced(client) == Stats(recorded=3, sent=3)


@pytest.mark.parametrize("header", ["3600", "Wed, 18 Nov 2026 10:30:00 GMT"])
def test_retry_after_is_honoured(
    client: Client, clock: FrozenClock, collector: Scripted, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.client.upload.datetime", FixedNow)
    collector.script = [(429, {"Retry-After": header}, b"")]
    assert not client.flush()
    clock.advance(hours=0.9)
    client.flush()
    assert len(collector.attempts) == 1
    clock.advance(hours=0.2)
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=3)


class FixedNow(datetime):
    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # noqa: ARG003
        return datetime(2026, 11, 18, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize("header", ["soon", "-5", "1e9", "", "Wed, 99 Nov 2026"])
def test_a_retry_after_that_means_nothing_is_ignored(client: Client, collector: Scripted, header: str) -> None:
    collector.script = [(429, {"Retry-After": header}, b"")]
    assert not client.flush()
    assert client.flush()


def test_429_never_drops(client: Client, collector: Scripted) -> None:
    collector.script = [(429, {}, b"")] * 50
    for _ in range(50):
        client.flush()
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=3)


def test_413_splits_until_it_fits(client: Client, collector: Scripted) -> None:
    def only_single_reports(body: bytes) -> Answer:
        if len(decode_batch(body).reports) > 1:
            return 413, {}, b""
        return InMemoryCollector.answer(collector, body)

    collector.script = [only_single_reports] * 10
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=3)
    assert sorted(report.metric for report in collector.reports) == ["crashed", "homepage", "startup_ms"]
    assert len(collector.batches) == 3


def test_413_for_a_single_report_gives_it_up(client: Client, collector: Scripted) -> None:
    collector.script = [(413, {}, b"")] * 10
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, lost={"too_large": 3})


def test_large_batches_are_compressed_and_retried_as_they_were(
    tmp_path: Path, clock: FrozenClock, collector: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """250 metrics: three batches of at most a hundred reports, of a tenth of their size on the wire."""
    metric = 'description = "x"\nkind = "flag"\nevery = "day"\nprivacy = { report = 1, lifetime = 2 }\n'
    registry = Registry.parse("".join(f"[metrics.flag_{number}]\n{metric}" for number in range(250)))
    client = Client(collector.url, registry=registry, state=tmp_path / "s.db", enabled=True, clock=clock)
    for name in registry:
        client.record(name, True)
    clock.advance(days=2)
    sent: list[bytes] = []
    real = requests.Session.post

    def noted(session: requests.Session, url: str, data: bytes, **rest: Any) -> requests.Response:
        sent.append(data)
        return real(session, url, data=data, **rest)

    monkeypatch.setattr(requests.Session, "post", noted)
    collector.script = [(503, {}, b"")]
    assert not client.flush()
    assert client.flush()
    assert balanced(client) == Stats(recorded=250, sent=250)
    assert sorted(len(reports) for reports in collector.batches.values()) == [50, 100, 100]
    assert sent[0] == sent[1]
    assert gzip.decompress(sent[0]) == collector.attempts[0]
    assert 5 * len(sent[0]) < len(collector.attempts[0])


def test_the_thread_goes_on_after_a_fault_of_ours(
    tmp_path: Path, clock: FrozenClock, collector: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One failure of the state, one of another sort, then success: all by itself."""
    done = threading.Event()
    outcomes = [StateError("a full disk"), RuntimeError("sesame")]
    monkeypatch.setattr("hubbub.client.sender.LONGEST_SLEEP_SECONDS", 0.01)

    def work(self: Sender, stop: threading.Event) -> float:
        if outcomes:
            raise outcomes.pop(0)
        done.set()
        return 60.0

    monkeypatch.setattr(Sender, "_work", work)
    client = Client(collector.url, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock)
    client.record("crashed", True)
    assert done.wait(20)
    client.close(timeout=20)


def test_flush_does_not_wait_longer_than_told_for_the_thread(client: Client) -> None:
    assert client._sender is not None
    with client._sender._busy:
        assert not client.flush(timeout=0.01)
    assert client.flush()


class Misbehaving:
    """A server that does something to a connection that no HTTP server should."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._held: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if self._what == "silent":
                self._held.append(connection)
                continue
            connection.recv(65536)
            if self._what == "truncated":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            elif self._what == "nonsense":
                connection.sendall(b"what?\r\n\r\n")
            elif self._what == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            connection.close()

    def close(self) -> None:
        self._socket.close()
        for connection in self._held:
            connection.close()


@pytest.mark.parametrize("what", ["truncated", "nonsense", "reset", "silent"])
def test_connections_that_fail_are_tried_again(
    tmp_path: Path, clock: FrozenClock, what: str, collector: Scripted
) -> None:
    server = Misbehaving(what)
    try:
        client = with_reports(server.url, tmp_path, clock)
        assert not client.flush(timeout=0.3)
        assert balanced(client) == Stats(recorded=3, pending=3)
    finally:
        server.close()
    clock.advance(days=1)
    options = {"registry": example(), "state": tmp_path / "s.db", "enabled": True, "clock": clock}
    again = Client(collector.url, previous_collectors=[server.url], **options)  # type: ignore[arg-type]
    assert again.flush()
    assert balanced(again) == Stats(recorded=3, sent=3)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "https://127.0.0.1:1", "http://name.invalid", "nonsense://x", "http://["]
)
def test_collectors_that_cannot_be_reached(tmp_path: Path, clock: FrozenClock, url: str) -> None:
    client = with_reports(url, tmp_path, clock)
    assert not client.flush(timeout=0.5)
    assert balanced(client) == Stats(recorded=3, pending=3)


def test_what_is_no_tls_is_refused(tmp_path: Path, clock: FrozenClock) -> None:
    server = Misbehaving("nonsense")
    try:
        client = with_reports(server.url.replace("http:", "https:"), tmp_path, clock)
        assert not client.flush(timeout=0.5)
        assert balanced(client).pending == 3
    finally:
        server.close()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_certificate_is_trusted_only_if_its_authority_is(
    tmp_path: Path, clock: FrozenClock, collector: Scripted, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the app says of certificates also wins over the environment's bundle, which requests alone would prefer."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    if elsewhere:
        trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "other.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    collector._server.socket = context.wrap_socket(collector._server.socket, server_side=True)
    url = collector.url.replace("http:", "https:")
    stranger = with_reports(url, tmp_path, clock)
    assert not stranger.flush()
    assert balanced(stranger) == Stats(recorded=3, pending=3)
    friend = Client(
        url, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock, verify=str(tmp_path / "ca.pem")
    )
    assert friend.flush()
    assert balanced(friend) == Stats(recorded=3, sent=3)


def test_a_proxy_is_used_as_told(tmp_path: Path, clock: FrozenClock, collector: Scripted) -> None:
    """The collector plays the proxy: a request for another host reaches it all the same."""
    client = with_reports("http://telemetry.invalid", tmp_path, clock, proxies={"http": collector.url})
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=3)


def test_the_background_thread_sends_without_being_asked(tmp_path: Path, collector: Scripted) -> None:
    """With a real clock, a report of the day before yesterday goes as soon as the client is used."""
    arrived = threading.Event()

    def notice(body: bytes) -> Answer:
        arrived.set()
        return InMemoryCollector.answer(collector, body)

    collector.script = [notice]
    clock = FrozenClock(MONDAY)
    Client(None, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock).record("crashed", True)
    clock.advance(days=2)
    client = Client(collector.url, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock)
    client.record("theme", "dark")
    assert arrived.wait(20)
    client.close(timeout=20)
    assert balanced(client) == Stats(recorded=2, sent=1, pending=1)


def test_the_ingest_key_is_sent_and_no_password_of_the_user_is(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A .netrc that names the collector's host would tell the collector who the user is."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password something\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for key in (None, "a-key-for-the-collector"):
        folder = tmp_path / str(key)
        folder.mkdir()
        with_reports(collector.url, folder, clock, ingest_key=key).flush()
    without, given = collector.headers
    assert "Authorization" not in without
    assert given["Authorization"] == "Bearer a-key-for-the-collector"
