"""Making things in the background, and keeping them: one job for all who want the same, and old ones shown meanwhile.

Nothing is made by the thread of a request. It waits for a moment; then it is given what there was before, or told that
there is nothing yet.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from hubbub.collector.dashboard.guard import StillDecodingError
from hubbub.collector.refusal import Refused

PAGE_SECONDS = 2.0
"""The longest that a page waits for what it shows, before it says that it is being made."""

OLDER_SECONDS = 0.2
"""The same where there is something older to be shown."""

MAX_JOBS = 8
"""Things that may be in the making at one moment."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class Kept(Generic[Key, Value]):
    """A small cache: the least recently used goes first."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Give what is kept."""
        with self._guard:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Keep something."""
        with self._guard:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._entries:
                self._values.popitem(last=False)

    def drop(self, wanted: Callable[[Key], bool]) -> None:
        """Forget all of a kind."""
        with self._guard:
            for key in [key for key in self._values if wanted(key)]:
                del self._values[key]


Make: TypeAlias = Callable[[Value | None, Callable[[Value], None]], Value]
"""Makes something: is given what there was before, and what it may call to show a part of what it makes."""


class _Made(NamedTuple, Generic[Value]):
    value: Value
    at: float


class Background(Generic[Key, Value]):
    """Makes things by threads, and keeps the last of them."""

    def __init__(self, entries: int) -> None:
        self._made: Kept[Key, _Made[Value]] = Kept(entries)
        self._jobs: dict[Key, Future[Value]] = {}
        self._guard = threading.Lock()

    def have(self, key: Key, make: Make[Value], fresh: float) -> tuple[Value, bool]:
        """Give what is no older than so many seconds, or have it made; and tell whether it is older all the same."""
        before = self._made.get(key)
        if before is not None and time.monotonic() - before.at < fresh:
            return before.value, False
        try:
            job = self._job(key, make)
        except Refused:
            if before is None:
                raise
            return before.value, True
        try:
            return job.result(PAGE_SECONDS if before is None else OLDER_SECONDS), False
        except NotYetError:
            now = self._made.get(key)  # a part of it may be there by now
            if now is None:
                raise StillDecodingError from None
            return now.value, now is before
        finally:
            if job.done():
                self._forget(key, job)

    def drop(self, wanted: Callable[[Key], bool]) -> None:
        """Forget all of a kind, and what is being made of it too."""
        with self._guard:
            for key in [key for key in self._jobs if wanted(key)]:
                del self._jobs[key]
            self._made.drop(wanted)

    def _job(self, key: Key, make: Make[Value]) -> Future[Value]:
        """Begin to make something, or find the job that does already."""
        with self._guard:
            for each, other in list(self._jobs.items()):
                # Nobody has come back for it. A failure is told to the next one who wants the same.
                if other.done() and (each != key or other.exception() is None):
                    del self._jobs[each]
            job = self._jobs.get(key)
            if job is None:
                if len(self._jobs) >= MAX_JOBS:
                    raise Refused("busy", f"others wait for answers already; allowed: {MAX_JOBS}; try again later")
                job = self._jobs[key] = Future()
                threading.Thread(target=self._work, args=(job, key, make), daemon=True).start()
            return job

    def _work(self, job: Future[Value], key: Key, make: Make[Value]) -> None:
        def show(value: Value) -> None:
            with self._guard:
                if self._jobs.get(key) is job:  # and was not dropped meanwhile
                    self._made.put(key, _Made(value, time.monotonic()))

        try:
            before = self._made.get(key)
            value = make(None if before is None else before.value, show)
        except BaseException as error:  # noqa: BLE001  (it is told to whoever waits for it)
            job.set_exception(error)
        else:
            show(value)
            job.set_result(value)

    def _forget(self, key: Key, job: Future[Value]) -> None:
        with self._guard:
            if self._jobs.get(key) is job:
                del self._jobs[key]
