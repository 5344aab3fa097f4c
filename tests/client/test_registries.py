"""A registry fetched from the collector."""

from pathlib import Path
from typing import Any

import pytest

from client.clients import balanced
from client.scripted import refused
from hubbub.client import Client, Stats
from hubbub.client.testing import FrozenClock, InMemoryCollector
from shared.registries import example


def fetching(tmp_path: Path, clock: FrozenClock, url: str, **options: Any) -> Client:
    return Client(url, registry=None, state=tmp_path / "s.db", enabled=True, clock=clock, max_epsilon=100, **options)


def test_it_comes_from_the_collector_and_is_kept(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    collector.registry = example().text
    client = fetching(tmp_path, clock, collector.url)
    client.flush()
    client.record("crashed", True)
    assert balanced(client).recorded == 1
    # Offline, with the registry of the last time: the collector has moved to where nobody listens yet.
    again = fetching(tmp_path, clock, again_url := refused(), previous_collectors=[collector.url])
    again.record("theme", "dark")
    assert balanced(again).recorded == 2
    again.close()  # or its own thread might take the batch
    clock.advance(days=10)
    client.close()
    client = fetching(tmp_path, clock, collector.url, previous_collectors=[again_url])
    assert client.flush()
    assert balanced(client) == Stats(recorded=2, sent=2)


def test_without_one_nothing_is_recorded_and_that_is_counted(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    client = fetching(tmp_path, clock, collector.url)
    client.record("crashed", True)
    client.flush()
    client.record("crashed", True)
    assert balanced(client) == Stats(refused={"no_registry": 2})
    assert client.preview() == []


@pytest.mark.parametrize("text", ["nonsense", "[metrics.crashed]", "#" * 2_000_000])
def test_a_bad_one_leaves_the_one_before_in_force(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector, text: str
) -> None:
    collector.registry = example().text
    client = fetching(tmp_path, clock, collector.url)
    client.flush()
    collector.registry = text
    clock.advance(days=2)
    client.flush()
    client.record("crashed", True)
    assert balanced(client).recorded == 1


def test_a_new_one_is_taken_after_a_day(tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector) -> None:
    collector.registry = example().text
    client = fetching(tmp_path, clock, collector.url)
    client.flush()
    collector.registry = example().text.replace("metrics.crashed", "metrics.failed")
    client.flush()
    client.record("failed", True)
    assert balanced(client).refused == {"unknown_metric": 1}
    clock.advance(days=1)
    client.flush()
    client.record("failed", True)
    assert balanced(client).recorded == 1
