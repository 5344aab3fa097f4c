"""Stopping: what was taken is committed, whatever is still connected; and no process stays behind."""

import contextlib
import errno
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from collector.oracle import Oracle
from collector.senders import HANG_SECONDS, sending
from collector.served import Served, serving

pytestmark = pytest.mark.unmeasured

STOP_SECONDS = 10

HEAD = b"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HALF_A_HEAD = HEAD
HALF_A_BODY = HEAD + b"Content-Length: 1000\r\n\r\n{"


@contextlib.contextmanager
def lingering(served: Served, *begun: bytes) -> Iterator[None]:
    """Connections that were used and are kept, that were never used, and that are in the middle of a request."""
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(requests.Session())
        with session.get(f"{served.url}/livez", timeout=HANG_SECONDS) as answer:
            assert answer.status_code == 200
        for each in (b"", *begun):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            connection.sendall(each)
        # A request that was sent later is answered: so the others have arrived.
        assert served.get("/livez").status_code == 200
        yield


def wait_until_refused(served: Served) -> None:
    """Knock until nobody opens. Whoever knocks as the door is being closed is thrown out, and has to knock again."""
    deadline = time.monotonic() + HANG_SECONDS
    while knock(served) != errno.ECONNREFUSED:
        assert time.monotonic() < deadline


def knock(served: Served) -> int:
    """The error with which it answers, 0 if it opens."""
    with socket.socket() as connection:
        # Without a farewell: thousands of connections that are timing out would leave no port for the next.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return connection.connect_ex(("127.0.0.1", served.port))


def assert_port_is_free(served: Served) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of before may still be timing out
        taken.bind(("127.0.0.1", served.port))
        taken.listen()


def test_a_stop_under_load_loses_nothing_and_ends_well(tmp_path: Path, address: str) -> None:
    with serving(tmp_path, address) as served, sending(Oracle(), served.url) as senders:
        senders.wait_for(acknowledged=100)
        assert served.stop(STOP_SECONDS) == 0
        assert_port_is_free(served)
        senders.wait_for(cut=1)
        served.start()
        senders.wait_for(acknowledged=100)
        senders.finish_and_verify(served)
        assert senders.duplicates == 0, "what is committed at a stop is also answered"


def test_a_stop_does_not_wait_for_idle_connections(tmp_path: Path) -> None:
    with serving(tmp_path, f"sqlite:///{tmp_path}/hubbub.db") as served, lingering(served):
        assert served.stop(STOP_SECONDS) == 0
        assert_port_is_free(served)
        assert "refused to gracefully stop" not in served.log.read_text()


@pytest.mark.slow
def test_a_stop_does_not_wait_for_long_for_half_a_request(tmp_path: Path) -> None:
    oracle = Oracle()
    with serving(tmp_path, f"sqlite:///{tmp_path}/hubbub.db") as served:
        body, slots = oracle.batch()
        assert served.post(body).status_code == 200
        oracle.acknowledge(slots)
        with lingering(served, HALF_A_HEAD, HALF_A_BODY):
            served.process.send_signal(signal.SIGTERM)
            wait_until_refused(served)
            assert served.process.poll() is None, "it was to be held up"
            assert served.process.wait(STOP_SECONDS) == 0
            served.wait_until_gone()
        assert_port_is_free(served)
        served.start()
        assert served.post(body).json()["duplicate"] is True
        oracle.verify(served.tallies(oracle))


def test_processes_end_by_themselves_if_the_one_that_started_them_is_killed(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/hubbub.db"
    with serving(tmp_path, store, workers=2) as served, sending(Oracle(), served.url) as senders:
        senders.wait_for(acknowledged=100)
        served.process.send_signal(signal.SIGKILL)
        served.process.wait()
        served.wait_until_gone()
        assert_port_is_free(served)
        served.start()
        senders.wait_for(acknowledged=100)
        senders.finish_and_verify(served)


@pytest.mark.slow
def test_they_end_also_if_there_is_half_a_request(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/hubbub.db"
    with serving(tmp_path, store, workers=2) as served, lingering(served, HALF_A_HEAD, HALF_A_BODY):
        served.process.send_signal(signal.SIGKILL)
        served.process.wait()
        served.wait_until_gone()
        assert_port_is_free(served)


@pytest.mark.slow
def test_they_end_also_if_they_have_just_begun(tmp_path: Path) -> None:
    served = Served(tmp_path, f"sqlite:///{tmp_path}/hubbub.db")
    try:
        served.start(wait=False)
        served.wait_for_log("Spawning worker-1")
        served.process.send_signal(signal.SIGKILL)
        served.process.wait()
        served.wait_until_gone()
        assert_port_is_free(served)
    finally:
        served.kill()


def test_a_second_collector_does_not_share_the_port_of_the_first(tmp_path: Path) -> None:
    """The server would let it, and every other batch would go to the wrong store."""
    with serving(tmp_path, f"sqlite:///{tmp_path}/hubbub.db") as first:
        second = Served(tmp_path, f"sqlite:///{tmp_path}/other.db", port=first.port)
        second.start(wait=False)
        assert second.process.wait(HANG_SECONDS) == 1
        place = f"127.0.0.1 port {first.port}"
        told = f"Error: --port: {place} cannot be used: Address already in use; allowed: a free one\n"
        assert second.log.read_text() == told
        assert first.get("/readyz").status_code == 200
