"""Bits of simulated devices: encoded as the client does, and answered with the probabilities stated."""

import math
from typing import Any

import numpy as np
import pytest

from hubbub.shared.bernoulli import ONE
from hubbub.shared.encode import NULL
from hubbub.simulations.devices import Devices
from hubbub.simulations.encoders import encoder_of
from hubbub.simulations.packed_bits import packed, respond_to_words
from simulations.simulated import METRICS, VALUES, declared


@pytest.mark.parametrize("name", METRICS)
def test_values_are_encoded_as_the_client_does(name: str) -> None:
    metric = METRICS[name]
    some: dict[str, list[Any]] = {
        "string": [f"site-{number}.example" for number in range(20)],
        "category": ["system", "light", "dark"],
        "flag": [False, True],
        "mean": [-1, 0, 1e-9, 3.3, 5, 9.99, 10, 1e300],
        "histogram": [-5, 0, 0.5, 1, 1.999, 2, 3.5, 4, 99],
    }
    values = some[name]
    rng = np.random.default_rng(6)
    held = rng.integers(len(values), size=500)
    cohorts = rng.integers(metric.encoding.cohorts, size=500)
    offsets = rng.integers(metric.encoding.offsets, size=500)
    encoded = encoder_of(metric, values)(held, cohorts, offsets)
    expected = [
        metric.encode(values[value], int(cohort), int(offset))
        for value, cohort, offset in zip(held, cohorts, offsets, strict=True)
    ]
    assert [int(row[0]) for row in encoded] == expected


@pytest.mark.parametrize("kind", ["string", "category", "histogram"])
def test_no_valid_value_is_the_null_encoding(kind: str) -> None:
    metric, (first, second) = METRICS[kind], VALUES[kind]
    held, cohorts = np.repeat(np.arange(3), 20), np.arange(60) % metric.encoding.cohorts
    encoded = encoder_of(metric, [first, None, second])(held, cohorts, np.zeros_like(held))
    expected = [
        NULL if value == 1 else metric.encode((first, None, second)[value], int(cohort), 0)
        for value, cohort in zip(held, cohorts, strict=True)
    ]
    assert [int(row[0]) for row in encoded] == expected


@pytest.mark.parametrize("kind", ["string", "category", "histogram"])
def test_wide_encodings_fill_several_words(kind: str) -> None:
    """300 bits: five words, and bits behind the last one stay zero in what is sent."""
    lines = {
        "string": ("bits = 300", "hashes = 3", "cohorts = 4", 'lifetime_values = "unlimited"'),
        "category": (f"categories = {[f'c{number}' for number in range(300)]}",),
        "histogram": (f"edges = {list(range(601))}", "sent = 300"),
    }
    values: dict[str, list[Any]] = {
        "string": [f"s{number}" for number in range(40)],
        "category": [f"c{number}" for number in range(0, 300, 7)],
        "histogram": list(range(0, 600, 13)),
    }
    metric = declared(kind, *lines[kind])
    rng = np.random.default_rng(7)
    held = np.arange(len(values[kind]))
    cohorts = rng.integers(metric.encoding.cohorts, size=len(held))
    encoded = encoder_of(metric, values[kind])(held, cohorts, np.zeros_like(held))
    assert [int.from_bytes(row, "little") for row in packed(encoded, 300)] == [
        metric.encode(value, int(cohort), 0) for value, cohort in zip(values[kind], cohorts, strict=True)
    ]
    sent = Devices(metric, values[kind], held, rng).report().packed
    assert sent.shape == (len(held), metric.width)
    assert not (sent[:, -1] >> 4).any()


@pytest.mark.parametrize(
    ("when_set", "when_clear"), [(ONE, 0), (ONE, 12345), (40000, 0), (40000, 123), (ONE // 2, 1), (50001, ONE - 50001)]
)
def test_words_are_answered_with_the_probabilities_stated(when_set: int, when_clear: int) -> None:
    """A million bits of each kind, within 6 standard deviations: a false alarm has a chance of 4e-9."""
    rng = np.random.default_rng(8)
    number = 1_000_000 // 64
    for bits, numerator in ((~np.uint64(0), when_set), (np.uint64(0), when_clear)):
        answered = respond_to_words(np.full((number, 1), bits), when_set, when_clear, rng)
        chance = numerator / ONE
        ones = int(np.bitwise_count(answered).sum())
        assert abs(ones - number * 64 * chance) <= 6 * math.sqrt(number * 64 * chance * (1 - chance))
