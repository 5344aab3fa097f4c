"""Senders that are slow, silent, half gone or plainly wrong do not keep anybody else out."""

import contextlib
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Self

import pytest
import requests

from collector.oracle import Oracle
from collector.served import TOKEN, Served, serving
from hubbub.collector.front import BODY_SECONDS
from hubbub.collector.serving import HEADER_MILLISECONDS
from hubbub.shared.wire import MAX_BATCH_BYTES

HANG_SECONDS = 30
SLOW_BODIES = 300
SLOW_HEADS = 100
HALF_CLOSED = 50
GARBAGE = 100
NEVER_READING = 50
IDLE = 2_000
ENOUGH_FILES = 5_000

HEAD = b"POST /v1/batches HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
NOISE = (
    b"\0" * 100,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 500,  # the beginning of TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/batches HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"POST /v1/batches HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
    b"GET /" + b"a" * 600_000,
    b"\r\n" * 1_000,
)


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process have as many connections as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = hard == resource.RLIM_INFINITY
    if not unlimited and hard < ENOUGH_FILES:
        pytest.skip(f"only {hard} files may be open at once; {IDLE} idle connections need {ENOUGH_FILES}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, ENOUGH_FILES) if unlimited else hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Crowd:
    """Connections that are held open; those that drip send a byte a second."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._all: list[socket.socket] = []
        self._dripping: list[tuple[socket.socket, Iterator[int]]] = []
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._drip)
        self.rounds = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()
        for each in self._all:
            each.close()

    def connect(self, first: bytes = b"", receive_buffer: int | None = None) -> socket.socket:
        """Open a connection, and say something."""
        connection = socket.socket()
        self._all.append(connection)
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(HANG_SECONDS)
        connection.connect(("127.0.0.1", self._port))
        # In the middle of garbage the collector may hang up, and it does not take in what it cannot answer.
        with contextlib.suppress(OSError):
            connection.send(first)
        return connection

    def drip(self, first: bytes, rest: bytes) -> socket.socket:
        """Open a connection that says the rest one byte a second."""
        connection = self.connect(first)
        self._dripping.append((connection, iter(rest)))
        return connection

    def _drip(self) -> None:
        while not self._enough.wait(1):
            for connection, rest in list(self._dripping):
                byte = next(rest, None)
                try:
                    if byte is not None:
                        connection.sendall(bytes([byte]))
                except OSError:
                    continue  # the collector has had enough of this one
            self.rounds += 1


def upload(served: Served, oracle: Oracle, batches: int = 20) -> None:
    """Hand in batches, each of which has to be answered."""
    for _ in range(batches):
        body, slots = oracle.batch()
        assert served.post(body, timeout=HANG_SECONDS).json() == {"accepted": 3, "duplicate": False, "rejected": []}
        oracle.acknowledge(slots)


def exchange(port: int, said: bytes, *, end: bool = False) -> bytes:
    """Say something, and give all that is answered until the other side hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as connection:
        with contextlib.suppress(BrokenPipeError):  # it was answered before all was said
            connection.sendall(said)
        if end:
            connection.shutdown(socket.SHUT_WR)
        answered = b""
        while part := connection.recv(65_536):
            answered += part
    return answered


def statuses(answered: bytes) -> list[int]:
    """The status of each answer, one behind the other."""
    return [int(line.split(b" ", 1)[0]) for line in answered.split(b"HTTP/1.1 ")[1:]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A collector for all tests of this file: it has to live through them one after the other."""
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, f"sqlite:///{folder}/hubbub.db") as up:
        yield up


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    """Knows what all tests of this file have handed in."""
    return Oracle()


@pytest.fixture(autouse=True)
def exact(served: Served, oracle: Oracle) -> Iterator[None]:
    """Every test leaves all tallies exact, and the collector without a failure of its own."""
    yield
    oracle.verify(served.tallies(oracle))
    assert "Traceback" not in served.log.read_text()


def length(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n" % len(body)


def last(head: bytes = HEAD) -> bytes:
    """A head after whose answer the collector hangs up."""
    return head + b"Connection: close\r\n"


def chunked(body: bytes, size: int = 65_536) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def request_line(path: bytes) -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.usefixtures("many_files")
def test_uploads_go_through_a_crowd_of_hostile_connections(served: Served, oracle: Oracle) -> None:
    slow, _ = oracle.batch()  # never whole, so never counted
    unread, _ = oracle.batch()  # whole, so counted, but only once
    with Crowd(served.port) as crowd:
        for _ in range(SLOW_BODIES):
            crowd.drip(HEAD + length(slow) + b"\r\n", slow)
        for _ in range(SLOW_HEADS):
            crowd.drip(b"", HEAD)
        for _ in range(HALF_CLOSED):
            crowd.connect(HEAD + length(slow) + b"\r\n" + slow[:100]).shutdown(socket.SHUT_WR)
        for number in range(GARBAGE):
            crowd.connect(NOISE[number % len(NOISE)])
        for _ in range(NEVER_READING):
            crowd.connect((request_line(b"/openapi.json") + b"\r\n") * 500, receive_buffer=4096)
            crowd.connect((HEAD + length(unread) + b"\r\n" + unread) * 20, receive_buffer=4096)
        for _ in range(IDLE):
            crowd.connect()
        upload(served, oracle)
        while crowd.rounds < 3:  # so that all of them are in the middle of what they say
            upload(served, oracle, 5)
        assert served.get("/readyz").json() == {"ok": True}
    upload(served, oracle)
    assert served.post(unread).json()["accepted"] == 3
    assert served.post(slow).json()["duplicate"] is False


def hung_up_or_told(connection: socket.socket, seconds: float) -> bool:
    """Whether the collector is done with it soon after so long."""
    connection.settimeout(seconds + HANG_SECONDS)
    try:
        answered = connection.recv(65_536)
    except ConnectionResetError:  # it hung up on a byte that was on its way
        return True
    return not answered or statuses(answered) == [408]


@pytest.mark.slow
def test_those_who_take_too_long_are_told_so_or_hung_up_on(served: Served, oracle: Oracle) -> None:
    slow, _ = oracle.batch()
    with Crowd(served.port) as crowd:
        bodies = [crowd.drip(HEAD + length(slow) + b"\r\n", slow) for _ in range(SLOW_BODIES)]
        heads = [crowd.drip(b"", HEAD) for _ in range(SLOW_HEADS)]
        upload(served, oracle)
        for connection in bodies:
            assert hung_up_or_told(connection, BODY_SECONDS)
        for connection in heads:
            assert hung_up_or_told(connection, HEADER_MILLISECONDS / 1000)
        upload(served, oracle)
    assert served.post(slow).json()["duplicate"] is False


@pytest.mark.parametrize("size", [MAX_BATCH_BYTES + 1, 2_000_000, 20_000_000])
def test_a_body_that_is_too_long_is_refused_and_its_sender_hears_so(served: Served, size: int) -> None:
    body = b" " * size
    for _ in range(5):
        assert served.post(body).status_code == 413
        parts = (body[start : start + 65_536] for start in range(0, size, 65_536))
        answer = requests.post(
            f"{served.url}/v1/batches", data=parts, headers={"Content-Type": "application/json"}, timeout=HANG_SECONDS
        )
        assert answer.status_code == 413
        assert answer.json()["code"] == "too_large"
        assert statuses(exchange(served.port, last() + length(body) + b"\r\n" + body)) == [413]
        assert statuses(exchange(served.port, last() + CHUNKED + b"\r\n" + chunked(body))) == [413]


def test_whoever_asks_before_sending_is_told_to_go_on_or_not_to(served: Served, oracle: Oracle) -> None:
    body, slots = oracle.batch()
    asks = last() + b"Expect: 100-continue\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=HANG_SECONDS) as connection:
        connection.sendall(asks + length(body) + b"\r\n")
        assert statuses(connection.recv(65_536)) == [100]
        connection.sendall(body)
        assert statuses(connection.recv(65_536)) == [200]
    oracle.acknowledge(slots)
    assert statuses(exchange(served.port, asks + b"Content-Length: 2000000\r\n\r\n")) == [413]


def test_batches_one_behind_the_other_are_counted_once_each(served: Served, oracle: Oracle) -> None:
    batches = [oracle.batch() for _ in range(5)]
    said = b"".join((HEAD + length(body) + b"\r\n" + body) * 3 for body, _ in batches)
    answered = exchange(served.port, said + last(request_line(b"/livez")) + b"\r\n")
    assert statuses(answered) == [200] * 16
    assert (answered.count(b'"duplicate":false'), answered.count(b'"duplicate":true')) == (5, 10)
    for _, slots in batches:
        oracle.acknowledge(slots)


def test_a_batch_in_chunks_of_one_byte_is_counted(served: Served, oracle: Oracle) -> None:
    body, slots = oracle.batch()
    said = last() + CHUNKED + b"\r\n" + chunked(body, 1)
    assert statuses(exchange(served.port, said)) == [200]
    oracle.acknowledge(slots)


AMBIGUOUS: dict[str, Callable[[bytes], bytes]] = {
    "a length, and chunks": lambda body: length(body) + CHUNKED + b"\r\n" + chunked(body),
    "chunks, and a length": lambda body: CHUNKED + length(body) + b"\r\n" + chunked(body),
    "a length, and chunks that are none": lambda body: length(body) + CHUNKED + b"\r\n" + body,
    "the same length twice": lambda body: length(body) * 2 + b"\r\n" + body,
    "two lengths": lambda body: length(body) + b"Content-Length: 3\r\n\r\n" + body,
    "two lengths, the other way round": lambda body: b"Content-Length: 3\r\n" + length(body) + b"\r\n" + body,
    "lengths in a list": lambda body: b"Content-Length: %d, %d\r\n\r\n" % (len(body), len(body)) + body,
    "a length with a plus": lambda body: b"Content-Length: +%d\r\n\r\n" % len(body) + body,
    "a length below zero": lambda body: b"Content-Length: -%d\r\n\r\n" % len(body) + body,
    "a length in hexadecimal": lambda body: b"Content-Length: 0x%x\r\n\r\n" % len(body) + body,
    "a blank before the colon": lambda body: b"Content-Length : %d\r\n\r\n" % len(body) + body,
    "an unknown coding": lambda body: b"Transfer-Encoding: xchunked\r\n\r\n" + chunked(body),
    "chunks that are not the last coding": lambda body: b"Transfer-Encoding: chunked, x\r\n\r\n" + chunked(body),
    "chunks twice": lambda body: CHUNKED * 2 + b"\r\n" + chunked(body),
    "a head line that goes on": lambda body: b"Transfer-Encoding:\r\n chunked\r\n\r\n" + chunked(body),
    "line feeds alone": lambda body: CHUNKED.replace(b"\r", b"") + b"\n" + chunked(body).replace(b"\r", b""),
    "a chunk size that is too large for any number": lambda body: CHUNKED + b"\r\n" + b"f" * 40 + b"\r\n" + body,
    "a chunk size below zero": lambda body: CHUNKED + b"\r\n-1\r\n" + body,
    "something behind a chunk size": lambda body: CHUNKED + b"\r\n%x;a=b\r\n%s\r\n0\r\n\r\n" % (len(body), body),
}


@pytest.mark.parametrize("spelling", AMBIGUOUS)
def test_a_request_that_can_be_read_in_two_ways_is_counted_once_or_not_at_all(
    served: Served, oracle: Oracle, spelling: str
) -> None:
    body, slots = oracle.batch()
    answered = statuses(exchange(served.port, last() + AMBIGUOUS[spelling](body)))
    assert answered in ([200], [400])
    again = served.post(body).json()
    assert again == {"accepted": 3, "duplicate": answered == [200], "rejected": []}
    oracle.acknowledge(slots)


@pytest.mark.parametrize("keeps_length", [True, False])
def test_a_request_inside_another_one_is_not_served(served: Served, oracle: Oracle, keeps_length: bool) -> None:
    """Whoever goes by the length, where another goes by the chunks, takes the one inside for somebody else's."""
    hidden, _ = oracle.batch()
    inside = HEAD + length(hidden) + b"\r\n" + hidden
    if keeps_length:
        said = HEAD + length(b"0\r\n\r\n" + inside) + CHUNKED + b"\r\n0\r\n\r\n" + inside
    else:
        said = HEAD + b"Content-Length: 4\r\n" + CHUNKED + b"\r\n" + chunked(inside)
    assert statuses(exchange(served.port, said)) == [400]
    assert served.post(hidden).json() == {"accepted": 3, "duplicate": False, "rejected": []}


def test_half_a_body_before_a_half_closed_connection_is_refused(served: Served, oracle: Oracle) -> None:
    body, slots = oracle.batch()
    for announced in (length(body) + b"\r\n", CHUNKED + b"\r\n%x\r\n" % len(body)):
        answered = exchange(served.port, HEAD + announced + body[:-10], end=True)
        assert statuses(answered) in ([], [400]), answered
    upload(served, oracle, 1)
    assert served.post(body).json()["duplicate"] is False
    oracle.acknowledge(slots)


def test_a_query_that_is_not_ascii_is_refused_over_the_wire(served: Served) -> None:
    for query in (b"x=\xc3\xa9", b"\xff\xfe"):
        said = last(request_line(b"/livez?" + query)) + b"\r\n"
        assert statuses(exchange(served.port, said)) == [400]


def test_candidates_arrive_whole_or_not_at_all_over_the_wire(served: Served) -> None:
    path = "/v1/metrics/oracle/candidates"
    head = f"PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    long = b"".join(b"candidate-%d\n" % number for number in range(50_000))
    assert statuses(exchange(served.port, last(head) + length(long) + b"\r\n" + long)) == [200]
    assert statuses(exchange(served.port, last(head) + length(long) + b"\r\n" + long[:-11], end=True)) in ([], [400])
    assert statuses(exchange(served.port, last(head) + CHUNKED + b"\r\n2\r\na\n\r\n", end=True)) in ([], [400])
    assert served.get(path).content == long
    assert statuses(exchange(served.port, last(head) + CHUNKED + b"\r\n" + chunked(b"a\nb\n", 1))) == [200]
    assert served.get(path).content == b"a\nb\n"
