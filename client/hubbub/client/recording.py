"""Recording: what becomes of the values of a period until its report is made.

A device makes one report for each metric and period, however often a value is recorded. Of values, one is kept at
random (the nth replaces the one before with chance 1/n, so each is as likely as any other), and what is kept has been
randomised already. Numbers are combined as their metric says.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hubbub.client.clock import due
from hubbub.client.privatizing import encode, privatize
from hubbub.client.state import count
from hubbub.shared.period import period_of

if TYPE_CHECKING:
    import sqlite3
    from datetime import date

    from hubbub.shared.metric import Metric
    from hubbub.shared.secret import Secret

_KEPT_NUMBERS = ("sum", "max", "mean")
TAG_BYTES = 16


def period_key(metric: Metric, day: date) -> str:
    """The period of a day as the state file names it; a metric that is reported once has one period for all time."""
    return "" if metric.every == "once" else period_of(metric.every, day).isoformat()


def record(connection: sqlite3.Connection, metric: Metric, value: object, secret: Secret, day: date) -> str | None:
    """Record a value as part of a transaction; the answer is the reason why it was not, or None."""
    if metric.expires is not None and day > metric.expires:
        return "expired"
    key = (metric.name, metric.version, period_key(metric, day))
    if connection.execute("SELECT 1 FROM done WHERE metric = ? AND version = ? AND period = ?", key).fetchone():
        return "period_over"
    row = connection.execute(
        "SELECT seen, number FROM open WHERE metric = ? AND version = ? AND period = ?", key
    ).fetchone()
    seen, number = row or (0, None)
    if metric.combine in _KEPT_NUMBERS:
        kept: tuple[object, ...] = (None, None, None, _combined(metric, value, number))
    else:
        tag = encoding_tag(metric, value, secret)
        if not may_reveal(connection, metric, tag):
            return "lifetime_values"
        if metric.encoding.clamps(value):
            count(connection, "clamped")
        if metric.combine is None and seen and _random_below(seen + 1):
            kept = ()
        else:
            report = privatize(metric, value, secret, day=day)
            kept = (report.cohort, report.bits, tag, None)
    if row is None:
        count(connection, "recorded")
        moment = due(metric.every, period_of(metric.every, day))
        connection.execute(
            "INSERT INTO open VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?)", (*key, day.isoformat(), moment, *kept)
        )
    else:
        connection.execute("UPDATE open SET seen = seen + 1 WHERE metric = ? AND version = ? AND period = ?", key)
        if kept:
            connection.execute(
                "UPDATE open SET cohort = ?, bits = ?, tag = ?, number = ? "
                "WHERE metric = ? AND version = ? AND period = ?",
                (*kept, *key),
            )
    return None


def encoding_tag(metric: Metric, value: object, secret: Secret) -> bytes:
    """A name for the encoding of a value that only this device's secret can give, to count how many it has revealed."""
    _, encoded = encode(metric, value, secret)
    return secret.stream(b"tag\0" + metric.identity + encoded.to_bytes(metric.width, "little"))(TAG_BYTES)


def may_reveal(connection: sqlite3.Connection, metric: Metric, tag: bytes) -> bool:
    """Whether the device has revealed this encoding before, or may reveal one more."""
    if metric.lifetime_values is None:
        return True
    key = (metric.name, metric.version)
    known = connection.execute("SELECT 1 FROM revealed WHERE metric = ? AND version = ? AND tag = ?", (*key, tag))
    if known.fetchone():
        return True
    [number] = connection.execute("SELECT count(*) FROM revealed WHERE metric = ? AND version = ?", key).fetchone()
    return bool(number < metric.lifetime_values)


def _combined(metric: Metric, value: object, before: float | None) -> float:
    """The number to keep after one more; an unfit value is refused here, before anything is written."""
    metric.encode(value, 0, 0)
    # An integer may be larger than any float; the ends of the range stand for what is beyond them only at the end of
    # the period, when the combined number is encoded.
    number = float(max(min(value, 1e300), -1e300))  # type: ignore[call-overload]
    if before is None:
        return number
    if metric.combine == "max":
        return max(before, number)
    # `sum` and `mean` both keep the sum; a mean is divided by the number of values when the period ends.
    return before + number


def finished_number(metric: Metric, seen: int, number: float) -> float:
    """The one number of a period that has ended."""
    return number / seen if metric.combine == "mean" else number


def _random_below(number: int) -> int:
    """Draw an integer from 0 to number - 1; the bias of the remainder is below 2^-32 for any number of values."""
    return int.from_bytes(os.urandom(16), "little") % number
