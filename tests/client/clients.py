"""Clients for tests."""

from datetime import UTC, datetime
from pathlib import Path

from hubbub.client import Client, Stats
from hubbub.client.testing import FrozenClock
from shared.registries import example

MONDAY = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def make(tmp_path: Path, clock: FrozenClock, url: str | None = None, **options: object) -> Client:
    """A client of the example registry, enabled, in a folder of its own."""
    settings: dict[str, object] = {"registry": example(), "enabled": True, **options}
    return Client(url, state=tmp_path / "app" / "hubbub.db", clock=clock, **settings)  # type: ignore[arg-type]


def balanced(client: Client) -> Stats:
    """The client's counts, which must add up."""
    stats = client.stats()
    assert stats.recorded == stats.sent + stats.pending + sum(stats.lost.values())
    return stats
