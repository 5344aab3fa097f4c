"""The published experiments about numbers agree with theory, and with the papers where those are known."""

import json
import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from hubbub.collector.decode.noise import Noise
from hubbub.shared import HubbubError
from hubbub.simulations import references
from hubbub.simulations.declared import mean_once
from hubbub.simulations.drawing import Row, column, number, where
from hubbub.simulations.experiment import Result, Run
from hubbub.simulations.experiments import central_vs_local, experiment, histogram, longitudinal, one_bit_mean, rounding
from hubbub.simulations.measured import NORMAL_REACH, Measured, average, ratio, root_mean_square, root_of_mean, share
from hubbub.simulations.one_bit import Crowd, direct_estimates, rounded_estimates
from hubbub.simulations.work import Work

NAMES = ("one-bit-mean", "rounding", "histogram", "central-vs-local", "longitudinal")


@cache
def result_of(name: str, devices: int, trials: int) -> Result:
    return fresh_result(name, devices, trials, seed=1)


def fresh_result(name: str, devices: int, trials: int, seed: int) -> Result:
    return experiment(name).run(Run(name=name, devices=devices, trials=trials, seed=seed, work=Work()))


def ratios(rows: Sequence[Row], key: str = "measured") -> list[float]:
    seen = [row for row in rows if row[key] is not None]
    return [found / theory for found, theory in zip(column(seen, key), column(seen, "theory"), strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs_small_and_says_what_it_shows(name: str) -> None:
    result = result_of(name, devices=2_000, trials=2)
    assert len({tuple(row) for row in result.rows}) == 1
    json.dumps(list(result.rows), allow_nan=False)
    assert len(result.figure.caption) > 100
    assert result.claims
    for panel in result.figure.panels:
        assert panel.title
        assert panel.x.label
        assert panel.y.label
        for series in panel.series:
            assert series.label
            assert len(series.x) == len(series.y) > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides_and_one_device_and_one_trial_are_enough_to_run(name: str) -> None:
    first, again, other = (fresh_result(name, devices=1, trials=1, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.rows != other.rows
    json.dumps(list(first.rows), allow_nan=False)


def test_errors_of_means_are_within_three_per_cent_of_theory() -> None:
    """48 points of 20,000 trials: 3 % are 6 standard deviations, 5.6 for the sums of ten Laplace; once in 10^6 runs."""
    rows = result_of("one-bit-mean", devices=1_000, trials=20_000).rows
    exact = [row for row in rows if row["way"] in one_bit_mean.EXACT]
    assert len(exact) == 48
    assert max(abs(found - 1) for found in ratios(exact, "error")) < 0.03
    for row in exact:
        assert abs(number(row, "bias")) < 6.5 * number(row, "theory") / math.sqrt(20_000)
    others = [row for row in rows if row["way"] not in one_bit_mean.EXACT and row["error"] is not None]
    assert len(others) == 20
    for row, found in zip(others, ratios(others, "error"), strict=True):
        # 20 points, of normal means but for the smallest: 6.5 standard deviations, once in 10^8 runs.
        assert abs(found - 1) < 6.5 / math.sqrt(2 * number(row, "trials"))


@pytest.mark.parametrize("way", one_bit_mean.WAYS)
def test_the_worst_variances_are_those_of_the_formulas(way: str) -> None:
    values = np.linspace(-1, 1, 201)
    for epsilon, claimed in zip(one_bit_mean.CLAIMED_AT, one_bit_mean.CLAIMED[way], strict=True):
        exact = {
            "one-bit mean": references.one_bit_variance(values, epsilon).max(),
            "Laplace": references.laplace_variance(epsilon),
            "piecewise": references.piecewise_variance(values, epsilon).max(),
            "hybrid": references.hybrid_variance(values, epsilon).max(),
        }[way]
        assert f"{exact:.3g}" == f"{claimed:.3g}"


@pytest.mark.parametrize("mechanism", ["one_bit", "piecewise", "hybrid"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("value", [-1.0, 0.3])
def test_reference_mechanisms_have_the_moments_they_state(mechanism: str, epsilon: float, value: float) -> None:
    """Mean and variance of 100,000 draws within 5.5 standard errors: each of 36 misses once in 10^7 runs or so."""
    values = np.full(100_000, value)
    draw: Callable[..., np.ndarray[tuple[int], np.dtype[np.float64]]] = getattr(references, mechanism)
    drawn = draw(values, epsilon, np.random.default_rng(7))
    exact = float(getattr(references, f"{mechanism}_variance")(values[:1], epsilon)[0])
    assert abs(drawn.mean() - value) < 5.5 * math.sqrt(exact / len(values))
    squares = (drawn - value) ** 2
    assert abs(squares.mean() - exact) < 5.5 * squares.std() / math.sqrt(len(values)) + 1e-9


def test_the_hybrid_mechanism_tosses_its_coin_above_an_epsilon_of_0_61() -> None:
    assert references.piecewise_share(0.60) == 0
    assert references.piecewise_share(0.62) == pytest.approx(1 - math.exp(-0.31))


def test_the_piecewise_mechanism_keeps_its_promise() -> None:
    """In cells of 1/10, no likelihood ratio beyond e^epsilon; 10^6 draws, 6 standard errors of room, 1 run in 10^7."""
    rng, epsilon = np.random.default_rng(3), 1.0
    counts = [
        np.histogram(references.piecewise(np.full(10**6, value), epsilon, rng), 80, (-4.1, 4.1))[0].astype(float)
        for value in (-1.0, 1.0)
    ]
    seen = (counts[0] > 1_000) & (counts[1] > 1_000)
    logs = np.log(counts[0][seen] / counts[1][seen])
    room = 6 * np.sqrt(1 / counts[0][seen] + 1 / counts[1][seen])
    assert (np.abs(logs) <= epsilon + room).all()
    assert np.abs(logs).max() > epsilon - 0.1


def test_k_ary_response_is_unbiased_and_as_noisy_as_stated() -> None:
    """Five means and variances from 20,000 trials within 5.5 standard errors: once in 10^6 runs."""
    counts, epsilon, trials = np.array([500, 300, 150, 50, 0]), 1.0, 20_000
    found = references.k_ary_shares(counts, epsilon, trials, np.random.default_rng(2))
    exact = references.k_ary_variance(counts / 1000, epsilon) / 1000
    assert (np.abs(found.mean(axis=0) - counts / 1000) < 5.5 * np.sqrt(exact / trials)).all()
    assert (np.abs(found.var(axis=0) / exact - 1) < 5.5 * math.sqrt(2 / trials)).all()
    assert found.sum(axis=1) == pytest.approx(1)
    own, other = references.k_ary_chances(5, epsilon)
    assert own / other == pytest.approx(math.e)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda rng: references.piecewise(np.zeros(1), 0.0, rng), "epsilon = 0.0; allowed: a number above 0"),
        (lambda rng: references.laplace_sums(1, math.nan, 1, rng), "epsilon = nan; allowed: a number above 0"),
        (lambda rng: references.hybrid(np.array([2.0]), 1.0, rng), "values: hold a number outside.*allowed: -1 to 1"),
        (lambda rng: references.k_ary_shares(np.array([3]), 1.0, 1, rng), "buckets = 1; allowed: 2 and above"),
    ],
)
def test_impossible_parameters_are_refused(wrong: Callable[[np.random.Generator], object], message: str) -> None:
    with pytest.raises(HubbubError, match=message):
        wrong(np.random.default_rng(1))


def test_randomised_rounding_is_one_bit_mean() -> None:
    """Quotients of standard errors within 5.5 of their own of 1, biases of 0: once in 10^6 runs."""
    trials = 10_000
    rows = result_of("rounding", devices=10_000, trials=trials).rows
    assert all(
        abs(math.log(found)) < 5.5 / math.sqrt(trials) for found in column(where(rows, part="ratio"), "measured")
    )
    assert max(abs(found - 1) for found in ratios(where(rows, part="accuracy"))) < 5.5 / math.sqrt(2 * trials)
    assert rounding.chance_without_bias(rows, rounding.ROUNDED) > 1e-7


def test_fixed_bins_are_biased_for_numbers_between_them() -> None:
    assert rounding.to_bins(np.array([0.0, 0.16, 0.17, 0.4, 0.6, 1.0]), 4) == pytest.approx(
        [0, 0, 1 / 3, 1 / 3, 2 / 3, 1]
    )
    rows = result_of("rounding", devices=10_000, trials=10_000).rows
    assert 0.12 < max(column(where(rows, part="bias", way="4 fixed bins"), "theory")) < 1 / 6
    assert rounding.chance_without_bias(rows, "4 fixed bins") < 1e-20


def test_a_number_that_wanders_changes_a_rounded_bit_as_often_as_it_passes_one_edge() -> None:
    """Mean changes of 2,000 devices within 5.5 standard errors of theory: 30 of them, once in 10^6 runs."""
    rows = where(result_of("rounding", devices=2_000, trials=2).rows, part="drift")
    for row in rows:
        found, low, high, theory = (number(row, key) for key in ("measured", "low", "high", "theory"))
        # A step over two edges at once is one change: up to 5 % of those of 16 bins.
        assert abs(found - theory) < 5.5 * (high - low) / (2 * NORMAL_REACH) + 0.05 * theory * (
            row["way"] == "16 fixed bins"
        )
    assert max(column(where(rows, way=rounding.ROUNDED), "forms")) <= 2
    assert [rounding.one_way_changes(bins) for bins in (0, 2, 4, 16)] == [1, 1, 3, 15]


def test_rounding_drawn_together_is_rounding_drawn_device_by_device() -> None:
    """Means and variances of two samples of 4,000 within 5.5 standard errors of each other: once in 10^6 runs."""
    metric, crowd, trials = mean_once(1.0), Crowd(np.array([0.1, 0.45, 0.9]), np.array([30, 50, 20])), 4_000
    rng = np.random.default_rng(4)
    noise, grid = Noise.of(metric.response), metric.encoding.offsets
    values = np.repeat(crowd.values, crowd.counts)
    bits = np.rint(values * grid).astype(np.int64) + rng.integers(0, grid, (trials, 100)) >= grid
    sent = rng.random((trials, 100)) < np.where(bits, noise.truth, noise.lie)
    single = (sent.mean(axis=1) - noise.lie) / noise.slope
    for draw in (rounded_estimates, direct_estimates):
        together = draw(metric, crowd, trials, rng)
        assert abs(together.mean() - single.mean()) < 5.5 * math.hypot(together.std(), single.std()) / math.sqrt(trials)
        assert abs(math.log(together.std() / single.std())) < 5.5 / math.sqrt(trials)


def test_histograms_are_as_exact_as_theory_says() -> None:
    """52 points of 5 trials of 31 free shares: together 6.5 standard deviations, besides 1 % that theory leaves out."""
    rows = result_of("histogram", devices=50_000, trials=5).rows
    assert abs(np.mean(np.log(ratios(rows)))) < 6.5 / math.sqrt(2 * 31 * 5 * len(rows)) + 0.01
    whole, half = (histogram.declare(histogram.OURS, 1, epsilon, 100).variance for epsilon in (1.0, 0.5))
    assert (round(whole), round(half)) == (92, 392)
    # A single bit leaves nothing to choose; of many, the response of least variance is the better.
    both = [where(rows, sent=sent, epsilon=4.0) for sent in (1, 32)]
    (one, one_too), (published, ours, k_ary) = (column(found, "theory") for found in both)
    assert one == one_too
    assert k_ary < ours < published


def test_trusting_nobody_costs_the_square() -> None:
    """Slopes within 6 standard errors, tails within 6 of a binomial: once in 10^8 runs."""
    trials = 10_000
    rows = where(result_of("central-vs-local", devices=100_000, trials=trials).rows, part="error")
    for way, exponent in zip(central_vs_local.WAYS, (-1, -0.5), strict=True):
        found, doubt = central_vs_local.slope(where(rows, way=way))
        assert abs(found - exponent) < 6 * doubt < 0.02
    # The square of a Laplace error has a relative variance of 5, and its root a quarter of that.
    assert max(abs(found - 1) for found in ratios(rows)) < 6 * math.sqrt(5 / 4 / trials)
    above, _ = central_vs_local.central_tail((500, trials), np.random.default_rng(1))
    assert abs(above - math.exp(-1)) < 6 * math.sqrt(math.exp(-1) * (1 - math.exp(-1)) / trials)
    central, local = (central_vs_local.devices_for(way, 0.01) for way in central_vs_local.WAYS)
    assert central == pytest.approx(141.4, abs=0.1)
    assert local > 50 * central


def test_more_days_go_down_to_the_floor() -> None:
    """28 errors from 10,000 trials within 5.5 standard deviations of theory: once in 10^6 runs."""
    rows = result_of("longitudinal", devices=5_000, trials=10_000).rows
    assert max(abs(found - 1) for found in ratios(rows)) < 5.5 / math.sqrt(2 * 10_000)
    classic = where(rows, way=longitudinal.RAPPOR)
    theory = {row["days"]: 5_000 * number(row, "theory") ** 2 for row in classic}
    assert (theory[1], theory[30]) == pytest.approx((7.875, 0.625))
    assert 5_000 * column(classic, "floor")[0] ** 2 == pytest.approx(0.375, rel=1e-6)
    ours = where(rows, way=longitudinal.OURS)
    assert 5_000 * column(ours, "theory")[0] ** 2 == pytest.approx(3.151, abs=0.005)
    assert column(classic, "epsilon")[0] == pytest.approx(1.0743, abs=1e-4)
    assert max(column(ours, "epsilon")) < 4.395 < column(where(rows, way=longitudinal.FRESH), "epsilon")[-1]


@pytest.mark.parametrize("way", [longitudinal.RAPPOR, longitudinal.ONE_BIT])
def test_days_drawn_together_are_days_drawn_one_by_one(way: str) -> None:
    """Standard deviations of two samples of 4,000 within 5.5 standard errors of each other: once in 10^7 runs."""
    devices, days, trials, share = 40, 5, 4_000, 0.3
    rng, noise = np.random.default_rng(6), Noise.of(longitudinal.metric_of(way).response, 5)
    held = rng.random((trials, devices)) < share
    kept = rng.random((trials, devices)) < np.where(held, noise.p1, noise.q1)
    sent = rng.random((days, trials, devices)) < np.where(kept, noise.p2, noise.q2)
    single = (sent.mean(axis=(0, 2)) - noise.lie) / noise.slope
    together = longitudinal.estimates(noise, devices, share, days, trials, rng, remembered=True)
    assert abs(math.log(together.std() / single.std())) < 5.5 / math.sqrt(trials)
    assert abs(together.mean() - single.mean()) < 5.5 * math.hypot(together.std(), single.std()) / math.sqrt(trials)


@pytest.mark.parametrize(
    ("interval", "truth"),
    [
        (lambda rng: root_mean_square(rng.normal(0, 3, 50)), 3.0),
        (lambda rng: root_of_mean(rng.normal(0, 3, 500) ** 2), 3.0),
        (lambda rng: average(rng.normal(5, 1, 4)), 5.0),
        (lambda rng: share(rng.binomial(300, 0.3), 300), 0.3),
        (lambda rng: ratio(rng.normal(0, 2, 50), rng.normal(0, 1, 30)), 2.0),
    ],
)
def test_intervals_cover(interval: Callable[[np.random.Generator], Measured], truth: float) -> None:
    """Of 1,000 intervals of 95 %, 900 to 985 cover, but for once in 10^7 runs at a true coverage of 94.5 % to 95 %."""
    rng = np.random.default_rng(8)
    found = [interval(rng) for _ in range(1_000)]
    assert 900 <= sum(each.low <= truth <= each.high for each in found) <= 985
    assert all(each.low < each.value < each.high for each in found)
