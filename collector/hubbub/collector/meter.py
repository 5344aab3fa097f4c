"""How busy a process is: the one that serves tells it to those that make pages (`pace`)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

METER_SECONDS = 0.5
"""Over at least so long it is measured how busy a process is."""


class Meter:
    """Tells how busy this process is."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, used: Callable[[], float] = time.process_time
    ) -> None:
        self._clock = clock
        self._used = used
        self._since = clock(), used()
        self._busy = 0.0

    def busy(self) -> float:
        """Give the share of a core that this process has used lately, at most 1."""
        now = self._clock(), self._used()
        passed = now[0] - self._since[0]
        if passed >= METER_SECONDS:
            self._busy = min((now[1] - self._since[1]) / passed, 1.0)
            self._since = now
        return self._busy
