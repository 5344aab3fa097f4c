"""The client for asyncio."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

import hubbub.client
from client.clients import counts
from hubbub.client import AsyncClient, Stats
from hubbub.client.testing import FrozenClock, InMemoryCollector
from shared.registries import example

MONDAY = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def test_the_same_methods(tmp_path: Path) -> None:
    async def use(url: str) -> None:
        clock = FrozenClock(MONDAY)
        options = {"registry": example(), "state": tmp_path / "s.db", "enabled": True, "clock": clock}
        async with AsyncClient(url, **options) as client:
            assert client.enabled
            await asyncio.gather(*(client.record("crashed", True) for _ in range(20)))
            assert len(await client.preview()) == 1
            clock.advance(days=2)
            assert await client.flush()
            assert counts(await client.stats()) == Stats(recorded=1, sent=1)
            await client.record("crashed", True)
            await client.set_enabled(False)
            assert counts(await client.stats()) == Stats(recorded=2, sent=1, lost={"opted_out": 1})
            await client.forget()
            assert await client.stats() == Stats()

    with InMemoryCollector() as collector:
        asyncio.run(use(collector.url))
        assert len(collector.reports) == 1


def test_the_loop_goes_on_while_the_collector_is_silent(tmp_path: Path) -> None:
    """While flush waits for an answer that does not come, the loop takes other turns."""
    import socket

    async def use(url: str) -> int:
        clock = FrozenClock(MONDAY)
        client = AsyncClient(url, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock)
        await client.record("crashed", True)
        clock.advance(days=2)
        flushing = asyncio.ensure_future(client.flush(timeout=0.5))
        turns = 0
        while not flushing.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert not await flushing
        await client.close(timeout=0)
        return turns

    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert asyncio.run(use(f"http://127.0.0.1:{silent.getsockname()[1]}")) > 3


def test_it_is_imported_only_when_asked_for() -> None:
    assert hubbub.client.AsyncClient is AsyncClient
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        hubbub.client.Nothing  # noqa: B018
