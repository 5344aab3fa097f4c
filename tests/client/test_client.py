"""The client from the app's side: what it records, when it sends, and that it never hurts."""

import logging
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hubbub.client import Client, Stats
from hubbub.client.testing import FrozenClock, InMemoryCollector
from hubbub.shared import Registry, UnknownMetricError, ValueRefusedError
from hubbub.shared.wire import Report
from shared.registries import EXAMPLE, VALUES, example

MONDAY = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(MONDAY)


@pytest.fixture
def collector() -> Iterator[InMemoryCollector]:
    with InMemoryCollector() as running:
        yield running


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DO_NOT_TRACK", "HUBBUB_DISABLED"):
        monkeypatch.delenv(name, raising=False)


def make(tmp_path: Path, clock: FrozenClock, url: str | None = None, **options: object) -> Client:
    settings: dict[str, object] = {"registry": example(), "enabled": True, **options}
    return Client(url, state=tmp_path / "app" / "hubbub.db", clock=clock, **settings)  # type: ignore[arg-type]


def balanced(client: Client) -> Stats:
    stats = client.stats()
    assert stats.recorded == stats.sent + stats.pending + sum(stats.lost.values())
    return stats


class TestPeriods:
    def test_a_report_goes_after_its_period_and_a_random_delay(
        self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
    ) -> None:
        client = make(tmp_path, clock, collector.url)
        client.record("homepage", "example.org")
        assert client.flush()
        assert collector.reports == []
        clock.advance(hours=14.4)  # 23:54: the day is not over
        assert client.flush()
        assert collector.reports == []
        clock.advance(hours=6.2)  # 06:06: a quarter of a day has passed since midnight
        assert client.flush()
        [report] = collector.reports
        assert (report.metric, report.version, report.period) == ("homepage", 1, MONDAY.date())
        assert balanced(client) == Stats(recorded=1, sent=1)

    def test_delays_are_spread_over_a_quarter_of_the_period(self, tmp_path: Path, clock: FrozenClock) -> None:
        """Of 60 clients, all draw a delay in range; the chance that all fall into one half of it is 2 * 2^-60."""
        moments = []
        for number in range(60):
            client = make(tmp_path / str(number), clock)
            client.record("crashed", True)
            with sqlite3.connect(tmp_path / str(number) / "app" / "hubbub.db") as database:
                moments += [row[0] for row in database.execute("SELECT due FROM open")]
            database.close()
        end = datetime(2026, 11, 17, tzinfo=UTC).timestamp()
        assert all(end <= moment <= end + 6 * 3600 for moment in moments)
        assert min(moments) < end + 3 * 3600 < max(moments)

    def test_weeks_end_on_sunday(self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector) -> None:
        client = make(tmp_path, clock, collector.url)
        clock.advance(days=2)
        client.record("theme", "dark")
        clock.advance(days=4.5)
        client.flush()
        assert collector.reports == []
        clock.advance(days=2.5)
        client.flush()
        [report] = collector.reports
        assert report.period == MONDAY.date()

    def test_one_report_a_period_however_often_it_is_recorded(
        self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
    ) -> None:
        client = make(tmp_path, clock, collector.url)
        for _ in range(3):
            for _ in range(5):
                client.record("homepage", "example.org")
            clock.advance(days=1)
        clock.advance(days=1)
        assert client.flush()
        assert sorted(report.period.day for report in collector.reports) == [16, 17, 18]
        assert balanced(client).recorded == 3

    def test_once_is_once_for_ever(self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector) -> None:
        client = make(tmp_path, clock, collector.url)
        for _ in range(4):
            client.record("language", "eo")
            clock.advance(days=2)
            client.flush()
        clock.advance(days=900)
        client.record("language", "eo")
        client.flush()
        assert len(collector.reports) == 1
        assert balanced(client).refused == {"period_over": 4}

    def test_a_clock_put_back_makes_no_second_report(
        self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
    ) -> None:
        client = make(tmp_path, clock, collector.url)
        client.record("crashed", True)
        clock.advance(days=2)
        client.flush()
        clock.advance(days=-2)
        client.record("crashed", True)
        clock.advance(days=2)
        client.flush()
        assert len(collector.reports) == 1
        assert balanced(client).refused == {"period_over": 1}

    def test_a_clock_put_forward_loses_nothing(
        self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
    ) -> None:
        client = make(tmp_path, clock, collector.url)
        client.record("crashed", True)
        clock.advance(days=3000)
        client.record("crashed", True)
        client.flush()
        clock.advance(days=2)
        client.flush()
        assert len(collector.reports) == 2
        assert balanced(client).sent == 2


class TestRecording:
    def test_every_kind_arrives(self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector) -> None:
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
        self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector, combine: str, expected: float
    ) -> None:
        """A histogram with almost no noise shows which number it was: 128 devices err together with chance 2^-128."""
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
        for number in range(128):
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

    def test_the_kept_value_is_any_of_them_with_the_same_chance(self, tmp_path: Path) -> None:
        """2,000 devices record four categories once: each is the kept one 500 times, give or take 5.4 deviations.

        The tag of the kept encoding tells which it was, because it is a function of the secret and the encoding.
        """
        from hubbub.client.recording import encoding_tag
        from hubbub.shared import Secret

        text = """
        [metrics.choice]
        description = "choice"
        kind = "category"
        every = "day"
        categories = ["a", "b", "c", "d"]
        privacy = { report = 1, lifetime = 2 }
        """
        registry = Registry.parse(text)
        kept = dict.fromkeys("abcd", 0)
        from hubbub.client.recording import record
        from hubbub.client.state import State

        state = State(tmp_path / "state.db")
        for _ in range(2000):
            secret = Secret.generate()
            with state.transaction() as connection:
                connection.execute("DELETE FROM open")
                for value in "abcd":
                    assert record(connection, registry["choice"], value, secret, MONDAY.date()) is None
                [tag] = connection.execute("SELECT tag FROM open").fetchone()
            [value] = [value for value in "abcd" if encoding_tag(registry["choice"], value, secret) == tag]
            kept[value] += 1
        assert all(abs(number - 500) < 5.4 * (2000 * 3 / 16) ** 0.5 for number in kept.values())

    def test_lifetime_values_silence_the_device(
        self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
    ) -> None:
        """homepage may reveal 8 encodings: the ninth stays at home, the first may be sent again."""
        client = make(tmp_path, clock, collector.url)
        for number in range(12):
            client.record("homepage", f"site-{number}.example")
            clock.advance(days=1)
        clock.advance(days=1)
        client.flush()
        # Some of the twelve may share their bit, and then count once: so 8 are sent at least.
        silent = 12 - len(collector.reports)
        assert 0 < silent <= 4
        stats = balanced(client)
        assert stats.lost.get("lifetime_values", 0) + stats.refused.get("lifetime_values", 0) == silent
        client.record("homepage", "site-0.example")
        clock.advance(days=2)
        client.flush()
        assert len(collector.reports) == 12 - silent + 1

    def test_expired_metrics_are_not_recorded(self, tmp_path: Path, collector: InMemoryCollector) -> None:
        client = make(tmp_path, FrozenClock(datetime(2032, 1, 1, tzinfo=UTC)), collector.url)
        client.record("language", "eo")
        assert balanced(client) == Stats(refused={"expired": 1})

    def test_mistakes_are_counted_and_raise_only_when_strict(self, tmp_path: Path, clock: FrozenClock) -> None:
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
        self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
    ) -> None:
        client = make(tmp_path, clock, collector.url)
        client.record("startup_ms", 10**400)
        client.record("minutes_used", 5000)
        clock.advance(days=2)
        client.flush()
        assert balanced(client).clamped == 2


class TestConsent:
    def test_enabled_has_no_default(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="enabled"):
            Client(None, registry=example(), state=tmp_path / "s.db")  # type: ignore[call-arg]

    def test_without_consent_nothing_is_written_at_all(self, tmp_path: Path, clock: FrozenClock) -> None:
        client = make(tmp_path, clock, enabled=False)
        client.record("homepage", "example.org")
        assert not (tmp_path / "app").exists()
        assert not client.flush()

    def test_taking_consent_back_deletes_the_queue_and_keeps_the_secret(
        self, tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
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

    def test_forget_deletes_the_secret_too(self, tmp_path: Path, clock: FrozenClock) -> None:
        client = make(tmp_path, clock)
        client.record("homepage", "example.org")
        key = client._state.secret().key
        client.forget()
        assert client._state.secret().key != key
        assert client.stats() == Stats()

    @pytest.mark.parametrize("name", ["DO_NOT_TRACK", "HUBBUB_DISABLED"])
    @pytest.mark.parametrize(("value", "wins"), [("1", True), ("true", True), ("0", False), ("", False)])
    def test_the_environment_wins(
        self, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, name: str, value: str, wins: bool
    ) -> None:
        monkeypatch.setenv(name, value)
        client = make(tmp_path, clock)
        client.record("crashed", True)
        assert client.enabled is not wins
        assert (tmp_path / "app").exists() is not wins

    def test_a_bad_value_is_told_once_and_ignored(
        self, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setenv("DO_NOT_TRACK", "perhaps")
        assert make(tmp_path, clock).enabled
        [line] = caplog.messages
        assert line == "DO_NOT_TRACK has a value that is ignored; allowed: 1 or 0"


class TestState:
    def test_modes_of_file_and_folder(self, tmp_path: Path, clock: FrozenClock) -> None:
        os.umask(0o022)
        client = make(tmp_path, clock)
        client.record("crashed", True)
        folder = tmp_path / "app"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        names = {path.name for path in folder.iterdir()}
        assert "hubbub.db" in names
        for path in folder.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_the_secret_survives(self, tmp_path: Path, clock: FrozenClock) -> None:
        first = make(tmp_path, clock)._state.secret().key
        assert make(tmp_path, clock)._state.secret().key == first

    @pytest.mark.parametrize("damage", ["DELETE FROM meta", "UPDATE meta SET value = x'00'"])
    def test_a_lost_secret_is_told_and_not_papered_over(
        self, tmp_path: Path, clock: FrozenClock, damage: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        client = make(tmp_path, clock)
        client.record("crashed", True)
        client._state.close()
        with sqlite3.connect(tmp_path / "app" / "hubbub.db") as database:
            database.execute(damage)
        database.close()
        again = make(tmp_path, clock)
        for _ in range(3):
            again.record("crashed", False)
        assert "secret is missing or damaged" in (again.stats().problem or "")
        assert len(caplog.messages) == 1

    @pytest.mark.parametrize("damage", ["garbage", "other program", "newer", "folder"])
    def test_an_unusable_file_hurts_nobody_and_is_left_alone(
        self, tmp_path: Path, clock: FrozenClock, damage: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "app" / "hubbub.db"
        path.parent.mkdir()
        if damage == "garbage":
            path.write_bytes(b"not a database" * 1000)
        elif damage == "folder":
            path.mkdir()
        else:
            with sqlite3.connect(path) as database:
                database.execute("CREATE TABLE mine (x)")
                if damage == "newer":
                    database.execute("PRAGMA application_id = 1752523362")
                    database.execute("PRAGMA user_version = 99")
            database.close()
        before = path.read_bytes() if path.is_file() else b""
        client = make(tmp_path, clock)
        for _ in range(3):
            client.record("crashed", True)
        assert client.stats().problem
        assert not client.flush()
        assert len(caplog.messages) == 1
        client._state.close()
        assert (path.read_bytes() if path.is_file() else b"")[100:] == before[100:]

    def test_a_problem_that_passes_is_forgotten(self, tmp_path: Path, clock: FrozenClock) -> None:
        blocker = tmp_path / "app"
        blocker.write_text("a file where the folder should be")
        client = make(tmp_path, clock)
        client.record("crashed", True)
        assert client.stats().problem
        blocker.unlink()
        client.record("crashed", True)
        assert balanced(client) == Stats(recorded=1, pending=1)


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


FULL_DISK = """
import resource, signal, sys
from hubbub.client import Client

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
client = Client(None, registry=sys.argv[1], state=sys.argv[2], enabled=True)
client.record("crashed", True)
assert client.stats().recorded == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))  # no file may grow any more
for _ in range(3):
    client.record("theme", "dark")
assert client.stats().problem, client.stats()
assert client.preview() == [] or len(client.preview()) == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
client.record("theme", "dark")
stats = client.stats()
assert (stats.recorded, stats.pending, stats.problem) == (2, 2, None), stats
"""

READ_ONLY = """
import os, sys
from hubbub.client import Client

client = Client("http://127.0.0.1:1", registry=sys.argv[1], state=sys.argv[2], enabled=True)
if os.geteuid() == 0:
    os.setuid(65534)  # nobody: root may write everywhere
client.record("crashed", True)
client.record("theme", "dark")
assert client.stats().problem
assert client.flush() is False
client.close()
"""


@pytest.mark.parametrize("program", [FULL_DISK, READ_ONLY], ids=["full disk", "not ours to write"])
def test_a_disk_that_takes_nothing_hurts_nobody(tmp_path: Path, program: str) -> None:
    registry = tmp_path / "metrics.toml"
    registry.write_text(EXAMPLE)
    folder = tmp_path / "place"
    folder.mkdir()
    if program is READ_ONLY:
        folder.chmod(0o500)
    command = [sys.executable, "-c", program, str(registry), str(folder / "hubbub.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    folder.chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("nothing is recorded") == 1


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
