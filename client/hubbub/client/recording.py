"""Recording: the values of a period, until its report is made.

A device makes one report for each metric and period, however often a value is recorded. Of values, one is kept at
random (the nth replaces the one before with chance 1/n, so each is as likely as any other), and it is randomised before
it is kept. Numbers are combined as their metric says.

Whether there is a report does not depend on the value. A value that is invalid, or that the device may not reveal, is
reported as the null encoding; flags and means, which have none, report their lower end or an answer revealed before.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hubbub.client.clock import due
from hubbub.client.privatizing import encode, respond
from hubbub.client.state import count
from hubbub.shared.encode import NULL
from hubbub.shared.period import period_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from datetime import date

    from hubbub.client.ledger import Ledger
    from hubbub.shared.metric import Metric
    from hubbub.shared.secret import Secret
    from hubbub.shared.wire import Report

_KEPT_NUMBERS = ("sum", "max", "mean")
TAG_BYTES = 16


def period_key(metric: Metric, day: date) -> str:
    """The period of a day as the state file names it; a metric that is reported once has one period for all time."""
    return "" if metric.every == "once" else period_of(metric.every, day).isoformat()


def record(
    connection: sqlite3.Connection, ledger: Ledger, metric: Metric, value: object, secret: Secret, day: date
) -> str | None:
    """Record a value as part of a transaction; return why it is not part of a report, or None."""
    opened = _open(connection, ledger, metric, day)
    if isinstance(opened, str):
        return opened
    room, row = opened
    seen, number = row or (0, None)
    valid, combined = True, metric.combine in _KEPT_NUMBERS
    try:
        encoded, is_clamped = encode(metric, value, secret), metric.encoding.clamps(value)
        number = _combined(metric, value, number) if combined else None
    except Exception:  # noqa: BLE001  (whatever a value does, its report must not be missing)
        encoded, is_clamped, valid = NULL, False, False
    if combined:
        if valid or row is None:
            _keep(connection, metric, day, row is None, (None, None, None, number), seen=int(valid))
        return None if valid else "unfit_value"
    if is_clamped:
        count(connection, "clamped")
    # Where the report cannot show that a value was invalid, the value must not displace a valid one.
    counts = valid or (metric.combine is None and metric.encoding.has_null)
    if counts and seen and metric.combine is None and _random_below(seen + 1):
        _keep(connection, metric, day, False, ())
    elif counts or row is None:
        report, tag = reveal(connection, metric, encoded, secret, day, room)
        _keep(connection, metric, day, row is None, (report.cohort, report.bits, tag, None), seen=int(counts))
    return None if valid else "unfit_value"


def record_defaults(
    connection: sqlite3.Connection, ledger: Ledger, metrics: Mapping[str, Metric], secret: Secret, day: date
) -> None:
    """Begin the report of this period for every metric with a default; a value that is recorded later replaces it."""
    for metric in metrics.values():
        if metric.default is None:
            continue
        opened = _open(connection, ledger, metric, day)
        if isinstance(opened, str) or opened[1] is not None:
            continue
        kept: tuple[object, ...] = (None, None, None, None)
        if metric.combine not in _KEPT_NUMBERS:
            encoded = encode(metric, metric.default, secret)
            report, tag = reveal(connection, metric, encoded, secret, day, opened[0])
            kept = (report.cohort, report.bits, tag, None)
        _keep(connection, metric, day, True, kept, seen=0)


def reveal(
    connection: sqlite3.Connection, metric: Metric, encoded: int, secret: Secret, day: date, room: float
) -> tuple[Report, bytes | None]:
    """Make the report of an encoding, or of another in its place if there is no room for one more.

    The tag names the encoding in the state file; without one the number of encodings needs no counting.
    """
    if not _is_counted(metric, room):
        return respond(metric, encoded, secret, day), None
    tag, key = encoding_tag(metric, encoded, secret), (metric.name, metric.version)
    revealed = {
        row[0]
        for row in connection.execute(
            "SELECT tag FROM revealed WHERE metric = ? AND version = ? "
            "UNION SELECT tag FROM open WHERE metric = ? AND version = ? AND period != ? AND tag IS NOT NULL",
            (*key, *key, period_key(metric, day)),
        )
    }
    if metric.encoding.has_null:
        # The null encoding is always revealed, or has room kept free for it.
        revealed.add(encoding_tag(metric, NULL, secret))
    if tag not in revealed and len(revealed) >= room:
        # Of a flag or mean with room for one of its two encodings the other one was revealed.
        encoded = NULL if metric.encoding.has_null else encoded ^ 1
        tag = encoding_tag(metric, encoded, secret)
    return respond(metric, encoded, secret, day), tag


def encoding_tag(metric: Metric, encoded: int, secret: Secret) -> bytes:
    """Name an encoding so that only this device's secret can tell which it is, to count those revealed."""
    return secret.stream(b"tag\0" + metric.identity + encoded.to_bytes(metric.width, "little"))(TAG_BYTES)


def finished_encoding(metric: Metric, seen: int, number: float | None, secret: Secret) -> tuple[int, bool]:
    """Encode the one number of a period that has ended, and tell whether it was outside the range."""
    value: object = metric.default
    if number is not None:
        value = number / seen if metric.combine == "mean" else number
    try:
        return encode(metric, value, secret), metric.encoding.clamps(value)
    except Exception:  # noqa: BLE001  (no number, or a sum beyond all floats)
        return NULL, False


def _is_counted(metric: Metric, room: float) -> bool:
    """Whether a device could have more encodings than there is room for."""
    natural = metric.encoding.natural_bound
    return metric.every != "once" and room < (float("inf") if natural is None else natural)


def _open(
    connection: sqlite3.Connection, ledger: Ledger, metric: Metric, day: date
) -> tuple[float, tuple[int, float | None] | None] | str:
    """Find what a period has so far, and the room for encodings; or tell why nothing can be recorded for it."""
    if metric.expires is not None and day > metric.expires:
        return "expired"
    key = (metric.name, metric.version, period_key(metric, day))
    if connection.execute("SELECT 1 FROM done WHERE metric = ? AND version = ? AND period = ?", key).fetchone():
        return "period_over"
    room = ledger.room(metric)
    if isinstance(room, str):
        return room
    row = connection.execute(
        "SELECT seen, number FROM open WHERE metric = ? AND version = ? AND period = ?", key
    ).fetchone()
    return room, row


def _keep(
    connection: sqlite3.Connection, metric: Metric, day: date, new: bool, kept: tuple[object, ...], seen: int = 1
) -> None:
    """Write down one more value of a period; `kept` is cohort, bits, tag and number, or empty if another is kept."""
    key = (metric.name, metric.version, period_key(metric, day))
    if new:
        count(connection, "recorded")
        moment = due(metric.every, period_of(metric.every, day))
        connection.execute(
            "INSERT INTO open VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*key, day.isoformat(), moment, seen, *kept)
        )
        return
    connection.execute("UPDATE open SET seen = seen + ? WHERE metric = ? AND version = ? AND period = ?", (seen, *key))
    if kept:
        connection.execute(
            "UPDATE open SET cohort = ?, bits = ?, tag = ?, number = ? WHERE metric = ? AND version = ? AND period = ?",
            (*kept, *key),
        )


def _combined(metric: Metric, value: object, before: float | None) -> float:
    """Return the number to keep after one more."""
    # An integer may be larger than any float; the ends of the range stand for what is beyond them only at the end of
    # the period, when the combined number is encoded.
    number = float(max(min(value, 1e300), -1e300))  # type: ignore[call-overload]
    if before is None:
        return number
    if metric.combine == "max":
        return max(before, number)
    # `sum` and `mean` both keep the sum; a mean is divided by the number of values when the period ends.
    return before + number


def _random_below(number: int) -> int:
    """Draw an integer from 0 to number - 1; the bias of the remainder is below 2^-32 for any number of values."""
    return int.from_bytes(os.urandom(16), "little") % number
