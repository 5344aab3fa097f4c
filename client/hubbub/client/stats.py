"""Counts of everything: each report ever recorded is sent, pending, or lost for a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from hubbub.client.ledger import Cost, costs

if TYPE_CHECKING:
    import sqlite3


class Stats(Struct, frozen=True):
    """What became of the reports: `recorded == sent + pending + sum(lost.values())`, always."""

    recorded: int = 0
    """Reports begun: one for each metric and period with a value."""
    sent: int = 0
    """Reports that the collector has."""
    pending: int = 0
    """Reports being collected, or waiting to be sent."""
    lost: dict[str, int] = field(default_factory=dict)
    """Reports given up, by reason."""
    refused: dict[str, int] = field(default_factory=dict)
    """Values that are not part of a report, by reason; an invalid value is reported as "no valid value"."""
    clamped: int = 0
    """Numbers outside their range, which count as its nearer end."""
    ledger: dict[str, Cost] = field(default_factory=dict)
    """What each metric has cost this device, over all its versions."""
    problem: str | None = None
    """Why the client cannot work at the moment, if it cannot."""


def read_stats(connection: sqlite3.Connection, problem: str | None) -> Stats:
    """Add it all up, as part of a transaction."""
    counters = dict(connection.execute("SELECT name, n FROM counter").fetchall())
    [being_collected] = connection.execute("SELECT count(*) FROM open").fetchone()
    [waiting] = connection.execute("SELECT coalesce(sum(reports), 0) FROM outbox").fetchone()
    return Stats(
        recorded=counters.get("recorded", 0),
        sent=counters.get("sent", 0),
        pending=being_collected + waiting,
        lost=_group(counters, "lost:"),
        refused=_group(counters, "refused:"),
        clamped=counters.get("clamped", 0),
        ledger=costs(connection),
        problem=problem,
    )


def _group(counters: dict[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): number for name, number in sorted(counters.items()) if name.startswith(prefix)}
