"""How fast pages are made while batches come in: who works for pages rests after each job, if others need the cores.

Low priority is not enough for that. What runs at low priority still has the core whenever the process that serves waits
for the disk for a moment, and its memory in the caches, too.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REST = 4.0
"""How many times as long as a job took the rest after it is, where the process that serves needs all of a core."""

MOST_SECONDS = 10.0
"""The longest rest."""


class Pace:
    """Lets one job after the other begin, each after the rest that the one before has earned."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.busy = 0.0
        """How busy the process is that is to be spared; nobody rests where it has nothing to do."""
        self._clock = clock
        self._sleep = sleep
        self._rested = 0.0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Wait for the end of the rest, and let a job be done; only one at a time may."""
        self._sleep(max(self._rested - self._clock(), 0.0))
        begun = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self._rested = ended + min(REST * self.busy * (ended - begun), MOST_SECONDS)
