"""The sender: a background thread that forms batches and uploads them, and can be left alone at any moment.

All it works on is in the state file. It may be killed, forked away from or never scheduled again, and nothing is lost.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

from hubbub.client import outbox
from hubbub.client.clock import utc
from hubbub.client.errors import StateError
from hubbub.client.ledger import Ledger
from hubbub.client.recording import record_defaults
from hubbub.client.upload import Outcome, upload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import requests

    from hubbub.client.clock import Clock
    from hubbub.client.outbox import Waiting
    from hubbub.client.registries import Registries
    from hubbub.client.state import State
    from hubbub.shared.metric import Metric

LONGEST_SLEEP_SECONDS = 300.0
"""The thread looks again after this long at the latest: clocks jump, and other processes add to the outbox."""

SHORTEST_ATTEMPT_SECONDS = 0.05

logger = logging.getLogger("hubbub.client")


class Sender:
    """Sends for one client."""

    def __init__(
        self,
        collector: str,
        make_session: Callable[[], requests.Session],
        state: State,
        registries: Registries,
        clock: Clock,
    ) -> None:
        self._url = f"{collector.rstrip('/')}/v1/batches"
        self._make_session = make_session
        self._state = state
        self._registries = registries
        self._clock = clock
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the thread and the connections: after a stop, or in the child of a fork, where they are not ours."""
        self._stop = threading.Event()
        self._busy = threading.Lock()
        self._thread: threading.Thread | None = None
        self._session: requests.Session | None = None

    def start(self) -> None:
        """See to it that the thread runs. It finds its work by itself: what is recorded now is due hours from now."""
        if self._thread is None and not self._stop.is_set():
            self._thread = threading.Thread(target=self._run, name="hubbub-sender", daemon=True)
            # An interpreter that is shutting down starts no more threads; what is recorded waits on disk.
            with contextlib.suppress(RuntimeError):
                self._thread.start()

    def stop(self, timeout: float) -> None:
        """Ask the thread to end and wait for it no longer than this; it may be in the middle of an upload."""
        self._stop.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(timeout)

    def send_all(self, timeout: float) -> bool:
        """Form batches and upload all that may go, in this thread; tells whether no batch is left."""
        end = time.monotonic() + timeout
        if not self._busy.acquire(timeout=timeout):
            return False
        try:
            self._form()
            while time.monotonic() < end:
                waiting = self._claim(despite_backoff=True)
                if waiting is None:
                    with self._state.transaction() as connection:
                        return outbox.is_empty(connection)
                left = max(SHORTEST_ATTEMPT_SECONDS, end - time.monotonic())
                if self._attempt(waiting, left).action == "retry":
                    return False
            return False
        finally:
            self._busy.release()

    def _run(self) -> None:
        stop, pause = self._stop, 0.0
        while not stop.wait(pause):
            try:
                pause = self._work(stop)
            except StateError as error:
                logger.warning("sending is postponed: %s", error)
                pause = LONGEST_SLEEP_SECONDS
            except Exception as error:  # noqa: BLE001  (a fault of ours must not end all sending)
                logger.warning("sending is postponed: it failed with %s", type(error).__name__)
                pause = LONGEST_SLEEP_SECONDS

    def _work(self, stop: threading.Event) -> float:
        with self._busy:
            self._form()
            while not stop.is_set():
                waiting = self._claim()
                if waiting is None:
                    break
                self._attempt(waiting, None)
        with self._state.transaction() as connection:
            moment = outbox.next_moment(connection)
        if moment is None:
            return LONGEST_SLEEP_SECONDS
        return min(max(moment - self._now(), 1.0), LONGEST_SLEEP_SECONDS)

    def _form(self) -> None:
        self._registries.refresh(self._ready_session, self._now())
        metrics: Mapping[str, Metric] = self._registries.current() or {}
        with self._state.transaction() as connection:
            secret = self._state.secret(connection)
            ledger = Ledger(connection, metrics, self._registries.max_epsilon)
            record_defaults(connection, ledger, metrics, secret, utc(self._clock).date())
            deleted = outbox.form_batches(connection, ledger, metrics, secret, self._now())
        if deleted:
            self._state.scrub()

    def _claim(self, *, despite_backoff: bool = False) -> Waiting | None:
        with self._state.transaction() as connection:
            return outbox.claim(connection, self._now(), despite_backoff=despite_backoff)

    def _attempt(self, waiting: Waiting, timeout: float | None) -> Outcome:
        outcome = upload(self._ready_session(), self._url, waiting.body, waiting.reports, timeout)
        with self._state.transaction() as connection:
            match outcome.action:
                case "delivered":
                    outbox.delivered(connection, waiting, outcome.rejected)
                case "retry":
                    outbox.postpone(connection, waiting, self._now(), outcome.retry_after)
                case "split":
                    outbox.split(connection, waiting, self._now())
                case "drop":
                    outbox.drop(connection, waiting.id, waiting.reports, outcome.reason)
        if outcome.action != "delivered":
            logger.info(
                "a batch of %d report(s) was not taken: %s (%s)", waiting.reports, outcome.reason, outcome.action
            )
        return outcome

    def _ready_session(self) -> requests.Session:
        if self._session is None:
            self._session = self._make_session()
        return self._session

    def _now(self) -> float:
        return utc(self._clock).timestamp()
