"""Recording: what is kept of the values of a period, what is refused, and that no true value is written."""

import logging
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from client.clients import MONDAY, balanced, make
from hubbub.client import Stats
from hubbub.client.recording import encoding_tag
from hubbub.client.testing import FrozenClock, InMemoryCollector
from hubbub.shared import Registry, UnknownMetricError, ValueRefusedError
from hubbub.shared.encode import NULL
from hubbub.shared.wire import Report
from shared.registries import EXAMPLE, VALUES, example


def test_every_kind_arrives(tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector) -> None:
    client = make(tmp_path, clock, collector.url)
    for name, value in VALUES.items():
        client.record(name, value)
    clock.advance(days=10)
    assert client.flush()
    assert sorted(report.metric for report in collector.reports) == sorted(VALUES)
    assert len(collector.batches) == 1
    for report in collector.reports:
        assert len(report.bits) == example()[report.metric].width


@pytest.mark.parametrize(("combine", "expected"), [("sum", 60.0), ("max", 30.0), ("mean", 20.0), ("last", 30.0)])
def test_numbers_are_combined(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector, combine: str, expected: float
) -> None:
    """A histogram with almost no noise shows which number it was: of 32 devices none shows it with chance 2^-32."""
    text = f"""
    [metrics.number]
    description = "number"
    kind = "histogram"
    every = "day"
    edges = [0, 15, 25, 45, 75]
    sent = 4
    combine = "{combine}"
    privacy = {{ report = 18, lifetime = 20 }}
    """
    found: dict[float, int] = {}
    for number in range(32):
        client = make(tmp_path / str(number), clock, collector.url, registry=Registry.parse(text))
        for value in (10, 20, 30):
            client.record("number", value)
        clock.advance(days=2)
        client.flush()
        clock.advance(days=-2)
        client.close()
    for report in collector.reports:
        for bucket, middle in enumerate((10.0, 20.0, 30.0, 60.0)):
            found[middle] = found.get(middle, 0) + (report.bits[0] >> bucket & 1)
    assert max(found, key=found.__getitem__) == expected


def test_the_kept_value_is_any_of_them_with_the_same_chance(tmp_path: Path) -> None:
    """2,000 devices record four categories once: each is the kept one 500 times, give or take 5.4 deviations.

    The tag of the kept encoding tells which it was, because it is a function of the secret and the encoding.
    """
    from hubbub.shared import Secret

    text = """
    [metrics.choice]
    description = "choice"
    kind = "category"
    every = "day"
    categories = ["a", "b", "c", "d", "unused"]
    lifetime_values = 5
    privacy = { report = 1, lifetime = 2 }
    """
    registry = Registry.parse(text)
    metric, kept = registry["choice"], dict.fromkeys("abcd", 0)
    from hubbub.client.ledger import Ledger
    from hubbub.client.recording import record
    from hubbub.client.state import State

    state = State(tmp_path / "state.db")
    for _ in range(2000):
        secret = Secret.generate()
        with state.transaction() as connection:
            connection.execute("DELETE FROM open")
            for value in "abcd":
                ledger = Ledger(connection, registry, 1000)
                assert record(connection, ledger, metric, value, secret, MONDAY.date()) is None
            [tag] = connection.execute("SELECT tag FROM open").fetchone()
        [value] = [value for value in "abcd" if encoding_tag(metric, metric.encode(value, 0, 0), secret) == tag]
        kept[value] += 1
    assert all(abs(number - 500) < 5.4 * (2000 * 3 / 16) ** 0.5 for number in kept.values())


def test_past_its_lifetime_values_a_device_reports_no_valid_value(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    """homepage may reveal 8 encodings, one of them the null encoding: twelve days with twelve sites, twelve reports."""
    client = make(tmp_path, clock, collector.url)
    for number in range(12):
        client.record("homepage", f"site-{number}.example")
        clock.advance(days=1)
    clock.advance(days=1)
    client.flush()
    assert len(collector.reports) == 12
    with client._state.transaction() as connection:
        tags = {row[0] for row in connection.execute("SELECT tag FROM revealed WHERE metric = 'homepage'")}
    assert len(tags) <= 8  # fewer where two sites set the same bit
    assert encoding_tag(example()["homepage"], NULL, client._state.secret()) in tags


def test_expired_metrics_are_not_recorded(tmp_path: Path, collector: InMemoryCollector) -> None:
    client = make(tmp_path, FrozenClock(datetime(2032, 1, 1, tzinfo=UTC)), collector.url)
    client.record("language", "eo")
    assert balanced(client) == Stats(refused={"expired": 1})


def test_mistakes_are_counted_and_raise_only_when_strict(tmp_path: Path, clock: FrozenClock) -> None:
    client = make(tmp_path, clock)
    client.record("nope", 1)
    client.record("crashed", "sesame")
    client.record("minutes_used", "sesame")
    client.record("minutes_used", 1e9)
    assert balanced(client).refused == {"unfit_value": 2, "unknown_metric": 1}
    strict = make(tmp_path, clock, strict=True)
    with pytest.raises(UnknownMetricError):
        strict.record("nope", 1)
    with pytest.raises(ValueRefusedError):
        strict.record("crashed", "sesame")
    assert balanced(client).refused == {"unfit_value": 3, "unknown_metric": 2}


def test_numbers_outside_their_range_are_counted(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    client = make(tmp_path, clock, collector.url)
    client.record("startup_ms", 10**400)
    client.record("minutes_used", 5000)
    clock.advance(days=2)
    client.flush()
    assert balanced(client).clamped == 2


def test_registry_from_a_file(tmp_path: Path, clock: FrozenClock) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(EXAMPLE)
    client = make(tmp_path, clock, registry=path)
    client.record("crashed", True)
    assert balanced(client).recorded == 1


def test_an_upgrade_of_the_app_sends_what_the_old_one_recorded(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    make(tmp_path, clock).record("homepage", "example.org")
    make(tmp_path, clock).record("minutes_used", 5)
    text = EXAMPLE.replace("[metrics.homepage]", "[metrics.homepage]\nversion = 2").replace(
        "minutes_used", "hours_used"
    )
    client = make(tmp_path, clock, collector.url, registry=Registry.parse(text))
    clock.advance(days=2)
    client.flush()
    [report] = collector.reports
    assert (report.metric, report.version) == ("homepage", 1)
    assert balanced(client).lost == {"metric_gone": 1}


def test_values_are_nowhere(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the state file, the log or on the wire: neither as they are nor in any common disguise."""
    import base64
    import hashlib

    caplog.set_level(logging.DEBUG)
    value = "sesame-open-sesame.example"
    client = make(tmp_path, clock, collector.url)
    client.record("homepage", value)
    client.record("homepage", value + "\ud800")
    client.record("theme", value)
    client.record("crashed", value)
    written = b"".join(path.read_bytes() for path in (tmp_path / "app").iterdir())
    clock.advance(days=2)
    client.flush()
    written += b"".join(path.read_bytes() for path in (tmp_path / "app").iterdir())
    assert collector.reports
    everything = written + b"".join(collector.attempts) + "\n".join(caplog.messages).encode()
    raw = value.encode()
    disguises = [raw, value.encode("utf-16-le"), raw.hex().encode(), base64.b64encode(raw).rstrip(b"=")[:-1]]
    for algorithm in ("md5", "sha1", "sha256", "sha3_256", "blake2b"):
        digest = hashlib.new(algorithm, raw)
        disguises += [digest.digest()[:16], digest.hexdigest()[:32].encode()]
    import mmh3

    disguises += [mmh3.hash_bytes(raw, 0, True), mmh3.hash_bytes(raw, 0, False)]
    for disguise in disguises:
        assert disguise not in everything


def test_kept_reports_are_what_is_sent(tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector) -> None:
    """What is on disk before the period ends is the report, bit for bit: nothing is drawn again."""
    client = make(tmp_path, clock, collector.url)
    client.record("homepage", "example.org")
    with sqlite3.connect(tmp_path / "app" / "hubbub.db") as database:
        [(cohort, bits)] = database.execute("SELECT cohort, bits FROM open").fetchall()
    database.close()
    clock.advance(days=2)
    client.flush()
    assert collector.reports == [Report("homepage", 1, MONDAY.date(), cohort, bits)]


def test_a_fault_of_ours_is_not_a_fault_of_the_app(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And tells nothing of the value: only the type of what went wrong."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("sesame")

    client = make(tmp_path, clock)
    monkeypatch.setattr("hubbub.client.client.record", broken)
    client.record("homepage", "sesame")
    assert client.stats().problem == "record failed with RuntimeError"
    assert caplog.messages == ["nothing is recorded: record failed with RuntimeError"]
