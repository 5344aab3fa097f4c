"""A collector, or a registry, that wants to know more than it was promised: each test is an attack that once worked."""

import math
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy import special

from client.clients import MONDAY, balanced, make
from client.one_metric import CATEGORY, FLAG, HISTOGRAM, MEAN, STRING, SUM, watch, watch_encodings
from client.scripted import Scripted
from hubbub.client import DEFAULT_MAX_EPSILON, Client, CopiedStateError, StateError
from hubbub.client.ledger import fair_share
from hubbub.client.testing import FrozenClock, InMemoryCollector
from hubbub.shared import ParameterError, Registry, Secret, ValueRefusedError
from hubbub.shared.permanent import permanent_response, rounding_offset
from shared.registries import one_metric, text_of

FALSE_ALARM = 1e-7


def device(tmp_path: Path, clock: FrozenClock, url: str | None, keys: dict[str, str], **options: Any) -> Client:
    """A client with one metric, called `it`."""
    return make(tmp_path, clock, url, registry=Registry.parse(text_of(keys)), **options)


class TestDrawsAreBoundToTheirMeaning:
    """Two declarations of one version: what is drawn for the one says nothing about the other."""

    def test_two_privacies_together_tell_no_more_than_their_sum(self) -> None:
        """Lifetime epsilons of 1.00 and 0.04: once they shared a draw, and one device in five gave itself away.

        For each of the four pairs of answers, the odds of the one value against the other are at most e^1.04. The lower
        bound of Clopper and Pearson exceeds that with a chance of at most 1e-7, here for eight odds.
        """
        strong, weak = (
            one_metric(**FLAG | {"privacy": f"{{ report = {lifetime / 2}, lifetime = {lifetime} }}"})
            for lifetime in (1.0, 0.04)
        )
        sum_of_both = strong.epsilon(math.inf) + weak.epsilon(math.inf)
        seen = {(value, pair): 0 for value in (0, 1) for pair in range(4)}
        for value in (0, 1):
            for number in range(20_000):
                secret = Secret(struct.pack("<Q", number) + bytes([value]) * 24)
                pair = 2 * permanent_response(strong, secret, 0, value) + permanent_response(weak, secret, 0, value)
                seen[value, pair] += 1
        for pair in range(4):
            for value in (0, 1):
                right, wrong = seen[value, pair], seen[1 - value, pair]
                odds = special.betaincinv(right, wrong + 1, FALSE_ALARM / 8)
                assert math.log(odds / (1 - odds)) <= sum_of_both

    def test_a_range_that_changes_every_day_finds_no_number(self) -> None:
        """Offsets of 200 ranges are as many fresh draws, not one that can be cornered from all sides."""
        secret = Secret(bytes(range(32)))
        ranges = [one_metric(**MEAN | {"high": str(high)}) for high in range(1, 201)]
        assert len({rounding_offset(metric, secret) for metric in ranges}) == 200

    def test_a_device_uses_one_meaning_of_a_version(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted, caplog: pytest.LogCaptureFixture
    ) -> None:
        device(tmp_path, clock, None, MEAN).record("it", 3)
        changed = device(tmp_path, clock, collector.url, MEAN | {"high": "11"})
        for _ in range(3):
            changed.record("it", 3)
        assert balanced(changed).refused == {"other_declaration": 3}
        assert caplog.messages == ["metric it is not reported: its declaration changed and its version did not"]
        clock.advance(days=2)
        changed.flush()
        assert len(collector.reports) == 1
        raised = device(tmp_path, clock, collector.url, MEAN | {"high": "11", "version": "2"})
        raised.record("it", 3)
        assert balanced(raised).recorded == 2

    def test_a_number_being_combined_is_not_encoded_with_another_meaning(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        device(tmp_path, clock, None, SUM).record("it", 3)
        clock.advance(days=2)
        changed = device(tmp_path, clock, collector.url, SUM | {"high": "11"})
        changed.flush()
        assert balanced(changed).lost == {"other_declaration": 1}
        assert collector.reports == []


class TestCeiling:
    def test_a_version_raised_every_day_stops_at_the_ceiling(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        options: dict[str, Any] = {"registry": None, "max_epsilon": 10.0}
        for day in range(10):
            collector.registry = text_of(FLAG | {"version": str(day + 1)})
            client = make(tmp_path, clock, collector.url, **options)
            client.flush()
            client.record("it", True)
            clock.advance(days=1, hours=12)
            client.flush()
            client.close()
        # Each version may cost 2 x 2.0: there is room for two of them.
        assert {report.version for report in collector.reports} == {1, 2}
        stats = client.stats()
        assert stats.refused["max_epsilon"] >= 6  # a registry may be a day old
        assert stats.ledger["it"].reserved == pytest.approx(8.0, abs=1e-3)
        assert stats.ledger["it"].spent <= 8.0

    def test_it_is_required_for_a_fetched_registry(self, tmp_path: Path, collector: Scripted) -> None:
        with pytest.raises(ParameterError, match="max_epsilon is required with registry=None"):
            Client(collector.url, registry=None, state=tmp_path / "s.db", enabled=True)
        for limit in (0, -1, math.nan):
            with pytest.raises(ParameterError, match="a number above 0"):
                Client(collector.url, registry=None, state=tmp_path / "s.db", enabled=True, max_epsilon=limit)

    def test_a_version_that_could_name_a_device_is_not_used(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted, caplog: pytest.LogCaptureFixture
    ) -> None:
        collector.registry = text_of(FLAG | {"version": "83749"})
        client = make(tmp_path, clock, collector.url, registry=None, max_epsilon=10)
        client.flush()
        client.record("it", True)
        assert balanced(client).refused == {"no_registry": 1}
        assert "at most 100 in a fetched registry" in caplog.text

    @pytest.mark.parametrize(
        ("stated", "given", "expected"),
        [(None, None, DEFAULT_MAX_EPSILON), (20, None, 20), (None, 7, 7), (20, 7, 7), (20, 30, 20)],
    )
    def test_the_lower_of_the_limits_holds(
        self, tmp_path: Path, clock: FrozenClock, stated: float | None, given: float | None, expected: float
    ) -> None:
        text = (f"max_epsilon = {stated}\n" if stated else "") + text_of(FLAG)
        client = make(tmp_path, clock, registry=Registry.parse(text), max_epsilon=given)
        assert client._registries.max_epsilon == expected

    def test_strings_reveal_what_there_is_room_for_and_then_nothing_new(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        """Unlimited values at a lifetime epsilon of 2, and a ceiling of 7: two strings, and the null encoding."""
        keys = STRING | {"bits": "64", "lifetime_values": '"unlimited"'}
        client = device(tmp_path, clock, collector.url, keys, max_epsilon=7)
        for number in range(10):
            client.record("it", f"site {number}")
            clock.advance(days=1)
        clock.advance(days=1)
        client.flush()
        assert len(collector.reports) == 10
        with client._state.transaction() as connection:
            [revealed] = connection.execute("SELECT count(*) FROM revealed").fetchone()
        assert revealed == 3
        assert client.stats().ledger["it"].spent <= client.stats().ledger["it"].reserved <= 7

    def test_a_ceiling_that_is_lowered_later_holds(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        device(tmp_path, clock, None, FLAG).record("it", True)
        lower = device(tmp_path, clock, collector.url, FLAG, max_epsilon=3)
        lower.record("it", True)
        assert balanced(lower).refused == {"max_epsilon": 1}
        clock.advance(days=2)
        lower.flush()
        assert balanced(lower).lost == {"max_epsilon": 1}
        assert collector.reports == []

    def test_whether_a_metric_is_reported_does_not_depend_on_the_values_of_another(
        self, tmp_path: Path, clock: FrozenClock
    ) -> None:
        """Room is kept for all metrics of the registry when the first is recorded, however many values it will have."""
        text = text_of(STRING | {"lifetime_values": '"unlimited"'}) + "\n" + text_of(FLAG).replace("it]", "flag]")
        reported = []
        for number, values in enumerate((["same"] * 20, [f"site {day}" for day in range(20)])):
            client = make(tmp_path / str(number), clock, registry=Registry.parse(text), max_epsilon=9)
            for value in values:
                client.record("it", value)
                clock.advance(days=1)
            client.record("flag", True)
            reported.append(balanced(client).refused)
        assert reported == [{}, {}]

    def test_shares_are_fair(self) -> None:
        assert fair_share(10, 3, [3, 4]) == 3
        assert fair_share(10, 20, [20, 4]) == 6
        assert fair_share(10, math.inf, [math.inf, math.inf, 2]) == 4
        assert fair_share(math.inf, math.inf, [math.inf, 2]) == math.inf
        assert fair_share(-1, 3, [3]) == -1


INVALID: list[tuple[str, dict[str, str], object]] = [
    ("undeclared category", CATEGORY, "c"),
    ("empty string", STRING, ""),
    ("long string", STRING, "x" * 5000),
    ("lone surrogate", STRING, "\ud800"),
    ("none", STRING, None),
    ("number for a flag", FLAG, 1),
    ("nan", HISTOGRAM, math.nan),
    ("infinite", MEAN, math.inf),
    ("text for a number", MEAN, "7"),
    ("nan in a sum", SUM, math.nan),
    ("once", STRING | {"every": '"once"', "privacy": "{ epsilon = 1 }"}, ""),
]


class Odd(float):
    """A number that cannot be compared."""

    def __le__(self, other: object) -> bool:
        raise RuntimeError("sesame")


class TestPresence:
    """Whether there is a report does not depend on the value."""

    @pytest.mark.parametrize(("keys", "value"), [case[1:] for case in INVALID], ids=[case[0] for case in INVALID])
    def test_an_invalid_value_is_reported_as_one(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted, keys: dict[str, str], value: object
    ) -> None:
        keys = {key: text for key, text in keys.items() if keys["every"] == '"day"' or key != "lifetime_values"}
        client = device(tmp_path, clock, collector.url, keys)
        client.record("it", value)
        clock.advance(days=2)
        assert client.flush()
        assert len(collector.reports) == 1
        assert balanced(client).refused == {"unfit_value": 1}

    def test_strict_raises_and_reports(self, tmp_path: Path, clock: FrozenClock, collector: Scripted) -> None:
        client = device(tmp_path, clock, collector.url, CATEGORY, strict=True)
        with pytest.raises(ValueRefusedError, match="not one of the declared categories"):
            client.record("it", "c")
        assert balanced(client).recorded == 1

    def test_a_value_that_raises_is_reported_too(self, tmp_path: Path, clock: FrozenClock, collector: Scripted) -> None:
        client = device(tmp_path, clock, collector.url, MEAN)
        client.record("it", Odd(3))
        assert balanced(client).recorded == 1

    def test_a_sum_beyond_all_floats_is_reported_too(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        client = device(tmp_path, clock, collector.url, SUM)
        client.record("it", 1)
        with client._state.transaction() as connection:
            connection.execute("UPDATE open SET number = ?", (math.inf,))
        clock.advance(days=2)
        assert client.flush()
        assert len(collector.reports) == 1

    @pytest.mark.parametrize("keys", [FLAG, MEAN, SUM, HISTOGRAM], ids=["flag", "mean", "sum", "histogram"])
    def test_an_invalid_value_does_not_displace_a_valid_one_unseen(
        self, tmp_path: Path, clock: FrozenClock, keys: dict[str, str]
    ) -> None:
        client = device(tmp_path, clock, None, keys)
        value: object = True if keys is FLAG else 1
        client.record("it", value)
        before = kept(client)
        for _ in range(20):
            client.record("it", "invalid")
        assert kept(client) == before

    def test_a_flag_with_room_for_one_answer_repeats_it(
        self, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        revealed = watch_encodings(monkeypatch)
        client = device(tmp_path, clock, None, FLAG | {"lifetime_values": "1"})
        for value in (True, False, True, "invalid", False):
            client.record("it", value)
            clock.advance(days=1)
        assert revealed == [1] * 5

    def test_values_of_open_periods_count_before_any_is_sent(
        self, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Days without a network: the bound holds although nothing has been revealed yet."""
        revealed = watch_encodings(monkeypatch)
        client = device(tmp_path, clock, None, STRING | {"bits": "1024"})
        for number in range(40):
            client.record("it", f"site {number}")
            clock.advance(days=1)
        assert len(revealed) == 40
        assert len(set(revealed) | {0}) == 4
        assert revealed[-10:] == [0] * 10


class TestDefault:
    def test_a_client_that_ran_reports_although_nothing_was_recorded(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        client = device(tmp_path, clock, collector.url, FLAG | {"default": "false"})
        assert [pending.metric for pending in client.preview()] == ["it"]
        clock.advance(days=1, hours=12)
        assert client.flush()
        assert [report.period for report in collector.reports] == [MONDAY.date()]

    def test_a_value_replaces_the_default(
        self, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        revealed = watch_encodings(monkeypatch)
        client = device(tmp_path, clock, None, FLAG | {"default": "false"})
        assert revealed == [0]
        client.record("it", True)
        assert revealed == [0, 1]
        assert kept(client)[0] == 1  # one value was seen

    def test_a_number_that_is_combined_has_its_default(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        revealed = watch_encodings(monkeypatch)
        client = device(tmp_path, clock, collector.url, SUM | {"default": "10"})
        clock.advance(days=2)
        assert client.flush()
        assert len(collector.reports) == 1
        assert revealed == [1]  # the upper end, whatever the offset

    def test_other_metrics_begin_it_too(self, tmp_path: Path, clock: FrozenClock) -> None:
        """A client that runs for days without being made again."""
        text = text_of(FLAG | {"default": "false"}) + "\n" + text_of(FLAG).replace("it]", "other]")
        client = make(tmp_path, clock, registry=Registry.parse(text))
        clock.advance(days=1)
        client.record("other", True)
        assert balanced(client).recorded == 3

    def test_without_consent_there_is_none(self, tmp_path: Path, clock: FrozenClock) -> None:
        device(tmp_path, clock, None, FLAG | {"default": "false"}, enabled=False)
        assert not (tmp_path / "app").exists()


class TestNothingComesBack:
    def test_no_cookie_and_no_version(self, tmp_path: Path, clock: FrozenClock, collector: Scripted) -> None:
        collector.script = [with_cookie] * 3
        client = device(tmp_path, clock, collector.url, FLAG)
        for _ in range(3):
            client.record("it", True)
            clock.advance(days=2)
            assert client.flush()
        assert len(collector.headers) == 3
        for headers in collector.headers:
            assert "Cookie" not in headers
            assert headers["User-Agent"] == "hubbub"
        assert len({tuple(sorted(headers)) for headers in collector.headers}) == 1
        allowed = {"Host", "User-Agent", "Accept-Encoding", "Connection", "Content-Type", "Accept", "Content-Length"}
        assert set(collector.headers[0]) == allowed


class TestResidue:
    def files(self, tmp_path: Path) -> bytes:
        return b"".join(path.read_bytes() for path in (tmp_path / "app").iterdir())

    def test_a_number_is_gone_when_its_report_is_made(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        number = 3.141592653589793
        client = device(tmp_path, clock, collector.url, SUM)
        client.record("it", number)
        assert struct.pack(">d", number) in self.files(tmp_path)
        clock.advance(days=2)
        assert client.flush()
        assert struct.pack(">d", number) not in self.files(tmp_path)

    def test_a_number_is_gone_when_consent_is(self, tmp_path: Path, clock: FrozenClock) -> None:
        number = 2.718281828459045
        client = device(tmp_path, clock, None, SUM)
        client.record("it", number)
        client.enabled = False
        assert struct.pack(">d", number) not in self.files(tmp_path)

    def test_a_forgotten_secret_is_gone(self, tmp_path: Path, clock: FrozenClock) -> None:
        client = device(tmp_path, clock, None, FLAG)
        client.record("it", True)
        secret = client._state.secret().key
        assert secret in self.files(tmp_path)
        client.forget()
        assert secret not in self.files(tmp_path)

    def test_what_a_killed_process_left_in_the_log_is_gone_at_the_next_start(
        self, tmp_path: Path, clock: FrozenClock
    ) -> None:
        (tmp_path / "metrics.toml").write_text(text_of(SUM))
        program = (
            "import os, sys; from hubbub.client import Client, outbox; from hubbub.client.state import State\n"
            "client = Client(None, registry=sys.argv[1], state=sys.argv[2], enabled=True)\n"
            "client.record('it', 1.4142135623730951)\n"
            "with client._state.transaction() as connection: outbox.discard_all(connection, 'opted_out')\n"
            "os._exit(9)\n"
        )
        (tmp_path / "app").mkdir()
        state = str(tmp_path / "app" / "hubbub.db")
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "metrics.toml"), state], check=False)
        assert struct.pack(">d", 1.4142135623730951) in self.files(tmp_path)
        device(tmp_path, clock, None, SUM).stats()
        assert struct.pack(">d", 1.4142135623730951) not in self.files(tmp_path)

    @pytest.mark.parametrize(("keys", "expected"), [(FLAG, 0), (CATEGORY, 0), (STRING, 1)])
    def test_tags_are_kept_only_where_a_bound_can_bind(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted, keys: dict[str, str], expected: int
    ) -> None:
        client = device(tmp_path, clock, collector.url, keys)
        client.record("it", True if keys is FLAG else "a")
        clock.advance(days=2)
        assert client.flush()
        with client._state.transaction() as connection:
            assert connection.execute("SELECT count(*) FROM revealed").fetchone() == (expected,)


class TestOneFile:
    def test_a_report_for_one_collector_does_not_go_to_another(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        first = device(tmp_path, clock, collector.url, FLAG)
        first.record("it", True)
        first.close()
        clock.advance(days=2)
        with InMemoryCollector() as other:
            client = device(tmp_path, clock, other.url, FLAG)
            assert not client.flush()
            client.record("it", True)
            assert "belongs to another collector" in (client.stats().problem or "")
            assert other.attempts == []
        again = device(tmp_path, clock, collector.url, FLAG)
        assert again.flush()
        assert len(collector.reports) == 1

    def test_a_file_that_another_collector_took_over_is_not_used_on(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        first = device(tmp_path, clock, collector.url, FLAG)
        first.record("it", True)
        second = device(tmp_path, clock, "https://other.example", FLAG)
        second.forget()
        second.record("it", True)
        first.record("it", True)
        assert "belongs to another collector" in (first.stats().problem or "")
        clock.advance(days=2)
        assert not first.flush()
        assert collector.attempts == []

    def test_a_collector_that_moved_is_the_same_one(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        old = "https://old.example"
        first = device(tmp_path, clock, old, FLAG)
        first.record("it", True)
        first.close()
        clock.advance(days=2)
        client = device(tmp_path, clock, collector.url + "/", FLAG, previous_collectors=[old + "/"])
        assert client.flush()
        assert device(tmp_path, clock, collector.url, FLAG).stats().problem is None

    def test_after_forget_every_client_of_the_file_has_the_new_secret(
        self, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        secrets: list[bytes] = []
        watch(monkeypatch, lambda _, __, secret: secrets.append(secret.key))
        first, second = (device(tmp_path, clock, None, STRING) for _ in range(2))
        first.record("it", "a")
        clock.advance(days=1)
        second.record("it", "b")
        second.forget()
        clock.advance(days=1)
        first.record("it", "a")
        assert secrets[0] == secrets[1] != secrets[2] == second._state.secret().key

    def test_a_copied_file_is_noticed_and_not_used(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        device(tmp_path, clock, None, FLAG, device="mine").record("it", True)
        copy = device(tmp_path, clock, collector.url, FLAG, device="another")
        clock.advance(days=2)
        copy.record("it", True)
        assert not copy.flush()
        assert "copied from another device" in (copy.stats().problem or "")
        with pytest.raises(CopiedStateError):
            copy._state.secret()
        assert issubclass(CopiedStateError, StateError)
        copy.forget()
        copy.record("it", True)
        assert balanced(copy).problem is None
        assert balanced(copy).recorded == 1
        assert collector.attempts == []

    def test_the_name_of_the_device_is_not_on_the_disk(self, tmp_path: Path, clock: FrozenClock) -> None:
        device(tmp_path, clock, None, FLAG, device="sesame-machine").record("it", True)
        assert b"sesame" not in TestResidue().files(tmp_path)

    def test_a_restored_backup_shows_by_its_counts(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        """`recorded` never falls while the file is the same one: an app that keeps it elsewhere notices."""
        client = device(tmp_path, clock, collector.url, FLAG)
        client.record("it", True)
        file, backup = tmp_path / "app" / "hubbub.db", tmp_path / "backup.db"
        with sqlite3.connect(file) as source, sqlite3.connect(backup) as target:
            source.backup(target)
        source.close()
        target.close()
        clock.advance(days=1)
        client.record("it", True)
        seen = client.stats().recorded
        client.close()
        file.write_bytes(backup.read_bytes())
        assert device(tmp_path, clock, collector.url, FLAG).stats().recorded < seen


def kept(client: Client) -> tuple[Any, ...]:
    with client._state.transaction() as connection:
        [row] = connection.execute("SELECT seen, cohort, bits, number FROM open").fetchall()
    return tuple(row)


def with_cookie(body: bytes) -> tuple[int, dict[str, str], bytes]:
    with_it = InMemoryCollector.answer(COOKIES, body)
    return with_it[0], {**with_it[1], "Set-Cookie": "device=42; Path=/; Max-Age=99999"}, with_it[2]


class _Batches(InMemoryCollector):
    def __init__(self) -> None:
        self.batches = {}


COOKIES = _Batches()
