"""Strings: unbiased on a fixed list, sound on odd ones, and refused where a list or a tally cannot be.

Trials keep their strings, because the claim is about one list. How often a test fails by chance is said with each; the
seeds are fixed.
"""

import numpy as np
import pytest

from collector.decoding import (
    CLASSIC,
    Numbers,
    Value,
    covers,
    drawn,
    is_unbiased,
    metric,
    names,
    string_metric,
    with_null,
)
from hubbub.collector import Estimates, Tally, decode
from hubbub.collector.decode.control import Control
from hubbub.collector.decode.design import bloom_design, design
from hubbub.collector.decode.estimates import Number
from hubbub.collector.decode.noise import Noise
from hubbub.collector.decode.strings import decode_strings, equations_of
from hubbub.shared import Metric, ParameterError
from hubbub.shared.encode import Bloom
from hubbub.simulations import simulate_tally
from hubbub.simulations.aggregate import held_bits, respond, spread_over_cohorts


def bound_of_strings(it: Metric, listed: list[str], shares: Numbers, reports: int) -> Numbers:
    """The Cramer-Rao bound for the shares of a list that holds all strings there are, as far as anyone knows.

    From the whole covariance of the bits of a report in each cohort, nothing left out.
    """
    encoding, noise = it.encoding, Noise.of(it.response)
    assert isinstance(encoding, Bloom)
    made = bloom_design(encoding, listed)
    matrix = made.matrix.toarray()
    information = np.zeros((len(listed), len(listed)))
    for cohort in range(encoding.cohorts):
        sets = matrix[cohort * encoding.bits : (cohort + 1) * encoding.bits]
        held = sets @ shares
        sent = noise.lie + noise.slope * held
        covariance = noise.slope**2 * (sets @ np.diag(shares) @ sets.T - np.outer(held, held))
        np.fill_diagonal(covariance, sent * (1 - sent))
        centred = sets - made.spread
        information += noise.slope**2 * reports / encoding.cohorts * centred.T @ np.linalg.inv(covariance) @ centred
    return np.diagonal(np.linalg.inv(information))


class TestFixedList:
    """Fewer candidates than half the equations: least squares on all of them."""

    @pytest.mark.parametrize("trials", [200, pytest.param(2000, marks=pytest.mark.slow)])
    @pytest.mark.parametrize(
        ("bits", "hashes", "cohorts", "privacy"),
        [
            (32, 1, 8, "{ report = 1.0, lifetime = 4.0 }"),
            pytest.param(16, 2, 16, CLASSIC, marks=pytest.mark.slow),
            pytest.param(32, 2, 8, "{ report = 6.0, lifetime = 8.0 }", marks=pytest.mark.slow),
        ],
        ids=["default", "classic", "loud"],
    )
    @pytest.mark.unmeasured
    def test_it_is_unbiased_efficient_and_covers(
        self, bits: int, hashes: int, cohorts: int, privacy: str, trials: int
    ) -> None:
        """Trials with the same 30 strings, 5 of which nobody has."""
        it = string_metric(bits, hashes, cohorts, privacy)
        listed, rng, reports = names(30), np.random.default_rng(trials), 20_000
        shares = np.concatenate([1 / np.arange(1, 26), np.zeros(5)])
        shares /= shares.sum()
        truth: dict[Value, float] = dict(zip(listed, shares.tolist(), strict=True))
        found, hits = [], []
        for _ in range(trials):
            estimates = decode(it, drawn(it, truth, reports, rng), candidates=listed)
            assert estimates.method == "least squares"
            rows = sorted(estimates.rows, key=lambda row: listed.index(row.value))
            found.append([row.share for row in rows])
            hits.append([row.low <= share <= row.high for row, share in zip(rows, shares, strict=True)])
        is_unbiased(np.array(found, float) - shares)
        # At least 6,000 intervals: 95 % is measured to 0.3 %, and 93 % is seven of those away.
        assert 0.93 < np.array(hits).mean() < 0.97
        if trials == 2000:
            # Of each string alone 95 % is measured to 0.5 %; the commonest tells whether a device's bits go together.
            assert ((np.array(hits).mean(axis=0) > 0.925) & (np.array(hits).mean(axis=0) < 0.975)).all()
        ratio = (np.array(found, float) - shares).var(axis=0).sum() / bound_of_strings(
            it, listed, shares, reports
        ).sum()
        assert ratio < 1.1, ratio

    @pytest.mark.parametrize("trials", [200, pytest.param(1200, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("null", [0.0, 0.05, 0.3])
    @pytest.mark.parametrize(
        ("bits", "hashes", "privacy"),
        [
            (32, 1, "{ report = 1.0, lifetime = 4.0 }"),
            pytest.param(32, 2, "{ report = 1.0, lifetime = 4.0 }", marks=pytest.mark.slow),
            pytest.param(16, 2, "{ report = 6.0, lifetime = 8.0 }", marks=pytest.mark.slow),
        ],
        ids=["one hash", "two hashes", "loud"],
    )
    @pytest.mark.unmeasured
    def test_null_reports_bias_no_string(self, bits: int, hashes: int, privacy: str, null: float, trials: int) -> None:
        """12 strings, 4 of which no device has.

        Coverage is tested to 5.3 times its error, and of all strings together to 2 % at least. Their intervals are
        nearly independent. The three bounds fail by chance once in 3 million times.
        """
        it, listed, rng = string_metric(bits, hashes, 16, privacy), names(12), np.random.default_rng(20)
        sizes = np.concatenate([1 / np.arange(1, 9), np.zeros(4)])
        shares = with_null(dict(zip(listed, (sizes / sizes.sum()).tolist(), strict=True)), null)
        truth = np.array([*(shares[name] for name in listed), null, null])
        found, hits, selected = [], [], []
        for _ in range(trials):
            estimates = decode(it, drawn(it, shares, 20_000, rng), candidates=listed)
            assert estimates.other is not None
            assert estimates.no_value is not None
            numbers = [Number(row.share or 0.0, 0.0, row.low, row.high) for row in map(estimates.__getitem__, listed)]
            numbers += [estimates.other, estimates.no_value]
            found.append([number.estimate for number in numbers])
            hits.append([number.low <= true <= number.high for number, true in zip(numbers, truth, strict=True)])
            selected += [
                (row.found_low or 0.0) <= shares[row.value] <= (row.found_high or 0.0) for row in estimates.detected
            ]
        is_unbiased(np.array(found) - truth)
        covered = np.array(hits).mean(axis=0)
        slack = 5.3 * (0.05 * 0.95 / trials) ** 0.5
        assert abs(covered[:12].mean() - 0.95) < max(slack / 12**0.5, 0.02)
        assert (np.abs(covered[12:] - 0.95) < slack).all(), covered
        assert abs(np.mean(selected) - 0.95) < slack

    def test_the_selection_estimates_the_share_of_null_reports_too(self) -> None:
        """More candidates than half the equations. By chance, it fails once in a million times.

        A string that no device has is found with a chance of 9 in 10^7, and each number is off by 5.5 standard errors
        with a chance of 4 in 10^8.
        """
        it = string_metric(32, 2, 16)
        shares: dict[Value, float] = with_null({"a": 0.5, "b": 0.3, "c": 0.2}, 0.3)
        tally = drawn(it, shares, 1_000_000, np.random.default_rng(21))
        estimates = decode(it, tally, candidates=[*names(700), "a", "b", "c"], control="family-wise:1e-6")
        assert estimates.method == "selection"
        assert {row.value for row in estimates.detected} == {"a", "b", "c"}
        for number in (estimates.no_value, estimates.other):
            assert number is not None
            assert abs(number.estimate - 0.3) < 5.5 * (number.standard_error or 0.0)
            assert (number.standard_error or 1.0) < 0.02

    def test_what_is_not_in_the_list_is_told(self) -> None:
        it = string_metric(32, 1, 16)
        truth: dict[Value, float] = {"a": 0.4, "b": 0.3, "unlisted": 0.3}
        rng, others = np.random.default_rng(2), []
        for _ in range(300):
            other = decode(it, drawn(it, truth, 30_000, rng), candidates=["a", "b", "c"]).other
            assert other is not None
            others.append((other.estimate, other.low <= 0.3 <= other.high))
        # One string that is not listed has bits of its own, which stay the same: an error that no trial averages out.
        found = np.array(others)
        assert abs(found[:, 0].mean() - 0.3) < 0.03
        assert found[:, 1].mean() > 0.9


def test_the_same_input_gives_the_same_output_bit_for_bit() -> None:
    it = string_metric(64, 2, 16)
    tally = drawn(it, {"a": 0.5, "b": 0.3, "c": 0.2}, 50_000, np.random.default_rng(9))
    first, second = (decode(it, tally, candidates=[*names(700), "a", "b"]) for _ in range(2))
    assert first == second


def test_the_design_is_what_the_client_encodes() -> None:
    it = string_metric(24, 3, 8)
    words = ["", *names(50), "Zürich", "東京", "café", "cafe\u0301"][1:]
    made = bloom_design(it.encoding, words)  # type: ignore[arg-type]
    dense = made.matrix.toarray()
    for number, word in enumerate(words):
        for cohort in range(8):
            bits = it.encode(word, cohort, 0)
            column = dense[cohort * 24 : (cohort + 1) * 24, made.column[number]]
            assert [bits >> bit & 1 for bit in range(24)] == column.tolist()


class TestOddLists:
    IT = string_metric(32, 2, 8)

    def tally(self, it: Metric | None = None) -> Tally:
        return drawn(it or self.IT, {"a": 0.6, "b": 0.4}, 20_000, np.random.default_rng(10))

    def test_repeated_candidates_count_once(self) -> None:
        once = decode(self.IT, self.tally(), candidates=["a", "b", "c"])
        assert decode(self.IT, self.tally(), candidates=["a", "b", "a", "c", "b"]) == once

    def test_two_spellings_of_one_text_are_one(self) -> None:
        rows = decode(self.IT, self.tally(), candidates=["café", "cafe\u0301", "a"]).rows
        assert len(rows) == 2

    def test_candidates_with_the_same_bits_are_reported_together(self) -> None:
        """Eight bits and one cohort: of twenty strings, many are the same."""
        it = string_metric(8, 1, 1)
        words = names(20)
        by_bits: dict[int, list[str]] = {}
        for word in words:
            by_bits.setdefault(it.encode(word, 0, 0), []).append(word)
        estimates = decode(it, drawn(it, {words[0]: 1.0}, 20_000, np.random.default_rng(11)), candidates=words)
        assert {frozenset((row.value, *row.also)) for row in estimates.rows} == set(map(frozenset, by_bits.values()))
        group = next(group for group in by_bits.values() if words[0] in group)
        assert estimates[group[-1]].value == group[0]

    @pytest.mark.parametrize(
        ("bits", "hashes", "cohorts"), [(1, 1, 1), (1, 1, 8), (2, 1, 1), (2, 2, 1), (8, 1, 1), (32, 2, 1), (4, 4, 2)]
    )
    @pytest.mark.parametrize("candidates", [1, 2, 40])
    @pytest.mark.parametrize("reports", [1, 5000])
    def test_small_filters_are_fine(self, bits: int, hashes: int, cohorts: int, candidates: int, reports: int) -> None:
        it = string_metric(bits, hashes, cohorts, CLASSIC)
        tally = drawn(it, {"s0": 0.9, "x": 0.1}, reports, np.random.default_rng(12))
        for strict in (False, True):
            estimates = decode(it, tally, candidates=names(candidates), strict=strict)
            assert sum(1 + len(row.also) for row in estimates.rows) == candidates
            for row in estimates.rows:
                assert row.low <= row.high
                assert 0 <= row.p_value <= 1
            assert str(estimates)

    def test_strings_that_add_up_to_the_same_bits_are_not_told_apart(self) -> None:
        """Bits (0,1), (1,2), (2,3), (3,0) of one cohort: the first and the third are the second and the fourth."""
        rows = np.array([[0, 1], [1, 2], [2, 3], [0, 3]], np.int32)
        made = design(rows, 1, 64, 2)
        noise = Noise.rappor(f=0.5, p=0.5, q=0.75)
        held = np.zeros((1, 64), int)
        held[0, :4] = 60_000, 60_000, 40_000, 40_000
        counts = respond(held, np.array([100_000]), noise, np.random.default_rng(17))
        equations = equations_of(made, noise, np.array([100_000]), counts, has_null=True)
        decoded = decode_strings(made, equations, list("abcd"), 100_000, 0.95, Control("fdr", 0.1))
        assert [row.share for row in decoded.rows] == [None] * 4
        assert (decoded.other.standard_error, decoded.other.low, decoded.other.high) == (None, 0.0, 1.0)

    def test_without_any_noise_the_truth_comes_out(self) -> None:
        made = bloom_design(Bloom(32, 1, 16), names(600))
        noise = Noise.rappor(f=0.0, p=0.0, q=1.0)
        rng = np.random.default_rng(18)
        members = spread_over_cohorts(np.array([500, 300, 200] + [0] * 597), 16, rng)
        numbers = members.sum(axis=0)
        counts = respond(held_bits(made, members), numbers, noise, rng)
        equations = equations_of(made, noise, numbers, counts, has_null=True)
        decoded = decode_strings(made, equations, names(600), 1000, 0.95, Control("fdr", 0.1))
        found = {row.value: row.consistent for row in decoded.rows if row.detected}
        assert found == {
            "s0": pytest.approx(0.5, abs=0.08),
            "s1": pytest.approx(0.3, abs=0.08),
            "s2": pytest.approx(0.2, abs=0.08),
        }

    def test_bits_that_one_string_in_64_has_prove_nothing(self) -> None:
        """Two cohorts of eight bits: among a thousand candidates some have all the bits of a string that is not one."""
        it = string_metric(8, 1, 2, "{ f = 0.1, p = 0.1, q = 0.9 }")
        tally = drawn(it, {"unlisted": 1.0}, 10**6, np.random.default_rng(19))
        estimates = decode(it, tally, candidates=names(1000))
        assert estimates.detected == ()
        assert min(row.p_value for row in estimates.rows) >= 1 / 64

    def test_cohorts_without_reports_are_left_out(self) -> None:
        it = string_metric(32, 1, 16)
        tally = drawn(it, {"a": 0.6, "b": 0.4}, 200_000, np.random.default_rng(13))
        tally.n[3:9] = 0
        tally.counts[3:9] = 0
        row = decode(it, tally, candidates=["a", "b", "c"])["a"]
        assert row.share is not None
        assert abs(row.share - 0.6) < 5 * (row.standard_error or 0)
        assert row.detected

    def test_no_reports_give_an_empty_answer_that_says_so(self) -> None:
        estimates = decode(self.IT, Tally.empty(self.IT), candidates=["a"])
        assert (estimates.reports, estimates.rows, estimates.other) == (0, (), None)
        assert "0 reports" in estimates.alarms[0]

    @pytest.mark.parametrize(
        ("candidates", "message"),
        [
            (None, "needs a list of strings"),
            ("abc", "needs a list of strings"),
            ([], "the list is empty"),
            (["a", ""], "number 2 is empty or too long"),
            (["a", "x" * 5000], "number 2 is empty or too long"),
            ([7], "number 1 is of type int"),
        ],
    )
    def test_lists_that_are_none_are_refused(self, candidates: list[str] | None, message: str) -> None:
        with pytest.raises(ParameterError, match=message):
            decode(self.IT, self.tally(), candidates=candidates)


class TestRefusals:
    IT = metric("category", 'categories = ["a", "b"]')

    def tally(self) -> Tally:
        return simulate_tally(self.IT, {"a": 100, "b": 200}, 1)

    def test_another_version(self) -> None:
        other = Tally("it", 2, self.tally().n, self.tally().counts)
        with pytest.raises(ParameterError, match="is of it version 2; allowed: it version 1"):
            decode(self.IT, other)

    def test_another_shape(self) -> None:
        with pytest.raises(ParameterError, match="shape"):
            decode(self.IT, Tally("it", 1, np.array([5]), np.array([[1, 2, 3]])))

    def test_a_bit_set_more_often_than_there_are_reports(self) -> None:
        with pytest.raises(ParameterError, match="cohort 0 has bit 1 set 9 times in 5 reports"):
            decode(self.IT, Tally("it", 1, np.array([5]), np.array([[1, 9]])))

    def test_negative_counts(self) -> None:
        with pytest.raises(ParameterError, match="negative"):
            decode(self.IT, Tally("it", 1, np.array([5]), np.array([[1, -1]])))

    def test_candidates_of_something_else(self) -> None:
        with pytest.raises(ParameterError, match="kind category"):
            decode(self.IT, self.tally(), candidates=["a"])

    @pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0, float("nan")])
    def test_impossible_confidence(self, confidence: float) -> None:
        with pytest.raises(ParameterError, match="confidence"):
            decode(self.IT, self.tally(), confidence=confidence)

    @pytest.mark.parametrize("control", ["fdr", "fdr:", "fdr:2", "bonferroni:0.1", "family-wise:nan", "fdr:0"])
    def test_impossible_control(self, control: str) -> None:
        with pytest.raises(ParameterError, match="control"):
            decode(self.IT, self.tally(), control=control)

    def test_no_periods(self) -> None:
        with pytest.raises(ParameterError, match="periods"):
            decode(self.IT, self.tally(), periods=0)


def test_a_design_may_come_from_anywhere() -> None:
    """As google's map files do: any rows, repeated ones set one bit."""
    made = design(np.array([[0, 0, 5], [0, 5, 5], [1, 2, 6]], np.int32), 2, 4, 2)
    assert made.columns == 2
    assert made.matrix.toarray()[:, 0].tolist() == [1, 0, 0, 0, 0, 1, 0, 0]


def test_covers_can_fail() -> None:
    with pytest.raises(AssertionError):
        covers(np.array([True] * 90 + [False] * 10))


def test_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    it = string_metric(32, 1, 8)
    estimates: Estimates = decode(it, drawn(it, {"a": 1.0}, 10_000, np.random.default_rng(16)), candidates=["a", "b"])
    assert "1 of 2 candidates found" in str(estimates)
