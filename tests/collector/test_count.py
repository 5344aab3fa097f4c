"""Counting bits, and tallies, which add."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.collector import Tally
from hubbub.collector.count import count_bits
from hubbub.shared import ParameterError, Report
from hubbub.shared.packing import unpack
from shared.registries import example, one_metric

DAY = date(2026, 11, 16)


@given(bits=st.integers(1, 70), reports=st.integers(0, 20), cohorts=st.integers(1, 5), seed=st.integers(0, 99))
def test_counts_are_those_of_looking_at_each_bit(bits: int, reports: int, cohorts: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    ones = random.integers(0, 2, (reports, bits), dtype=np.uint8)
    packed = np.packbits(ones, axis=1, bitorder="little")
    of = random.integers(0, cohorts, reports)
    assert count_bits(packed, bits).tolist() == [sum(int(row[bit]) for row in ones) for bit in range(bits)]
    counted = count_bits(packed, bits, of)
    assert len(counted) == max(of, default=-1) + 1
    for cohort, counts in enumerate(counted):
        mine = [row for row, its in zip(ones, of, strict=True) if its == cohort]
        assert counts.tolist() == [sum(int(row[bit]) for row in mine) for bit in range(bits)]


def test_a_shape_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ParameterError, match="packed: has shape"):
        count_bits(np.zeros((3, 2), np.uint8), 17)
    with pytest.raises(ParameterError, match="cohorts: has shape"):
        count_bits(np.zeros((3, 2), np.uint8), 16, np.array([0, 1]))
    with pytest.raises(ParameterError, match="cohorts: has shape"):
        count_bits(np.zeros((1, 2), np.uint8), 16, np.array([-1]))


def tally_of(*bits: int, day: date = DAY, cohort: int = 0) -> Tally:
    metric = example()["theme"]
    return Tally.of(metric, [Report("theme", 1, day, cohort, bytes([each])) for each in bits])


def test_a_tally_counts_reports_and_their_bits() -> None:
    tally = tally_of(0b001, 0b011, 0b100)
    assert (tally.n.tolist(), tally.counts.tolist()) == ([3], [[2, 1, 1]])
    assert (tally.start, tally.end, tally.reports) == (DAY, DAY, 3)
    assert repr(tally) == "Tally(theme version 1, 2026-11-16 to 2026-11-16: 3 reports)"


def test_tallies_add() -> None:
    earlier, later = tally_of(1, 2, day=date(2026, 11, 9)), tally_of(4)
    both = earlier + later
    assert both == later + earlier == Tally.empty(example()["theme"]) + earlier + later
    assert (both.counts.tolist(), both.start, both.end) == ([[1, 1, 1]], date(2026, 11, 9), DAY)
    assert both != earlier
    assert both != "a tally"


def test_tallies_of_different_metrics_do_not_add() -> None:
    with pytest.raises(ParameterError, match="cannot be added"):
        tally_of(1) + Tally.empty(example()["crashed"])
    with pytest.raises(TypeError):
        tally_of(1) + 1  # type: ignore[operator]


def test_a_tally_is_the_same_after_its_json() -> None:
    metric = example()["homepage"]
    reports = [Report("homepage", 1, DAY, cohort, bytes([cohort] * 16)) for cohort in (3, 3, 60)]
    tally = Tally.of(metric, reports)
    assert Tally.parse(tally.json(), metric) == tally
    document = tally.document()
    assert [each.cohort for each in document.cohorts] == [3, 60]
    assert document.cohorts[1].counts == unpack(bytes([60] * 16), 128).tolist()


def spelled(*cohorts: str, version: int = 1) -> str:
    listed = ", ".join(f"{{{each}}}" for each in cohorts)
    return f'{{"metric": "it", "version": {version}, "start": null, "end": null, "cohorts": [{listed}]}}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", "tally: "),
        (spelled(version=2), "is of it version 2"),
        (spelled('"cohort": 1, "n": 1, "counts": [1]'), "does not fit"),
        (spelled('"cohort": 0, "n": 1, "counts": [2]'), "does not fit"),
        (spelled('"cohort": 0, "n": 1, "counts": []'), "does not fit"),
        (spelled('"cohort": 0, "n": 1, "counts": [1]', '"cohort": 0, "n": 1, "counts": [1]'), "repeated"),
        (spelled('"cohort": 0, "n": 9223372036854775808, "counts": [1]'), "does not fit"),
    ],
)
def test_a_tally_that_cannot_be_is_refused(text: str, told: str) -> None:
    metric = one_metric(kind='"flag"', every='"day"', privacy="{ report = 1, lifetime = 2 }")
    with pytest.raises(ParameterError, match=told):
        Tally.parse(text, metric)
