"""The collector: registry, store, writer and housekeeping, as one thing that starts and closes."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from hubbub.collector.acceptance import DEFAULT_DAYS_AHEAD, DEFAULT_DAYS_BACK, Acceptance
from hubbub.collector.archive.keeping import DEFAULT_HOURS, DEFAULT_REPORTS, Archiver
from hubbub.collector.decoding import Decoder
from hubbub.collector.errors import ArchiveError, StoreUnavailableError
from hubbub.collector.monitoring import Monitoring
from hubbub.collector.store.retention import purge_batches, purge_parts, purge_tallies
from hubbub.collector.token import Token
from hubbub.collector.writer import DEFAULT_QUEUE, Writer
from hubbub.shared.period import today
from hubbub.shared.planning import DEFAULT_MIN_COHORT_REPORTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date

    from hubbub.collector.acceptance import Judged
    from hubbub.collector.store import Store
    from hubbub.shared.registry import Registry

PURGE_SECONDS = 3600.0
CLOSE_SECONDS = 6.0
"""The longest that a stop waits for the last commit."""

CLOCK_DAYS = 2
"""Batch ids outlive the window by so many days: replicas' clocks are not all the same."""

logger = logging.getLogger("hubbub.collector")


class Collector:
    """Everything that serves one registry from one store. `start` it, and `close` it."""

    def __init__(
        self,
        registry: Registry,
        store: Store,
        *,
        admin_token: str | None = None,
        ingest_key: str | None = None,
        cors_origins: Sequence[str] = (),
        days_back: int = DEFAULT_DAYS_BACK,
        days_ahead: int = DEFAULT_DAYS_AHEAD,
        keep_days: int | None = None,
        min_cohort_reports: int = DEFAULT_MIN_COHORT_REPORTS,
        archive: str | None = None,
        archive_reports: int = DEFAULT_REPORTS,
        archive_hours: float = DEFAULT_HOURS,
        queue: int = DEFAULT_QUEUE,
        clock: Callable[[], date] = today,
    ) -> None:
        self.registry = registry
        self.store = store
        self.admin_token = None if admin_token is None else Token(admin_token)
        self.ingest_key = None if ingest_key is None else Token(ingest_key)
        self.cors_origins = frozenset(cors_origins)
        self.min_cohort_reports = min_cohort_reports
        self.monitoring = Monitoring()
        self.acceptance = Acceptance(registry, days_back, days_ahead, clock)
        self.archiver: Archiver | None = None
        if archive is not None:
            self.archiver = Archiver(
                store,
                registry,
                self.monitoring,
                archive,
                oldest=lambda: self.acceptance.oldest - timedelta(days=CLOCK_DAYS),
                reports=archive_reports,
                hours=archive_hours,
            )
        self.writer = Writer(store, registry, self.monitoring, queue, self.archiver)
        self.decoder = Decoder(registry, store)
        self._keep_days = keep_days
        self._closing = threading.Event()
        self._housekeeper = threading.Thread(target=self._keep_house, name="hubbub-housekeeper", daemon=True)

    def start(self) -> None:
        """Begin: the store is opened in the background, and until it is there batches are refused with 503."""
        self.writer.start()
        self._housekeeper.start()
        if self.archiver is not None:
            self.archiver.start()

    def close(self, timeout: float = CLOSE_SECONDS) -> bool:
        """Take nothing more, commit what waits, and tell whether all that was done in time."""
        end = time.monotonic() + timeout
        self._closing.set()
        self.decoder.close()
        done = self.writer.close(timeout)
        if self._housekeeper.ident is not None:
            self._housekeeper.join(max(0.0, end - time.monotonic()))
        if self.archiver is not None:
            self.archiver.close(max(0.0, end - time.monotonic()))
        self.store.close()
        return done

    def purge(self) -> None:
        """Let go of batch ids that are refused anyway, and of all that is older than the operator keeps."""
        day = self.acceptance.clock()
        batches = purge_batches(self.store.engine, self.acceptance.oldest - timedelta(days=CLOCK_DAYS))
        self.monitoring.purged.labels("batch").inc(batches)
        if self._keep_days is not None:
            before = day - timedelta(days=self._keep_days)
            self._purge_archive(before)
            self.monitoring.purged.labels("tally").inc(purge_tallies(self.store.engine, before))

    def _purge_archive(self, before: date) -> None:
        """Delete files before the tallies they belong to: what is in the archive is in the tally, at any moment."""
        if self.archiver is not None:
            try:
                self.monitoring.purged.labels("archive_file").inc(self.archiver.purge(before))
            except ArchiveError as error:
                self.archiver.failed(error)
        purge_parts(self.store.engine, before)

    def nothing_counted(self, judged: Judged) -> None:
        """Note a batch of which nothing was to be committed."""
        self.monitoring.taken(Counter(accepted=1), Counter(("rejected", str(each.reason)) for each in judged.rejected))

    def _keep_house(self) -> None:
        while not self._closing.wait(PURGE_SECONDS if self._purged() else 1.0):
            pass

    def _purged(self) -> bool:
        """Purge if the store is there."""
        if not self.writer.ready:
            return False
        try:
            self.purge()
        except StoreUnavailableError as error:
            self.monitoring.store_errors.inc()
            logger.warning("%s; purging later", error)
            return False
        return True
