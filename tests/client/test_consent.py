"""Consent: asked for, taken back, and overruled by the environment."""

from pathlib import Path

import pytest

from client.clients import balanced, make
from hubbub.client import Client, Stats
from hubbub.client.testing import FrozenClock, InMemoryCollector
from shared.registries import example


def test_enabled_has_no_default(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="enabled"):
        Client(None, registry=example(), state=tmp_path / "s.db")  # type: ignore[call-arg]


def test_without_consent_nothing_is_written_at_all(tmp_path: Path, clock: FrozenClock) -> None:
    client = make(tmp_path, clock, enabled=False)
    client.record("homepage", "example.org")
    assert not (tmp_path / "app").exists()
    assert not client.flush()


def test_taking_consent_back_deletes_the_queue_and_keeps_the_secret(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    client = make(tmp_path, clock, collector.url)
    client.record("homepage", "example.org")
    client.record("crashed", True)
    key = client._state.secret().key
    client.enabled = False
    assert balanced(client).lost == {"opted_out": 2}
    client.record("homepage", "example.org")
    client.enabled = True
    assert client._state.secret().key == key
    clock.advance(days=2)
    assert client.flush()
    assert collector.attempts == []


def test_forget_deletes_the_secret_too(tmp_path: Path, clock: FrozenClock) -> None:
    client = make(tmp_path, clock)
    client.record("homepage", "example.org")
    key = client._state.secret().key
    client.forget()
    assert client._state.secret().key != key
    assert client.stats() == Stats()


@pytest.mark.parametrize("name", ["DO_NOT_TRACK", "HUBBUB_DISABLED"])
@pytest.mark.parametrize(("value", "wins"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_the_environment_wins(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, name: str, value: str, wins: bool
) -> None:
    monkeypatch.setenv(name, value)
    client = make(tmp_path, clock)
    client.record("crashed", True)
    assert client.enabled is not wins
    assert (tmp_path / "app").exists() is not wins


def test_a_bad_value_is_told_once_and_ignored(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DO_NOT_TRACK", "perhaps")
    assert make(tmp_path, clock).enabled
    [line] = caplog.messages
    assert line == "DO_NOT_TRACK has a value that is ignored; allowed: 1 or 0"
