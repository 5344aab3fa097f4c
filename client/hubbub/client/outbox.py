"""The outbox: reports whose period is over become batches, and a batch stays as it is until the collector has it.

A batch is frozen when it is formed: the same id and the same bytes at every attempt, so that a retry reveals nothing
new and is counted once. Several processes may send from one outbox; each batch is claimed by one of them at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from hubbub.client.clock import random_share
from hubbub.client.recording import finished_encoding, reveal
from hubbub.client.state import count
from hubbub.shared.wire import Batch, Report, decode_batch, encode_batch, new_batch_id

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from hubbub.client.ledger import Ledger
    from hubbub.shared.metric import Metric
    from hubbub.shared.secret import Secret

BATCH_REPORTS = 100
"""How many reports go into one batch at most."""

MAX_BATCHES = 1000
MAX_BYTES = 4 << 20
MAX_AGE_SECONDS = 14 * 86400.0
"""What is older than the collector accepts is dropped, and counted; so is the oldest beyond a number or a size."""

CLAIM_SECONDS = 60.0
"""For how long a process that has claimed a batch may keep it from the others: longer than any attempt takes."""

FIRST_BACKOFF_SECONDS = 30.0
LAST_BACKOFF_SECONDS = 6 * 3600.0


@dataclass(frozen=True)
class Waiting:
    """A claimed batch."""

    id: int
    body: bytes
    reports: int
    attempts: int


@dataclass(frozen=True)
class _Collected:
    """What has been collected for a metric and a period."""

    metric: str
    version: int
    period: str
    day: str
    seen: int
    cohort: int
    bits: bytes | None
    """The report, randomised; None while a number is being combined."""
    tag: bytes | None
    number: float | None

    @property
    def key(self) -> tuple[str, int, str]:
        return self.metric, self.version, self.period


def form_batches(
    connection: sqlite3.Connection, ledger: Ledger, metrics: Mapping[str, Metric], secret: Secret, now: float
) -> bool:
    """Turn what is due into frozen batches, as part of a transaction, and drop what is too old or too much.

    Returns:
        Whether a true number was deleted, of which nothing may stay on the disk.
    """
    reports = []
    rows = connection.execute(
        "SELECT metric, version, period, day, seen, cohort, bits, tag, number FROM open WHERE due <= ? ORDER BY due",
        (now,),
    ).fetchall()
    for row in rows:
        collected = _Collected(*row)
        metric = metrics.get(collected.metric)
        if metric is not None and metric.version != collected.version:
            metric = None
        outcome = _finish(connection, ledger, collected, metric, secret)
        connection.execute("DELETE FROM open WHERE metric = ? AND version = ? AND period = ?", collected.key)
        connection.execute("INSERT OR IGNORE INTO done VALUES (?, ?, ?)", collected.key)
        if isinstance(outcome, Report):
            ledger.add_report(collected.metric, collected.version, metric)
            reports.append(outcome)
        else:
            count(connection, f"lost:{outcome}")
    for start in range(0, len(reports), BATCH_REPORTS):
        _insert(connection, reports[start : start + BATCH_REPORTS], now)
    _trim(connection, now)
    return any(row[-1] is not None for row in rows)


def _finish(
    connection: sqlite3.Connection, ledger: Ledger, collected: _Collected, metric: Metric | None, secret: Secret
) -> Report | str:
    """Make the report of a period that is over, or return why there is none; the registry may have lost the metric."""
    if not ledger.covers(collected.metric, collected.version):
        return "max_epsilon"
    tag = collected.tag
    if collected.bits is not None:
        # A metric that is reported once speaks of the day it was recorded on, the others of their period.
        period = date.fromisoformat(collected.period or collected.day)
        report = Report(collected.metric, collected.version, period, collected.cohort, collected.bits)
    elif metric is None:
        return "metric_gone"  # and with it the knowledge of how its numbers are encoded
    else:
        room = ledger.room(metric)
        if isinstance(room, str):
            return room
        encoded, is_clamped = finished_encoding(metric, collected.seen, collected.number, secret)
        if is_clamped:
            count(connection, "clamped")
        report, tag = reveal(connection, metric, encoded, secret, date.fromisoformat(collected.day), room)
    if tag is not None:
        key = (collected.metric, collected.version)
        connection.execute("INSERT OR IGNORE INTO revealed VALUES (?, ?, ?)", (*key, tag))
    return report


def _insert(connection: sqlite3.Connection, reports: Sequence[Report], now: float) -> None:
    batch = Batch(new_batch_id(), tuple(reports))
    connection.execute(
        "INSERT INTO outbox (batch, body, reports, created, attempts, not_before, asked_until, claimed_until) "
        "VALUES (?, ?, ?, ?, 0, 0, 0, 0)",
        (batch.batch, encode_batch(batch), len(reports), now),
    )


def _trim(connection: sqlite3.Connection, now: float) -> None:
    """Drop what is too old, then the oldest beyond the bounds; all of it is counted."""
    too_old = connection.execute("SELECT id, reports FROM outbox WHERE created < ?", (now - MAX_AGE_SECONDS,))
    for identity, reports in too_old.fetchall():
        drop(connection, identity, reports, "too_old")
    number = size = 0
    waiting = connection.execute("SELECT id, reports, length(body) FROM outbox ORDER BY id DESC").fetchall()
    for identity, reports, length in waiting:
        number, size = number + 1, size + length
        if number > MAX_BATCHES or size > MAX_BYTES:
            drop(connection, identity, reports, "overflow")


def claim(connection: sqlite3.Connection, now: float, *, despite_backoff: bool = False) -> Waiting | None:
    """Take the oldest batch that may be sent and that no other process is sending."""
    # A moment further ahead than such moments ever are was written down before the clock was put back.
    row = connection.execute(
        "SELECT id, body, reports, attempts FROM outbox WHERE NOT claimed_until BETWEEN ? AND ? "
        "AND NOT asked_until BETWEEN ? AND ? AND (? OR NOT not_before BETWEEN ? AND ?) ORDER BY id LIMIT 1",
        (now, now + CLAIM_SECONDS, now, now + MAX_AGE_SECONDS, despite_backoff, now, now + LAST_BACKOFF_SECONDS),
    ).fetchone()
    if row is None:
        return None
    connection.execute("UPDATE outbox SET claimed_until = ? WHERE id = ?", (now + CLAIM_SECONDS, row[0]))
    return Waiting(*row)


def is_empty(connection: sqlite3.Connection) -> bool:
    """Tell whether no batch is left: none that waits, and none that another process is sending at the moment."""
    return connection.execute("SELECT 1 FROM outbox LIMIT 1").fetchone() is None


def delivered(connection: sqlite3.Connection, waiting: Waiting, rejected: Mapping[str, int]) -> None:
    """Take a batch that the collector has off the list; what it rejected is lost, for the reason it gave."""
    if connection.execute("DELETE FROM outbox WHERE id = ?", (waiting.id,)).rowcount:
        count(connection, "sent", waiting.reports - sum(rejected.values()))
        for reason, number in rejected.items():
            count(connection, f"lost:rejected_{reason}", number)


def drop(connection: sqlite3.Connection, identity: int, reports: int, reason: str) -> None:
    """Give a batch up, and count its reports."""
    if connection.execute("DELETE FROM outbox WHERE id = ?", (identity,)).rowcount:
        count(connection, f"lost:{reason}", reports)


def postpone(connection: sqlite3.Connection, waiting: Waiting, now: float, wanted: float | None) -> None:
    """Try again later: after the time the collector wants, or a random one that grows with every attempt."""
    longest = min(LAST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(waiting.attempts, 30))
    asked = now + min(wanted, MAX_AGE_SECONDS) if wanted is not None else 0.0
    connection.execute(
        "UPDATE outbox SET attempts = attempts + 1, not_before = ?, asked_until = ?, claimed_until = 0 WHERE id = ?",
        (now + random_share() * longest, asked, waiting.id),
    )


def split(connection: sqlite3.Connection, waiting: Waiting, now: float) -> None:
    """Make two batches of one that was too large, and nothing of a single report that was."""
    reports = decode_batch(waiting.body).reports
    if len(reports) < 2:
        drop(connection, waiting.id, waiting.reports, "too_large")
        return
    connection.execute("DELETE FROM outbox WHERE id = ?", (waiting.id,))
    half = len(reports) // 2
    for part in (reports[:half], reports[half:]):
        _insert(connection, part, now)


def discard_all(connection: sqlite3.Connection, reason: str) -> None:
    """Delete everything that waits or is being collected, and count it."""
    for table, number in (("open", "count(*)"), ("outbox", "sum(reports)")):
        [reports] = connection.execute(f"SELECT {number} FROM {table}").fetchone()  # noqa: S608  (names from above)
        if reports:
            count(connection, f"lost:{reason}", reports)
        connection.execute(f"DELETE FROM {table}")  # noqa: S608


def next_moment(connection: sqlite3.Connection) -> float | None:
    """When there will next be something to do, in seconds since 1970."""
    [moment] = connection.execute(
        "SELECT min(moment) FROM (SELECT min(due) AS moment FROM open "
        "UNION ALL SELECT min(max(not_before, asked_until, claimed_until)) FROM outbox)"
    ).fetchone()
    return None if moment is None else float(moment)
