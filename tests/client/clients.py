"""Clients for tests."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from hubbub.client import Client, Stats
from hubbub.client.testing import FrozenClock
from shared.registries import example

MONDAY = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def make(tmp_path: Path, clock: FrozenClock, url: str | None = None, **options: object) -> Client:
    """A client of the example registry, enabled, in a folder of its own."""
    settings: dict[str, object] = {"registry": example(), "enabled": True, **options}
    return Client(url, state=tmp_path / "app" / "hubbub.db", clock=clock, **settings)  # type: ignore[arg-type]


def balanced(client: Client) -> Stats:
    """The client's counts, which must add up, without the ledger."""
    stats = client.stats()
    assert stats.recorded == stats.sent + stats.pending + sum(stats.lost.values())
    return counts(stats)


def counts(stats: Stats) -> Stats:
    """The counts alone, without the ledger."""
    return msgspec.structs.replace(stats, ledger={})


def with_reports(url: str, tmp_path: Path, clock: FrozenClock, **options: object) -> Client:
    """A client with three reports that may be sent, and no background thread in the way."""
    recorder = Client(None, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock)
    for name, value in (("homepage", "example.org"), ("crashed", True), ("startup_ms", 5)):
        recorder.record(name, value)
    clock.advance(days=2)
    return Client(url, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock, **options)  # type: ignore[arg-type]
