"""Keeping an archive: a thread that seals files, writes them to their place and lets go of what waited for them.

Batches never wait for it, and it may fail: what is accepted meanwhile waits in the store. A file is put together,
written, noted as written, and only then its parts are deleted. Whoever is killed on the way has done nothing that the
next one cannot do again.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from hubbub.collector.archive.content import digest_of, head_of, path_of, unpack
from hubbub.collector.archive.file import write_file
from hubbub.collector.archive.place import Place
from hubbub.collector.errors import ArchiveError, StoreUnavailableError
from hubbub.collector.store.backend import reaching
from hubbub.collector.store.files import (
    content,
    drop_parts,
    files,
    forget,
    left_over,
    mark_written,
    seal,
    seal_due,
    sealed,
    waiting,
)
from hubbub.collector.store.parts import Parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from sqlalchemy import Engine

    from hubbub.collector.monitoring import Monitoring
    from hubbub.collector.store import Store
    from hubbub.collector.store.files import Kept
    from hubbub.shared.registry import Registry

DEFAULT_REPORTS = 4_000_000
"""A file with so many reports is sealed at once: it is put together in memory, but large ones are counted faster."""

DEFAULT_HOURS = 1
"""How often a process seals files that have fewer."""

LEAST_REPORTS = 1000
"""But not with fewer than these, while more may come: a small file would tell which reports came together."""

LOOK_SECONDS = 30.0
"""How often it is looked for what others have sealed, and what waits is counted; also the pause after a failure."""

DAYS_PER_WEEK = 7

logger = logging.getLogger("hubbub.collector")


class Archiver:
    """Keeps the archive of one store at one address, in a thread of its own. Several may keep the same one."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        monitoring: Monitoring,
        address: str,
        *,
        oldest: Callable[[], date],
        reports: int = DEFAULT_REPORTS,
        hours: float = DEFAULT_HOURS,
    ) -> None:
        self._engine = store.engine
        self._monitoring = monitoring
        self._address = address
        self._oldest = oldest
        """The first day on which a period may have ended that reports are still accepted of."""
        self._daily = {(each.name, each.version) for each in registry.values() if each.every != "week"}
        self._most_reports = reports
        self._seconds = hours * 3600
        self._place: Place | None = None
        self._changed = threading.Condition()
        self._full: set[str] = set()
        self._ready = False
        self._closing = False
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="hubbub-archiver", daemon=True)

    def start(self) -> None:
        """Begin to work, as soon as there is a store."""
        self._thread.start()

    def parts(self) -> Parts:
        """Give a writer that has the store what it puts reports into."""
        with self._changed:
            self._ready = True
            self._changed.notify_all()
        return Parts(self._most_reports, self.seal)

    def seal(self, name: str) -> None:
        """Have a file sealed and written soon; called by the writer's thread, which does not wait."""
        with self._changed:
            self._full.add(name)
            self._changed.notify_all()

    def close(self, timeout: float | None = None) -> None:
        """End, if that can be done in time; a file that is being written is written again by the next one."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def purge(self, before: date) -> int:
        """Delete files of periods that began before a day, and tell how many: first the file, then what is known of it.

        In the other order, a file whose deletion fails would be there for ever.
        """
        with reaching(), self._engine.connect() as connection:
            old = files(connection, "open", "sealed", "written", before=before)
        purged = 0
        for kept in old:
            self._opened().delete(path_of(kept))
            purged += forget(self._engine, kept)
        return purged

    def work(self, *, due: bool = False, first: bool = False) -> None:
        """Seal what is full or, if it is time, what is due, and write what is sealed."""
        with self._changed:
            full, self._full = self._full, set()
        for name in full:
            seal(self._engine, name)
        if due:
            seal_due(self._engine, LEAST_REPORTS, self._is_over)
        try:
            for kept in sealed(self._engine):
                if self._closing:
                    return
                self._monitoring.archive_files.inc(write_sealed(self._engine, self._opened(), kept))
            if due or first:
                for name in left_over(self._engine):
                    drop_parts(self._engine, name)
        finally:
            self._monitoring.archive_parts.set(waiting(self._engine))

    def _is_over(self, kept: Kept) -> bool:
        """Whether nothing more is accepted for a file."""
        lasts = 0 if (kept.metric, kept.version) in self._daily else DAYS_PER_WEEK - 1
        return kept.period + timedelta(days=lasts) < self._oldest()

    def _opened(self) -> Place:
        """Reach the place only when there is something to do there: it may be down when the collector starts."""
        if self._place is None:
            self._place = Place(self._address)
        return self._place

    def _run(self) -> None:
        # Anywhere in the interval, so that processes that were started together do not all do the same work.
        due = time.monotonic() + self._seconds * (1 + secrets.randbelow(1000)) / 1000
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._closing)
        first = True
        while not self._closing:
            now = time.monotonic()
            if self._worked(due=now >= due, first=first):
                first = False
                due = now + self._seconds if now >= due else due
            pause = LOOK_SECONDS if self._failed else min(LOOK_SECONDS, max(0.0, due - time.monotonic()))
            with self._changed:
                self._changed.wait_for(lambda: self._closing or (self._full and not self._failed), pause)

    def _worked(self, *, due: bool, first: bool) -> bool:
        """Work, and tell whether that was possible; if not, it is tried again later."""
        try:
            self.work(due=due, first=first)
        except (ArchiveError, StoreUnavailableError) as error:
            self.failed(error)
        except Exception:
            # A file system may raise whatever it likes, and nothing of it may end the thread.
            self._failed = True
            self._monitoring.archive_errors.inc()
            logger.exception("archive: failed; trying again later")
        else:
            self._failed = False
            return True
        return False

    def failed(self, error: ArchiveError | StoreUnavailableError) -> None:
        """Note a failure that may pass."""
        self._failed = True
        self._place = None  # a connection that broke is made anew
        self._monitoring.archive_errors.inc()
        logger.warning("archive: %s; trying again later, reports wait in the store", error)


def write_sealed(engine: Engine, place: Place, kept: Kept) -> bool:
    """Write a sealed file to its place, and let go of its parts; False if somebody else has done so meanwhile."""
    found = content(engine, kept)
    if found is None:
        return False
    shape, rows = found
    reports = unpack(rows, (shape.bits + 7) // 8)
    head = head_of(kept, shape, len(reports.packed))
    write_file(place, path_of(kept), head, *reports)
    if not mark_written(engine, kept.name, head.reports, digest_of([reports])):
        place.delete(path_of(kept))  # its period was purged meanwhile, file and all
        return False
    drop_parts(engine, kept.name)
    return True
