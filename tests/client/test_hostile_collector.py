"""A collector, or a registry, that wants to know more than it was promised: each test is an attack that once worked."""

import math
import struct
from pathlib import Path
from typing import Any

import pytest
from scipy import special

from client.clients import MONDAY, balanced, make
from client.one_metric import CATEGORY, FLAG, HISTOGRAM, MEAN, STRING, SUM, device, watch_encodings
from client.scripted import Scripted
from hubbub.client import DEFAULT_MAX_EPSILON, Client
from hubbub.client.ledger import fair_share
from hubbub.client.testing import FrozenClock, InMemoryCollector
from hubbub.shared import ParameterError, Registry, Secret, ValueRefusedError
from hubbub.shared.permanent import permanent_response, rounding_offset
from shared.registries import one_metric, text_of

FALSE_ALARM = 1e-7


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
