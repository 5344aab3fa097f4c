"""The ledger: what each metric has cost this device over all its versions, and the most that it may ever cost.

When the first value of a version is recorded, the version gets a share of the device's ceiling: room for a number of
encodings, each at the price of a lifetime epsilon. The share depends on the registry and on the versions recorded
before it, and on no value. So neither a report nor its absence tells how many values a device has had.

A version has one meaning for ever: its fingerprint is kept, and another declaration of it is not used.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from hubbub.shared.budget import cost_of_values

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    from hubbub.shared.metric import Metric

DEFAULT_MAX_EPSILON = 1000.0
"""The ceiling of a device whose app bundles the registry and states none: a fuse against mistakes, not a promise."""

_SLACK = 1e-9
"""Absorbs the rounding of sums of epsilons."""


class Cost(Struct, frozen=True):
    """What a metric has cost this device, over all versions and declarations."""

    spent: float
    """Epsilon of the values revealed so far, at most."""
    reserved: float
    """Epsilon that they may reach: the lifetime epsilon of each encoding that there is room for."""


class Ledger:
    """The ledger of a state file, as part of a transaction."""

    def __init__(self, connection: sqlite3.Connection, metrics: Mapping[str, Metric], ceiling: float) -> None:
        self._connection = connection
        self._metrics = metrics
        self._ceiling = ceiling

    def room(self, metric: Metric) -> float | str:
        """Return how many encodings of a metric may be revealed (`math.inf`: any number), or why none may be."""
        row = self._connection.execute(
            "SELECT fingerprint, encodings FROM ledger WHERE metric = ? AND version = ?", (metric.name, metric.version)
        ).fetchone()
        if row is None:
            return self._enter(metric)
        if row[0] != metric.identity:
            return "other_declaration"
        return row[1] if self.covers(metric.name, metric.version) else "max_epsilon"

    def covers(self, name: str, version: int) -> bool:
        """Check that a version is within the ceiling, which the app may have lowered in the meantime."""
        [total] = self._connection.execute(
            "SELECT total(epsilon * encodings) FROM ledger "
            "WHERE id <= (SELECT id FROM ledger WHERE metric = ? AND version = ?)",
            (name, version),
        ).fetchone()
        return bool(total <= self._ceiling + _SLACK)

    def add_report(self, name: str, version: int, metric: Metric | None) -> None:
        """Account for one more report of a version; its metric is None if the registry no longer has that version."""
        key = (name, version)
        row = self._connection.execute(
            "SELECT fingerprint, epsilon, encodings, reports + 1, spent FROM ledger WHERE metric = ? AND version = ?",
            key,
        ).fetchone()
        if row is None:
            return
        fingerprint, epsilon, encodings, reports, spent = row
        [tags] = self._connection.execute(
            "SELECT count(*) FROM revealed WHERE metric = ? AND version = ?", key
        ).fetchone()
        revealed = tags or min(encodings, reports)
        cost = revealed * epsilon
        if metric is not None and metric.identity == fingerprint:
            cost = cost_of_values(metric, reports, revealed)
        self._connection.execute(
            "UPDATE ledger SET reports = ?, spent = ? WHERE metric = ? AND version = ?",
            (reports, max(spent, cost), *key),
        )

    def _enter(self, metric: Metric) -> float | str:
        """Give the first report of a version its share of what is left of the ceiling."""
        [reserved] = self._connection.execute("SELECT total(epsilon * encodings) FROM ledger").fetchone()
        known = set(self._connection.execute("SELECT metric, version FROM ledger").fetchall())
        waiting = {each.name: each for each in (*self._metrics.values(), metric)}
        wishes = [each.max_epsilon for each in waiting.values() if (each.name, each.version) not in known]
        share = fair_share(self._ceiling - reserved, metric.max_epsilon, wishes)
        epsilon = metric.epsilon(math.inf)
        room: float = math.inf if metric.encodings is None else metric.encodings
        if share < metric.max_epsilon:
            room = math.floor(max(share, 0.0) / epsilon + _SLACK)
        if room < fewest_encodings(metric):
            return "max_epsilon"
        self._connection.execute(
            "INSERT INTO ledger (metric, version, fingerprint, epsilon, encodings) VALUES (?, ?, ?, ?, ?)",
            (metric.name, metric.version, metric.identity, epsilon, room),
        )
        return room


def fewest_encodings(metric: Metric) -> int:
    """Return how many encodings a metric needs room for to be worth reporting.

    A repeated metric with a null encoding works with that and one value. Flags and means need all of theirs: they have
    no null encoding, so that fewer would show nowhere and bias the estimate.
    """
    if metric.every == "once":
        return 1
    return 2 if metric.encodings is None or metric.encoding.has_null else metric.encodings


def fair_share(room: float, wish: float, wishes: Iterable[float]) -> float:
    """Return how much of the room one of some wishes gets: all that it wants, or as much as any larger one."""
    left = sorted(wishes)
    for number, smallest in enumerate(left):
        level = room / (len(left) - number)
        if smallest >= level:
            return min(wish, level)
        room -= smallest
    return wish


def costs(connection: sqlite3.Connection) -> dict[str, Cost]:
    """Read what each metric has cost."""
    rows = connection.execute(
        "SELECT metric, total(spent), total(epsilon * encodings) FROM ledger GROUP BY metric ORDER BY metric"
    ).fetchall()
    return {name: Cost(spent, reserved) for name, spent, reserved in rows}
