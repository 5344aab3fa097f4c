"""What the collector counts about itself, for Prometheus. Nothing here tells of a single report or sender."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

if TYPE_CHECKING:
    from collections import Counter as Counts

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Set by `hubbub serve` where several processes count together."""

_COMMIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_COMMIT_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Monitoring:
    """Counters of one collector."""

    def __init__(self) -> None:
        if SHARED_FOLDER in os.environ:
            # The library chose when it was imported, and that was before there was a folder.
            values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]
            _forget_the_dead()
        self._registry = own = CollectorRegistry()
        self.batches = Counter(
            "hubbub_batches", "Batches, by what became of them: accepted, duplicate, or the code of a refusal",
            ["outcome"], registry=own,
        )  # fmt: skip
        self.reports = Counter(
            "hubbub_reports", "Reports of accepted batches, by outcome (accepted, rejected) and reason",
            ["outcome", "reason"], registry=own,
        )  # fmt: skip
        self.commit_seconds = Histogram(
            "hubbub_commit_seconds", "Time a commit took", buckets=_COMMIT_SECONDS, registry=own
        )
        self.commit_batches = Histogram(
            "hubbub_commit_batches", "Batches in a commit", buckets=_COMMIT_BATCHES, registry=own
        )
        self.waiting = Gauge(
            "hubbub_queue_depth", "Batches that wait for a commit", multiprocess_mode="livesum", registry=own
        )
        self.ready = Gauge(
            "hubbub_ready",
            "Writers that have a store to write to",
            multiprocess_mode="livesum",
            registry=own,
        )
        self.store_errors = Counter("hubbub_store_errors", "Commits and connections that failed", registry=own)
        self.purged = Counter("hubbub_purged_rows", "Rows that were let go of, by table", ["table"], registry=own)
        self.archive_files = Counter("hubbub_archive_files", "Files of the archive that were written", registry=own)
        self.archive_errors = Counter(
            "hubbub_archive_errors", "Times that the archive could not be kept, and waits", registry=own
        )
        self.archive_parts = Gauge(
            "hubbub_archive_parts",
            "Parts that wait in the store for their file of the archive, of all processes",
            multiprocess_mode="livemostrecent",
            registry=own,
        )

    def refused(self, code: str) -> None:
        """Count a batch that was not taken."""
        self.batches.labels(code).inc()

    def committed(self, seconds: float, outcomes: Counts[str], reports: Counts[tuple[str, str]]) -> None:
        """Count a commit: once for all that was in it, because counting costs as much as the rest of a request."""
        self.commit_seconds.observe(seconds)
        self.commit_batches.observe(outcomes.total())
        self.taken(outcomes, reports)

    def taken(self, outcomes: Counts[str], reports: Counts[tuple[str, str]]) -> None:
        """Count batches that were answered."""
        for outcome, number in outcomes.items():
            self.batches.labels(outcome).inc(number)
        for labels, number in reports.items():
            self.reports.labels(*labels).inc(number)

    def show(self) -> bytes:
        """Spell everything in Prometheus' text format, added up over processes where there are several."""
        if SHARED_FOLDER in os.environ:
            everybody = CollectorRegistry()
            MultiProcessCollector(everybody)  # type: ignore[no-untyped-call]
            return generate_latest(everybody)
        return generate_latest(self._registry)


def _forget_the_dead() -> None:
    """Leave processes that have died out of what is told of the present; what they have counted is kept."""
    for file in Path(os.environ[SHARED_FOLDER]).glob("gauge_live*.db"):
        process = int(file.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            mark_process_dead(process)  # type: ignore[no-untyped-call]
