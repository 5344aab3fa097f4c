"""Senders that do what an app does: send the very same bytes again and again, until they are acknowledged."""

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from urllib.parse import urlsplit

from collector.oracle import Oracle
from collector.served import Served
from hubbub.shared.wire import JSON, MSGPACK, MediaType

SENDERS = 16
REPORTS = 3
PAUSE_SECONDS = 0.1
"""How long a sender waits after an attempt that failed; apps wait much longer."""

ANSWER_SECONDS = 30
HANG_SECONDS = 60
"""After these, something hangs."""


class Senders:
    """Threads that hand in one batch after the other; each batch goes to another collector when it is sent again."""

    def __init__(self, oracle: Oracle, urls: Sequence[str], *, senders: int = SENDERS, again_every: int = 0) -> None:
        self.acknowledged = 0
        """Batches that were answered with 200."""
        self.refused = 0
        """Answers with 503."""
        self.cut = 0
        """Requests without an answer."""
        self.duplicates = 0
        """Batches of which the first 200 said that they had been counted before: an answer got lost."""
        self.repeated = 0
        """Batches that were sent once more on purpose."""
        self._oracle = oracle
        self._places = [urlsplit(url).netloc for url in urls]
        self._again_every = again_every
        self._changed = threading.Condition()
        self._faults: list[BaseException] = []
        self._finishing = threading.Event()
        self._abandoned = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(senders)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait_for(self, acknowledged: int = 0, refused: int = 0, cut: int = 0) -> None:
        """Wait until so much more has happened."""
        self.check()
        with self._changed:
            goal = (self.acknowledged + acknowledged, self.refused + refused, self.cut + cut)
            self._changed.wait_for(lambda: self._faults or self._reached(goal), HANG_SECONDS)
            self.check()
            assert self._reached(goal), f"waited for {goal}: {self}"

    def finish(self) -> None:
        """Begin no more batches, and wait until all that were begun are acknowledged."""
        self._finishing.set()
        for thread in self._threads:
            thread.join(HANG_SECONDS)
        self.check()
        assert not any(thread.is_alive() for thread in self._threads), f"not all is acknowledged: {self}"

    def finish_and_verify(self, served: Served) -> None:
        """Finish; then all that was ever sent has been acknowledged, and is there, once."""
        self.finish()
        tallies = served.tallies(self._oracle)
        self._oracle.verify(tallies)
        assert sum(int(tally.n.sum()) for tally in tallies.values()) == self.acknowledged * REPORTS

    def abandon(self) -> None:
        """End, acknowledged or not."""
        self._abandoned.set()
        self._finishing.set()
        for thread in self._threads:
            thread.join(HANG_SECONDS)

    def check(self) -> None:
        """Raise what a sender has found wrong."""
        if self._faults:
            raise self._faults[0]

    def __repr__(self) -> str:
        words = ("acknowledged", "refused", "cut", "duplicates", "repeated")
        return ", ".join(f"{getattr(self, word)} {word}" for word in words)

    def _reached(self, goal: tuple[int, int, int]) -> bool:
        return self.acknowledged >= goal[0] and self.refused >= goal[1] and self.cut >= goal[2]

    def _run(self, number: int) -> None:
        # Half of them in each of the two spellings.
        sender = _Sender(self._places, number, JSON if number % 2 else MSGPACK)
        try:
            for batch in count(1):
                if self._finishing.is_set() or not self._send(sender, repeat=self._is_repeated(batch)):
                    break
        except BaseException as fault:  # noqa: BLE001  (the test raises it)
            with self._changed:
                self._faults.append(fault)
                self._changed.notify_all()
        finally:
            sender.close()

    def _is_repeated(self, batch: int) -> bool:
        return bool(self._again_every) and batch % self._again_every == 0

    def _send(self, sender: "_Sender", *, repeat: bool) -> bool:
        """Send a batch until it is acknowledged; False if it was abandoned before."""
        body, slots = self._oracle.batch(REPORTS, sender.media_type)
        attempts, duplicate = self._until_acknowledged(sender, body)
        if duplicate is None:
            return False
        assert attempts > 1 or not duplicate, "a batch that was sent for the first time is called a duplicate"
        self._oracle.acknowledge(slots)
        with self._changed:
            self.acknowledged += 1
            self.duplicates += duplicate
            self._changed.notify_all()
        if repeat:
            sender.turn()
            _, duplicate = self._until_acknowledged(sender, body)
            assert duplicate is not False, "an acknowledged batch that was sent again was counted again"
            with self._changed:
                self.repeated += bool(duplicate)
        return True

    def _until_acknowledged(self, sender: "_Sender", body: bytes) -> tuple[int, bool | None]:
        for attempt in count(1):
            duplicate = None
            try:
                duplicate = sender.post(body)
            except TimeoutError:
                raise  # a request that hangs is not one that was cut off
            except (OSError, http.client.HTTPException):
                self._note(cut=1)
            else:
                if duplicate is not None:
                    return attempt, duplicate
                self._note(refused=1)
            sender.turn()
            if self._abandoned.wait(PAUSE_SECONDS):
                break
        return 0, None

    def _note(self, refused: int = 0, cut: int = 0) -> None:
        with self._changed:
            self.refused += refused
            self.cut += cut
            self._changed.notify_all()


class _Sender:
    """One thread's connections: one at a time, to one collector after the other."""

    def __init__(self, places: Sequence[str], number: int, media_type: MediaType) -> None:
        self.media_type = media_type
        self._places = places
        self._turn = number
        self._connection = self._connect()

    def turn(self) -> None:
        """Go on to the next collector, or, where there is only one, to a new connection."""
        self.close()
        self._turn += 1
        self._connection = self._connect()

    def post(self, body: bytes) -> bool | None:
        """Tell whether a batch was counted before; None if it was not taken. Any answer but 200 and 503 is a fault."""
        self._connection.request("POST", "/v1/batches", body, {"Content-Type": self.media_type})
        with self._connection.getresponse() as answer:
            told = answer.read()
        if answer.status == 503:
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert int(answer.headers["Retry-After"]) > 0
            return None
        assert answer.status == 200, (answer.status, told)
        receipt = json.loads(told)
        assert receipt["accepted"] == REPORTS, receipt
        assert receipt["rejected"] == [], receipt
        return bool(receipt["duplicate"])

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._places[self._turn % len(self._places)], timeout=ANSWER_SECONDS)


@contextmanager
def sending(oracle: Oracle, *urls: str, again_every: int = 0) -> Iterator[Senders]:
    """Senders that are at work, and have ended afterwards."""
    senders = Senders(oracle, urls, again_every=again_every)
    senders.start()
    try:
        yield senders
    finally:
        senders.abandon()
