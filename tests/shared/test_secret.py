"""The secret: what is drawn from it is fixed, separate and never shown."""

import datetime

import pytest

from hubbub.shared import ParameterError, Secret
from hubbub.shared.period import period_of, today


def test_the_same_secret_gives_the_same_draws() -> None:
    key = bytes(range(32))
    assert Secret(key).number == Secret(key).number
    assert Secret(key).stream(b"message")(100) == Secret(key).stream(b"message")(100)
    assert Secret(key).stream(b"message")(10) == Secret(key).stream(b"message")(100)[:10]
    assert Secret(key).key == key


def test_generated_secrets_differ() -> None:
    """256 random bits each: a repetition among a hundred has a chance of 4e-74."""
    assert len({Secret.generate().key for _ in range(100)}) == 100


def test_a_secret_is_not_shown() -> None:
    secret = Secret(b"\xa5" * 32)
    assert repr(secret) == str(secret) == "Secret(hidden)"
    assert "a5" not in f"{secret!r}{secret!s}"


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "0" * 32, bytearray(32), None])
def test_secrets_of_other_lengths_or_types(key: object) -> None:
    with pytest.raises(ParameterError, match="allowed: 32 bytes"):
        Secret(key)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("every", "day", "period"),
    [
        ("day", "2026-11-16", "2026-11-16"),
        ("week", "2026-11-16", "2026-11-16"),
        ("week", "2026-11-22", "2026-11-16"),
        ("week", "2026-11-23", "2026-11-23"),
        ("week", "2027-01-01", "2026-12-28"),
        ("once", "2026-11-22", "2026-11-22"),
    ],
)
def test_periods_are_named_by_their_first_day(every, day: str, period: str) -> None:  # type: ignore[no-untyped-def]
    assert period_of(every, datetime.date.fromisoformat(day)) == datetime.date.fromisoformat(period)


def test_today_is_utc() -> None:
    before = datetime.datetime.now(datetime.UTC).date()
    assert before <= today() <= datetime.datetime.now(datetime.UTC).date()
