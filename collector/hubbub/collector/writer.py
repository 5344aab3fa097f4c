"""Group commit: requests hand in their batches, one thread commits many of them at once, and all are told.

open --> ready --(store fails)--> down --(store answers)--> ready
any state --(close)--> closing: nothing new is taken, what waits is committed, then the thread ends
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hubbub.collector.errors import StoreRefusedError, StoreUnavailableError

if TYPE_CHECKING:
    from hubbub.collector.acceptance import Judged
    from hubbub.collector.archive.keeping import Archiver
    from hubbub.collector.monitoring import Monitoring
    from hubbub.collector.store import Store
    from hubbub.collector.store.shard import Shard
    from hubbub.shared.registry import Registry

DEFAULT_QUEUE = 4096
"""Batches that may wait for a commit; more are told to come back."""

MAX_GROUP = 512
"""Batches in one commit."""

LINGER = 0.5
"""After a commit, the writer waits for as many batches as it had before, up to this part of the time it took."""

MAX_LINGER_SECONDS = 0.004

FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 2.0

logger = logging.getLogger("hubbub.collector")


class Mailbox(Protocol):
    """Whoever waits for tickets."""

    def deliver(self, tickets: list[Ticket]) -> None:
        """Take tickets back that have been answered; called by the writer's thread."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A batch that waits for its commit."""

    judged: Judged
    mailbox: Mailbox
    waiter: Any = None
    """Whatever the mailbox needs to find the one who waits."""
    new: bool = False
    """Whether it was counted just now, and not before."""
    failed: bool = False
    """Whether the commit failed; then nobody knows whether it was counted, and the sender has to ask again."""


class NotTakenError(Exception):
    """The writer cannot take a batch now; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Writer:
    """The one that commits, in a thread of its own."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        monitoring: Monitoring,
        queue: int = DEFAULT_QUEUE,
        archiver: Archiver | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._monitoring = monitoring
        self._limit = queue
        self._archiver = archiver
        self._waiting: deque[Ticket] = deque()
        self._changed = threading.Condition()
        self._enough = 1
        self._ready = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="hubbub-writer", daemon=True)

    def start(self) -> None:
        """Begin to work: the store is opened in the background, however long that takes."""
        self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether there is a store to write to."""
        return self._ready

    def wait_until_ready(self, timeout: float) -> bool:
        """Wait for the store, and tell whether it is there."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ready, timeout)

    def submit(self, ticket: Ticket) -> None:
        """Hand in a batch; its mailbox is told when it has been committed, or could not be."""
        with self._changed:
            if self._closing:
                raise NotTakenError("closing")
            if not self._ready:
                raise NotTakenError("store_down")
            if len(self._waiting) >= self._limit:
                raise NotTakenError("queue_full")
            self._waiting.append(ticket)
            if len(self._waiting) in {1, self._enough}:
                self._changed.notify_all()

    def close(self, timeout: float | None = None) -> bool:
        """Take nothing more, commit what waits, and tell whether that was done in time."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        pause = FIRST_RETRY_SECONDS
        while not self._closing:
            shard = None
            try:
                self._store.prepare(self._registry)
                shard = self._store.shard(self._registry)
                if self._archiver is not None:
                    shard.keep(self._archiver.parts())
                logger.info("store: ready (%s)", self._store.address)
                pause = FIRST_RETRY_SECONDS
                self._set_ready(True)
                self._commit_until_closing(shard)
            except StoreRefusedError as error:
                logger.critical("%s", error)
                pause = LAST_RETRY_SECONDS
            except StoreUnavailableError as error:
                logger.warning("%s; trying again", error)
            except Exception:
                # A fault of our own must not end the only thread that commits. What it had in hand was told so.
                logger.exception("the writer failed; trying again")
            finally:
                self._set_ready(False)
                if shard is not None:
                    shard.close()
            with self._changed:
                self._changed.wait_for(lambda: self._closing, pause)
            pause = min(2 * pause, LAST_RETRY_SECONDS)

    def _set_ready(self, ready: bool) -> None:
        with self._changed:
            self._ready = ready
            left = [] if ready else list(self._waiting)
            if left:
                self._waiting.clear()
            self._changed.notify_all()
        self._monitoring.ready.set(ready)
        self._fail(left)

    def _commit_until_closing(self, shard: Shard) -> None:
        linger = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                # Whoever was answered just now may be about to send again: a moment's wait makes one commit of two.
                self._changed.wait_for(lambda: len(self._waiting) >= self._enough or self._closing, linger)
                group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_GROUP))]
                self._monitoring.waiting.set(len(self._waiting))
            if not group:
                return
            begin = time.perf_counter()
            self._commit(shard, group)
            self._enough = len(group)
            linger = min((time.perf_counter() - begin) * LINGER, MAX_LINGER_SECONDS)

    def _commit(self, shard: Shard, group: list[Ticket]) -> None:
        begin = time.perf_counter()
        try:
            fresh = shard.commit([ticket.judged for ticket in group])
        except BaseException:
            # Whatever it was: nobody may wait for ever. The thread begins anew, with a new connection.
            self._set_ready(False)
            self._fail(group)
            self._monitoring.store_errors.inc()
            raise
        outcomes: Counter[str] = Counter()
        reports: Counter[tuple[str, str]] = Counter()
        for ticket, new in zip(group, fresh, strict=True):
            ticket.new = new
            outcomes["accepted" if new else "duplicate"] += 1
            if new:
                reports["accepted", ""] += len(ticket.judged.reports)
                for each in ticket.judged.rejected:
                    reports["rejected", each.reason] += 1
        self._monitoring.committed(time.perf_counter() - begin, outcomes, reports)
        _deliver(group)

    def _fail(self, tickets: list[Ticket]) -> None:
        for ticket in tickets:
            ticket.failed = True
        _deliver(tickets)


def _deliver(tickets: list[Ticket]) -> None:
    by_mailbox: dict[int, list[Ticket]] = defaultdict(list)
    for ticket in tickets:
        by_mailbox[id(ticket.mailbox)].append(ticket)
    for each in by_mailbox.values():
        each[0].mailbox.deliver(each)
