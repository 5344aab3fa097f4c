"""Periods: the day or the week that a report speaks of, named by its first day, in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Literal, TypeAlias, get_args

Every: TypeAlias = Literal["once", "day", "week"]
"""How often a device reports a metric."""

EVERY: tuple[Every, ...] = get_args(Every)

PERIODS_A_YEAR: dict[Every, int] = {"once": 1, "day": 366, "week": 53}
"""The most that can begin in one year."""


def period_of(every: Every, day: date) -> date:
    """Name the period that holds a day: the day itself, or the Monday of its week.

    A metric that is reported once speaks of the day it was recorded on.
    """
    return day - timedelta(days=day.weekday()) if every == "week" else day


def today() -> date:
    """Tell the day it is now, in UTC."""
    return datetime.now(UTC).date()
