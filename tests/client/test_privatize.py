"""`privatize` is the mechanism it claims to be. Its randomness is the operating system's, so each statistical test
states its false-alarm probability: a p-value below FALSE_ALARM fails. Normal approximations to sums over at least
4,000 devices may make that a few times as likely as it says, and less than once in a million runs all the same."""

import datetime
import math
import subprocess
import sys
import traceback
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2

from hubbub.client import privatize
from hubbub.shared import HubbubError, Metric, ParameterError, Secret, ValueRefusedError
from hubbub.shared.bernoulli import ONE
from hubbub.shared.packing import pack
from hubbub.shared.permanent import permanent_response, rounding_offset
from shared.registries import EXAMPLE, VALUES, example, one_metric

FALSE_ALARM = 1e-7
DAY = datetime.date(2026, 11, 18)

Floats = npt.NDArray[np.float64]


def as_bits(packed: list[bytes], size: int) -> Floats:
    """A row of bits for each report."""
    rows = np.frombuffer(b"".join(packed), np.uint8).reshape(len(packed), -1)
    return np.unpackbits(rows, axis=1, count=size, bitorder="little").astype(np.float64)


def standardised(bits: Floats, encoded: Floats, when_set: float, when_clear: float) -> Floats:
    """Bits minus what is expected of them given the encoding, over their standard deviation: mean 0, variance 1."""
    chance = np.where(encoded > 0, when_set, when_clear)
    scores: Floats = (bits - chance) / np.sqrt(chance * (1 - chance))
    return scores


def assert_frequencies(scores: Floats) -> None:
    """Each bit's sum over devices is normal; their squares add up to a chi-square."""
    statistic = float((scores.sum(0) ** 2 / len(scores)).sum())
    assert chi2.sf(statistic, scores.shape[1]) > FALSE_ALARM
    assert chi2.cdf(statistic, scores.shape[1]) > FALSE_ALARM


def assert_uncorrelated(one: Floats, other: Floats | None = None) -> None:
    """All correlations between columns of one and columns of other, or between pairs of columns of one."""
    products = one.T @ (one if other is None else other) / math.sqrt(len(one))
    squares = products[np.triu_indices(len(products), 1)] ** 2 if other is None else products.ravel() ** 2
    # The squares are not quite chi-square nor quite independent: with kurtosis K of the scores (2.3 at a probability
    # of 1/4, 6.5 at 0.12, and no rarer bits are tested here) and n = 10,000 devices, they have a variance of 2 + K^2/n,
    # and two that share a column a covariance of K/n. For 128 columns that adds 2 % to the standard deviation of the
    # sum; a tenth is allowed for.
    degrees = squares.size
    limit = degrees + 1.1 * (float(chi2.isf(FALSE_ALARM, degrees)) - degrees)
    assert squares.sum() < limit


def encoded_bits(metric: Metric, value: object, secrets: list[Secret]) -> tuple[list[int], Floats]:
    encoded = []
    for secret in secrets:
        offset = rounding_offset(metric, secret)
        encoded.append(metric.encode(value, secret.number % metric.encoding.cohorts, offset))
    return encoded, as_bits([pack(bits, metric.size) for bits in encoded], metric.size)


def remembered_bits(metric: Metric, value: object, secrets: list[Secret]) -> tuple[Floats, Floats]:
    encoded, rows = encoded_bits(metric, value, secrets)
    answers = [
        permanent_response(metric, secret, secret.number % metric.encoding.cohorts, bits)
        for secret, bits in zip(secrets, encoded, strict=True)
    ]
    return rows, as_bits([pack(answer, metric.size) for answer in answers], metric.size)


def permanent_scores(metric: Metric, value: object, secrets: list[Secret]) -> Floats:
    rows, answers = remembered_bits(metric, value, secrets)
    return standardised(answers, rows, metric.response.p1 / ONE, metric.response.q1 / ONE)


def devices(number: int) -> list[Secret]:
    return [Secret.generate() for _ in range(number)]


@pytest.mark.parametrize("number", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(VALUES))
@pytest.mark.unmeasured
def test_bits_have_the_stated_probabilities_and_are_independent(name: str, number: int) -> None:
    metric, value, secrets = example()[name], VALUES[name], devices(number)
    _, encoded = encoded_bits(metric, value, secrets)
    reports = [privatize(metric, value, secret, day=DAY) for secret in secrets]
    sent = as_bits([report.bits for report in reports], metric.size)
    scores = standardised(sent, encoded, metric.response.truth_is_sent, metric.response.noise_is_sent)
    assert_frequencies(scores)
    if metric.size > 1:
        assert_uncorrelated(scores)
    assert_frequencies(permanent_scores(metric, value, secrets))


def test_the_tests_above_can_fail() -> None:
    """A response whose p and q are swapped, and one whose bits are copies of each other, are caught."""
    metric, secrets = example()["homepage_classic"], devices(4000)
    rows, answers = remembered_bits(metric, "example.org", secrets)
    swapped = standardised(answers, rows, metric.response.q1 / ONE, metric.response.p1 / ONE)
    with pytest.raises(AssertionError):
        assert_frequencies(swapped)
    scores = permanent_scores(metric, "example.org", secrets)
    scores[:, 1] = scores[:, 0]
    with pytest.raises(AssertionError):
        assert_uncorrelated(scores)
    with pytest.raises(AssertionError):
        assert_uncorrelated(scores, scores)


def test_reports_of_one_value_share_their_permanent_bits_and_nothing_else() -> None:
    """Pairs of reports of one device: both bits set with chance p1 p2^2 + (1 - p1) q2^2, and so on."""
    metric, secrets = example()["homepage_classic"], devices(10_000)
    _, encoded = encoded_bits(metric, "example.org", secrets)
    first, second = (
        as_bits([privatize(metric, "example.org", secret).bits for secret in secrets], metric.size) for _ in range(2)
    )
    p1, q1, p2, q2 = (getattr(metric.response, key) / ONE for key in ("p1", "q1", "p2", "q2"))
    for truth, remembered in ((1.0, p1), (0.0, q1)):
        of_interest = encoded == truth
        number = of_interest.sum()
        for expected, found in [
            (remembered * p2**2 + (1 - remembered) * q2**2, (first * second)[of_interest].sum()),
            (remembered * (1 - p2) ** 2 + (1 - remembered) * (1 - q2) ** 2,
             ((1 - first) * (1 - second))[of_interest].sum()),
        ]:  # fmt: skip
            z = (found - number * expected) / math.sqrt(number * expected * (1 - expected))
            assert abs(z) < 5.4  # exceeded with chance 7e-8


def test_permanent_bits_of_two_values_are_independent() -> None:
    metric, secrets = example()["homepage_classic"], devices(10_000)
    one, other = (permanent_scores(metric, value, secrets) for value in ("example.org", "example.com"))
    # Where the two strings fall on the same bit of a cohort they are one value: such devices are left out.
    encoded = [encoded_bits(metric, value, secrets)[0] for value in ("example.org", "example.com")]
    distinct = np.array([a != b for a, b in zip(*encoded, strict=True)])
    assert_uncorrelated(one[distinct], other[distinct])


def test_permanent_bits_of_two_devices_are_independent_even_of_almost_the_same_secret() -> None:
    metric = one_metric(
        kind='"category"', every='"day"', privacy="{ f = 0.5, p = 0.5, q = 0.75 }",
        categories=str([f"c{number}" for number in range(64)]),
    )  # fmt: skip
    secrets = devices(10_000)
    relatives = [Secret(bytes([secret.key[0] ^ 1]) + secret.key[1:]) for secret in secrets]
    assert_uncorrelated(permanent_scores(metric, "c3", secrets), permanent_scores(metric, "c3", relatives))


def test_permanent_bits_of_two_metrics_and_two_versions_are_independent() -> None:
    keys = {"kind": '"category"', "every": '"day"', "privacy": "{ report = 1.0, lifetime = 2.0 }"}
    keys["categories"] = str([f"c{number}" for number in range(64)])
    text = {name: "\n".join([f"[metrics.{name}]", 'description = "x"', *(f"{k} = {v}" for k, v in keys.items())])
            for name in ("one", "two")}  # fmt: skip
    from hubbub.shared import Registry

    registry = Registry.parse("\n".join(text.values()))
    newer = one_metric(**keys | {"version": "2"})
    older = one_metric(**keys)
    secrets = devices(10_000)
    assert_uncorrelated(
        permanent_scores(registry["one"], "c3", secrets), permanent_scores(registry["two"], "c3", secrets)
    )
    assert_uncorrelated(permanent_scores(older, "c3", secrets), permanent_scores(newer, "c3", secrets))


def test_rounding_offsets_are_uniform_and_the_mean_unbiased() -> None:
    """Offsets of 40,000 devices in 64 equal parts; and how many round 360 of 1440 up: a quarter."""
    metric, secrets = example()["minutes_used"], devices(40_000)
    offsets = np.array([rounding_offset(metric, secret) for secret in secrets])
    counts = np.bincount(offsets >> 26, minlength=64)
    assert chi2.sf(((counts - 625) ** 2 / 625).sum(), 63) > FALSE_ALARM
    _, encoded = encoded_bits(metric, 360, secrets)
    assert abs(encoded.sum() - 10_000) < 5.4 * math.sqrt(40_000 * 3 / 16)


def test_cohorts_are_uniform_and_one_number_decides_them_all() -> None:
    secrets = devices(40_000)
    counts = np.bincount([secret.number % 64 for secret in secrets], minlength=64)
    assert chi2.sf(((counts - 625) ** 2 / 625).sum(), 63) > FALSE_ALARM
    registry = example()
    for secret in secrets[:50]:
        cohorts = {name: privatize(registry[name], VALUES[name], secret).cohort for name in VALUES}
        assert cohorts["homepage"] == secret.number % 64
        assert cohorts["homepage_classic"] == cohorts["homepage"]
        assert cohorts["language"] == cohorts["homepage"] % 8
        assert cohorts["crashed"] == 0


def test_the_same_value_gives_the_same_permanent_bits_in_another_process() -> None:
    registry = example()
    secret = Secret(bytes(range(32)))
    here = {}
    for name, value in VALUES.items():
        metric = registry[name]
        cohort = secret.number % metric.encoding.cohorts
        encoded = metric.encode(value, cohort, rounding_offset(metric, secret))
        here[name] = permanent_response(metric, secret, cohort, encoded)
    program = f"""
from hubbub.shared import Registry, Secret
from hubbub.shared.permanent import permanent_response, rounding_offset
registry, secret = Registry.parse({EXAMPLE!r}), Secret(bytes(range(32)))
for name, value in {VALUES!r}.items():
    metric = registry[name]
    cohort = secret.number % metric.encoding.cohorts
    encoded = metric.encode(value, cohort, rounding_offset(metric, secret))
    print(name, permanent_response(metric, secret, cohort, encoded))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert dict(line.split() for line in done.stdout.splitlines()) == {name: str(bits) for name, bits in here.items()}


def test_a_drifting_number_keeps_its_two_answers() -> None:
    """The permanent response is keyed by the encoding: all numbers that round alike give the same bits."""
    metric = one_metric(
        kind='"mean"', every='"once"', low="0", high="100", privacy="{ epsilon = 1.0 }",
    )  # fmt: skip
    for _ in range(50):
        secret = Secret.generate()
        bits = [privatize(metric, number / 10, secret).bits for number in range(1001)]
        changes = sum(one != other for one, other in pairwise(bits))
        assert changes <= 1


def test_a_once_metric_sends_its_permanent_bits_as_they_are() -> None:
    metric, secret = example()["language"], Secret.generate()
    assert len({privatize(metric, "eo", secret).bits for _ in range(50)}) == 1


def test_reports_name_metric_version_period_and_cohort() -> None:
    registry, secret = example(), Secret.generate()
    report = privatize(registry["theme"], "dark", secret, day=DAY)
    assert (report.metric, report.version, report.period) == ("theme", 1, datetime.date(2026, 11, 16))
    assert privatize(registry["language"], "eo", secret, day=DAY).version == 3
    assert privatize(registry["language"], "eo", secret, day=DAY).period == DAY
    assert privatize(registry["crashed"], True, secret).period <= datetime.datetime.now(datetime.UTC).date()
    assert len(privatize(registry["homepage"], "example.org", secret).bits) == 16


def test_secrets_may_be_plain_bytes() -> None:
    metric, key = example()["language"], bytes(range(32))
    assert privatize(metric, "eo", key, day=DAY) == privatize(metric, "eo", Secret(key), day=DAY)
    with pytest.raises(ParameterError, match="32 bytes"):
        privatize(metric, "eo", b"short")


BAD_VALUES: dict[str, list[object]] = {
    "homepage": [17, None, b"sesame-sesame", "", "sesame" * 200_000, "sesame\ud800", ["sesame"]],
    "theme": ["sesame", 17, "", "sesame\udfff", None],
    "crashed": ["sesame", 17, 0, None],
    "minutes_used": ["sesame", math.nan, math.inf, -math.inf, True, None, 17j],
    "startup_ms": ["sesame", math.nan, math.inf, True, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_VALUES.items() for value in values])
def test_a_refused_value_is_never_repeated(name: str, value: object) -> None:
    """Neither in the message nor in an error that travels along, nor in the traceback that is printed."""
    with pytest.raises(ValueRefusedError) as caught:
        privatize(example()[name], value, Secret.generate())
    message = str(caught.value)
    assert message.startswith(f'metric "{name}": the value ')
    assert "; allowed: " in message
    assert isinstance(caught.value, HubbubError)
    shown = "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "sesame" not in shown
    assert "17" not in message
