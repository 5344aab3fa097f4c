"""Seeing what the client does: what waits, what it has cost, and how a value is turned into what is sent."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from hubbub.client.clock import DELAY_SHARE, LENGTH, end_of
from hubbub.client.ledger import Cost, costs
from hubbub.client.privatizing import encode
from hubbub.shared.instantaneous import instantaneous_response
from hubbub.shared.packing import pack, unpack
from hubbub.shared.period import period_of
from hubbub.shared.permanent import permanent_response
from hubbub.shared.wire import decode_batch

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from hubbub.shared.metric import Metric
    from hubbub.shared.secret import Secret


NOTHING = Cost(0.0, 0.0)


class Pending(Struct, frozen=True):
    """A report that has not been delivered."""

    metric: str
    version: int
    period: str
    bits: str | None
    """The noisy bits as they would be sent; None while a number is being combined."""
    when: datetime
    """From when on it may be sent."""
    frozen: bool
    """Whether it is part of a batch already."""
    epsilon_spent: float
    """The most that the metric's earlier reports have cost this device, over all versions."""


class Walkthrough(Struct, frozen=True):
    """A value on its way through the three steps, as rows of 0 and 1."""

    metric: str
    cohort: int
    encoded: str
    permanent: str
    sent: str
    epsilon_report: float
    epsilon_lifetime: float
    epsilon_spent: float
    """The most that the metric's earlier reports have cost this device, over all versions."""
    earliest: datetime
    latest: datetime
    """Between these it would become sendable, were it recorded now."""


def walk_through(
    connection: sqlite3.Connection, metric: Metric, value: object, secret: Secret, now: datetime
) -> Walkthrough:
    """Show what would become of a value; nothing is recorded, and the last step is drawn anew every time."""
    cohort, encoded = secret.number % metric.encoding.cohorts, encode(metric, value, secret)
    remembered = permanent_response(metric, secret, cohort, encoded)
    sent = instantaneous_response(metric, remembered)
    end = end_of(metric.every, period_of(metric.every, now.date()))
    return Walkthrough(
        metric=metric.name,
        cohort=cohort,
        encoded=_spelled(pack(encoded, metric.size), metric.size),
        permanent=_spelled(pack(remembered, metric.size), metric.size),
        sent=_spelled(pack(sent, metric.size), metric.size),
        epsilon_report=metric.epsilon(),
        epsilon_lifetime=metric.epsilon(math.inf),
        epsilon_spent=costs(connection).get(metric.name, NOTHING).spent,
        earliest=end,
        latest=end + LENGTH[metric.every] / DELAY_SHARE,
    )


def pending(connection: sqlite3.Connection, metrics: Mapping[str, Metric]) -> list[Pending]:
    """List what has not been delivered, as part of a transaction."""
    spent = costs(connection)
    found = []
    for name, version, period, day, due, bits in connection.execute(
        "SELECT metric, version, period, day, due, bits FROM open ORDER BY due"
    ).fetchall():
        metric = metrics.get(name)
        size = metric.size if metric is not None and metric.version == version else None
        shown = None if bits is None else _spelled(bits, size or 8 * len(bits))
        when = datetime.fromtimestamp(due, UTC)
        found.append(Pending(name, version, period or day, shown, when, False, spent.get(name, NOTHING).spent))
    for body, moment in connection.execute(
        "SELECT body, max(not_before, asked_until) FROM outbox ORDER BY id"
    ).fetchall():
        for report in decode_batch(body).reports:
            metric = metrics.get(report.metric)
            size = metric.size if metric is not None and metric.version == report.version else 8 * len(report.bits)
            when = datetime.fromtimestamp(moment, UTC)
            shown, cost = _spelled(report.bits, size), spent.get(report.metric, NOTHING).spent
            found.append(Pending(report.metric, report.version, report.period.isoformat(), shown, when, True, cost))
    return found


def _spelled(packed: bytes, size: int) -> str:
    return unpack(packed, size).to01()
