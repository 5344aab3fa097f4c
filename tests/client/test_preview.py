"""Preview: what waits, and a value on its way through the three steps."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hubbub.client import Client
from hubbub.client.testing import FrozenClock, InMemoryCollector
from shared.registries import EXAMPLE, example

HUBBUB = Path(sys.executable).with_name("hubbub")
MONDAY = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([HUBBUB, "preview", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def place(tmp_path: Path) -> list[str]:
    """Options for a registry and a state with reports of every sort in it."""
    (tmp_path / "metrics.toml").write_text(EXAMPLE)
    clock = FrozenClock(MONDAY)
    client = Client(None, registry=tmp_path / "metrics.toml", state=tmp_path / "s.db", enabled=True, clock=clock)
    client.record("homepage", "example.org")
    client.record("minutes_used", 5)
    client.record("language", "eo")
    return ["--registry", str(tmp_path / "metrics.toml"), "--state", str(tmp_path / "s.db")]


def test_what_waits(place: list[str]) -> None:
    waiting = {each["metric"]: each for each in json.loads(run(*place, "--json").stdout)}
    assert set(waiting) == {"homepage", "minutes_used", "language"}
    assert len(waiting["homepage"]["bits"]) == 128
    assert set(waiting["homepage"]["bits"]) <= {"0", "1"}
    assert waiting["minutes_used"]["bits"] is None
    assert waiting["language"]["period"] == "2026-11-16"
    assert waiting["homepage"]["when"].startswith("2026-11-17T0")
    assert not waiting["homepage"]["frozen"]
    assert waiting["homepage"]["epsilon_spent"] == 0
    told = run(*place).stdout
    assert "(number being combined)" in told
    assert "2026-11-17 0" in told


def test_a_value_on_its_way(place: list[str]) -> None:
    shown = json.loads(run(*place, "--metric", "homepage", "--value", "example.org", "--json").stdout)
    again = json.loads(run(*place, "--metric", "homepage", "--value", "example.org", "--json").stdout)
    assert shown["encoded"].count("1") == 1
    assert shown["permanent"] == again["permanent"]
    assert shown["sent"] != again["sent"]  # 128 bits, each differing with chance 0.37: alike once in 10^25
    told = run(*place, "--metric", "crashed", "--value", "true").stdout
    assert "encoded   1" in told
    assert "epsilon 0.5000 for one report" in told
    assert "epsilon spent by this device before: at most 0.0000" in told
    earliest, latest = (datetime.fromisoformat(shown[name]) for name in ("earliest", "latest"))
    assert (latest - earliest).total_seconds() == 6 * 3600
    assert abs((earliest - datetime.now(UTC)).total_seconds()) <= 86400
    assert re.search(r"it would go between \d{4}-\d\d-\d\d 00:00 and \d{4}-\d\d-\d\d 06:00 UTC", told)


@pytest.mark.parametrize(("metric", "value"), [("minutes_used", "12.5"), ("startup_ms", "300"), ("theme", "dark")])
def test_values_of_every_sort(place: list[str], metric: str, value: str) -> None:
    assert "permanent" in run(*place, "--metric", metric, "--value", value).stdout


def test_mistakes(place: list[str], tmp_path: Path) -> None:
    assert "go together" in run(*place, "--metric", "crashed", code=2).stderr
    assert "allowed: True or False" in run(*place, "--metric", "crashed", "--value", "sesame", code=1).stderr
    assert "allowed: a number" in run(*place, "--metric", "minutes_used", "--value", "sesame", code=1).stderr
    assert "not in the registry" in run(*place, "--metric", "nope", "--value", "1", code=1).stderr
    missing = ["--registry", place[1], "--state", str(tmp_path / "none.db")]
    assert "does not exist" in run(*missing, code=1).stderr
    assert not (tmp_path / "none.db").exists()


def test_epsilon_spent_grows_and_frozen_reports_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FrozenClock(MONDAY)
    with InMemoryCollector() as collector:
        client = Client(collector.url, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock)
        for _ in range(2):
            client.record("crashed", True)
            clock.advance(days=2)
            client.flush()
        assert len(collector.reports) == 2
        client.record("crashed", True)
        [waiting] = client.preview()
        # Two reports, of one or of two encodings: that one flag was true twice is not on the disk.
        assert waiting.epsilon_spent == pytest.approx(2 * example()["crashed"].epsilon(1))
        clock.advance(days=2)
        monkeypatch.setattr(collector, "answer", lambda _: (503, {}, b""))
        assert not client.flush()
        [frozen] = client.preview()
    assert frozen.frozen
    assert (frozen.bits, frozen.period) == (waiting.bits, waiting.period)
    assert frozen.when > MONDAY


def test_nothing_waits(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(EXAMPLE)
    client = Client(None, registry=example(), state=tmp_path / "s.db", enabled=True)
    assert client.preview() == []
    told = run("--registry", str(tmp_path / "metrics.toml"), "--state", str(tmp_path / "s.db")).stdout
    assert told == "Nothing waits to be sent.\n"


def test_a_state_that_cannot_be_read_previews_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.db").mkdir()
    client = Client(None, registry=example(), state=tmp_path / "s.db", enabled=True)
    assert client.preview() == []
    assert client.stats().problem
