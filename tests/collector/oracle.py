"""An oracle of exactness: a metric without noise, and reports that each set one bit that no other report sets.

So a correct tally holds only 0s and 1s: a 2 is a report that was counted twice, a 0 where a report was acknowledged is
one that was lost.
"""

import threading
from collections.abc import Iterable
from datetime import date, timedelta

import numpy as np

from hubbub.collector import Tally
from hubbub.shared import Batch, Registry, Report, encode_batch
from hubbub.shared.period import today
from hubbub.shared.wire import JSON, MediaType, new_batch_id

BITS = 128
COHORTS = 512
DAYS = 10
SLOTS = BITS * COHORTS * DAYS

TEXT = f"""
[metrics.oracle]
description = "Reports that are made by hand, without noise"
kind = "string"
every = "day"
bits = {BITS}
hashes = 1
cohorts = {COHORTS}
lifetime_values = "unlimited"
privacy = {{ report = 1, lifetime = 2 }}
"""
REGISTRY = Registry.parse(TEXT)
METRIC = REGISTRY["oracle"]


def report(slot: int, latest: date | None = None) -> Report:
    """The report that sets the one bit of a slot; slots next to each other differ in their bit, then their cohort."""
    rest, bit = divmod(slot, BITS)
    days, cohort = divmod(rest, COHORTS)
    assert days < DAYS, "more slots than there are"
    period = (latest or today()) - timedelta(days=days)
    return Report("oracle", 1, period, cohort, (1 << bit).to_bytes(BITS // 8, "little"))


class Oracle:
    """Hands out slots, and knows afterwards what a tally has to be."""

    def __init__(self) -> None:
        self.latest = today()
        """The day of the first slots; said once, so that a test may run over midnight."""
        self._lock = threading.Lock()
        self._next = 0
        self._sent: set[int] = set()
        self._acknowledged: set[int] = set()

    def batch(self, reports: int = 3, media_type: MediaType = JSON) -> tuple[bytes, list[int]]:
        """A batch of reports of a device that is like no other, and its slots. At most one report for each period."""
        assert reports <= DAYS
        with self._lock:
            number = self._next
            self._next += 1
        plane = BITS * COHORTS
        assert number < plane, "more batches than there are slots on a day"
        # The same bit and cohort on different days, so that no batch has two reports of one period.
        slots = [day * plane + number for day in range(reports)]
        with self._lock:
            self._sent.update(slots)
        told = Batch(new_batch_id(), tuple(report(slot, self.latest) for slot in slots))
        return encode_batch(told, media_type), slots

    def acknowledge(self, slots: Iterable[int]) -> None:
        """Note that the collector has said 200 to these."""
        with self._lock:
            self._acknowledged.update(slots)

    @property
    def acknowledged(self) -> int:
        return len(self._acknowledged)

    def verify(self, by_period: dict[date, Tally]) -> None:
        """Nothing lost, nothing twice, nothing from nowhere."""
        seen: set[int] = set()
        for period, tally in by_period.items():
            assert tally.counts.max(initial=0) <= 1, f"counted twice: {np.argwhere(tally.counts > 1)[:5]}"
            assert (tally.counts.sum(axis=1) == tally.n).all(), "ids and counts do not agree"
            days = (self.latest - period).days
            for cohort, bit in np.argwhere(tally.counts):
                seen.add((days * COHORTS + int(cohort)) * BITS + int(bit))
        lost = self._acknowledged - seen
        assert not lost, f"{len(lost)} acknowledged reports lost, such as slot {min(lost)}"
        unknown = seen - self._sent
        assert not unknown, f"{len(unknown)} reports from nowhere, such as slot {min(unknown)}"

    def periods(self) -> list[date]:
        """The periods that slots speak of."""
        return [self.latest - timedelta(days=days) for days in range(DAYS)]
