"""Time, as the client sees it: one function that can be replaced, and the moment a period's report may go."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hubbub.shared.period import Every

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time, with a time zone."""

LENGTH: dict[Every, timedelta] = {"once": timedelta(days=1), "day": timedelta(days=1), "week": timedelta(days=7)}
DELAY_SHARE = 4
"""A report waits for up to a quarter of its period after that has ended, so that uploads do not come all at once."""


def system_clock() -> datetime:
    """The time of the machine."""
    return datetime.now(UTC)


def utc(clock: Clock) -> datetime:
    """Ask a clock, and bring its answer to UTC."""
    return clock().astimezone(UTC)


def random_share() -> float:
    """Draw a number from 0 to 1 from the operating system, for waiting times."""
    return int.from_bytes(os.urandom(7), "little") / (1 << 56)


def end_of(every: Every, period: date) -> datetime:
    """The moment a period is over."""
    return datetime.combine(period, time(), UTC) + LENGTH[every]


def due(every: Every, period: date) -> float:
    """Draw the moment, in seconds since 1970, from which the report of a period may be sent."""
    return (end_of(every, period) + random_share() * LENGTH[every] / DELAY_SHARE).timestamp()
