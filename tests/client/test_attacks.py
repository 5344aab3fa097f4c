"""What someone learns who watches one device for ever."""

import math
import os

import numpy as np
import numpy.typing as npt
import pytest

from hubbub.client import privatizing
from hubbub.shared import Metric, Secret
from hubbub.shared.bernoulli import ONE
from hubbub.shared.permanent import permanent_response
from shared.registries import example

pytestmark = pytest.mark.unmeasured

DEVICES, CANDIDATES = 200, 100
REPORTS = 400
FALSE_ALARM_Z = 5.4  # exceeded by a normal number with chance 7e-8


def guesses_right(metric: Metric) -> int:
    """Average each device's reports, and guess the candidate whose bits stand out most."""
    names = [f"site-{number}.example" for number in range(CANDIDATES)]
    right = 0
    rng = np.random.default_rng(5)
    for _ in range(DEVICES):
        secret, truth = Secret.generate(), int(rng.integers(CANDIDATES))
        sums: npt.NDArray[np.float64] = np.zeros(metric.size)
        for _ in range(REPORTS):
            packed = privatizing.privatize(metric, names[truth], secret).bits
            sums += np.unpackbits(np.frombuffer(packed, np.uint8), count=metric.size, bitorder="little")
        cohort = secret.number % metric.encoding.cohorts
        scores = []
        for name in names:
            encoded = metric.encode(name, cohort, 0)
            bits = [bit for bit in range(metric.size) if encoded >> bit & 1]
            scores.append(sums[bits].mean())
        right += int(np.argmax(scores)) == truth
    return right


def test_averaging_reveals_no_more_than_the_permanent_response() -> None:
    """With a lifetime epsilon L, no guess among 100 is right more often than e^L/(e^L + 99) of the time."""
    metric = example()["homepage_classic"]
    odds = math.exp(metric.epsilon(math.inf))
    bound = odds / (odds + CANDIDATES - 1)
    allowed = DEVICES * bound + FALSE_ALARM_Z * math.sqrt(DEVICES * bound * (1 - bound))
    assert guesses_right(metric) < allowed < 0.75 * DEVICES


def test_without_memory_averaging_reveals_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test above can fail: the permanent step drawn anew each time gives nearly every device away."""

    def forgetful(metric: Metric, secret: Secret, cohort: int, encoded: int) -> int:
        return metric.response.permanent(encoded, metric.size, os.urandom)

    monkeypatch.setattr(privatizing, "permanent_response", forgetful)
    # A candidate sharing both bits of the cohort cannot be told apart: about one device in eighty.
    assert guesses_right(example()["homepage_classic"]) > 0.85 * DEVICES


def test_the_permanent_bits_are_what_averaging_converges_to() -> None:
    """Ten thousand reports of one value: every bit's average is that of its permanent bit, p2 or q2."""
    metric, secret = example()["homepage_classic"], Secret.generate()
    sums: npt.NDArray[np.float64] = np.zeros(metric.size)
    number = 10_000
    for _ in range(number):
        packed = privatizing.privatize(metric, "example.org", secret).bits
        sums += np.unpackbits(np.frombuffer(packed, np.uint8), count=metric.size, bitorder="little")
    cohort = secret.number % 64
    remembered = permanent_response(metric, secret, cohort, metric.encode("example.org", cohort, 0))
    for bit in range(metric.size):
        chance = (metric.response.p2 if remembered >> bit & 1 else metric.response.q2) / ONE
        z = (sums[bit] - number * chance) / math.sqrt(number * chance * (1 - chance))
        assert abs(z) < 6.2  # 128 bits: exceeded by any of them with chance 7e-8
