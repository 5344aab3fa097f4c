"""Sums of cohorts: which get them, when, and what becomes of them."""

import numpy as np
import pytest

from collector.looking import by_looking, reports
from hubbub.collector.count import Runs, choice, find_runs


def test_a_cohort_gets_sums_when_it_has_had_enough() -> None:
    """However small its runs are, and no cohort before: sums have to be worth what it costs to settle them."""
    of = np.repeat(np.arange(60), [2400] * 50 + [100] * 10)
    packed, found = reports(128, len(of)), find_runs(of)
    assert found is not None
    counts = np.zeros((60, 128), np.int64)
    adder = choice.Adder(counts, 16)
    for times in range(1, 5):
        before = counts.copy()
        adder.add_sorted(packed, found)
        added = (counts > before).any(axis=1)
        assert added.tolist() == [times * 2400 * 16 < choice.SUMMED_BYTES] * 50 + [True] * 10
    adder.settle()
    np.testing.assert_array_equal(counts, 4 * by_looking(packed, 128, of))
    before = counts.copy()
    adder.add_sorted(packed[: 50 * 2400], found.chosen(found.cohorts < 50))
    assert (counts > before).any(axis=1).tolist() == [True] * 50 + [False] * 10, "what was settled begins anew"


def test_a_cohort_gets_no_sums_among_few_reports() -> None:
    packed, counts = reports(128, 10_000), np.zeros((1, 128), np.int64)
    adder = choice.Adder(counts, 16)
    adder.add_sorted(packed, Runs.one(len(packed)))
    np.testing.assert_array_equal(counts[0], by_looking(packed, 128, None))


@pytest.mark.parametrize("cohorts", [2, 3])
def test_sums_of_too_many_cohorts_take_no_memory(cohorts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "MOST_SUMS", 2)
    of = np.repeat(np.arange(cohorts), 70_000)
    packed, found = reports(128, len(of)), find_runs(of)
    assert found is not None
    counts = np.zeros((cohorts, 128), np.int64)
    adder = choice.Adder(counts, 16)
    adder.add_sorted(packed, found)
    assert counts.any() == (cohorts > 2)
    adder.settle()
    np.testing.assert_array_equal(counts, by_looking(packed, 128, of))
