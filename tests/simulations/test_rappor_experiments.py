"""RAPPOR's published experiments, run small, say what theory says.

A mean square over trials is held against its theory in units of its own scatter, sqrt(2/(trials x values)) for
estimates that are nearly normal; each test states how often it would fail by chance.
"""

import math

import pytest

from hubbub.simulations.declared import ONE_STEP
from hubbub.simulations.detection import learnable, smallest_share
from hubbub.simulations.drawing import Row, column, last, level, number, per_cent, series, where
from hubbub.simulations.experiment import Result, Run
from hubbub.simulations.experiments import experiment, optimal_response
from hubbub.simulations.experiments.optimal_response import REPEATS, least_variance, metric_of
from hubbub.simulations.experiments.rappor_detection import COMPUTED, half_row
from hubbub.simulations.measured import average, root_of_mean
from hubbub.simulations.sizes import spaced, to_a_thousandth
from hubbub.simulations.work import Work

ALL = ("rappor-normal", "rappor-exponential", "rappor-detection", "rappor-variants", "optimal-response")
SMALL = {
    "rappor-normal": (100_000, 20),
    "rappor-exponential": (200_000, 1),
    "rappor-detection": (20_000, 1),
    "rappor-variants": (100_000, 1),
    "optimal-response": (100_000, 1),
}


def run(name: str, devices: int, trials: int, seed: int = 1) -> Result:
    return experiment(name).run(Run(name=name, devices=devices, trials=trials, seed=seed, work=Work()))


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    with pytest.MonkeyPatch.context() as patch:
        # How many strings are found is not tested: fewer of them take less time.
        patch.setattr(optimal_response, "ZIPF", 100)
        return {name: run(name, *SMALL[name]) for name in ALL}


def scatters(measured: float, theory: float, values: int) -> float:
    """How far a mean square of so many nearly normal errors is from its theory."""
    return abs(measured / theory - 1) / math.sqrt(2 / values)


@pytest.mark.parametrize("name", ALL)
def test_figures_can_be_read_and_rows_be_tabled(results: dict[str, Result], name: str) -> None:
    result = results[name]
    assert len({tuple(row) for row in result.rows}) == 1, "all rows have the same keys"
    assert 1 <= len(result.figure.panels) <= 4
    assert all([result.figure.title, result.figure.caption])
    for panel in result.figure.panels:
        assert all([panel.title, panel.x.label, panel.y.label])
        assert all(each.label and len(each.x) == len(each.y) for each in panel.series)
    assert all(claim.what and claim.source and claim.claimed and claim.ours for claim in result.claims)


def test_same_seed_same_result_other_seed_another() -> None:
    first, again, other = (run("rappor-normal", 2_000, 2, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.rows != other.rows


def test_errors_of_the_normal_curve_are_those_of_theory(results: dict[str, Result]) -> None:
    """Six mean squares of 2,000 errors each, five and a half scatters: by chance once in 4 million."""
    rows = where(results["rappor-normal"].rows, panel="error")
    for error, theory in zip(column(rows, "error"), column(rows, "theory"), strict=True):
        assert scatters(error**2, theory**2, 20 * 100) < 5.5


def test_the_curve_is_drawn_with_intervals_that_hold_the_truth(results: dict[str, Result]) -> None:
    """600 intervals at 95 %: fewer than 530 hold the truth by chance once in 10^10."""
    rows = where(results["rappor-normal"].rows, panel="curve")
    pairs = zip(column(rows, "low"), column(rows, "truth"), column(rows, "high"), strict=True)
    assert len(rows) == 600
    assert sum(low <= truth <= high for low, truth, high in pairs) > 530


def test_learnable_strings_are_those_computed_before() -> None:
    assert [learnable(ONE_STEP.variance, reports) for reports in COMPUTED] == list(COMPUTED.values())
    for reports, most in COMPUTED.items():
        assert smallest_share(ONE_STEP.variance, reports, most) <= 1 / most
        assert smallest_share(ONE_STEP.variance, reports, most + 1) > 1 / (most + 1)


def test_crowds_are_found_as_often_as_theory_says(results: dict[str, Result]) -> None:
    """Strings found in all 30 crowds together, a tenth for approximations and 5 standard errors: once in 10^6."""
    rows = where(results["rappor-detection"].rows, panel="crowds")
    strings, theory, found = (column(rows, key) for key in ("strings", "theory", "found"))
    expected = sum(many * chance for many, chance in zip(strings, theory, strict=True))
    scatter = math.sqrt(sum(many * chance * (1 - chance) for many, chance in zip(strings, theory, strict=True)))
    total = sum(many * share for many, share in zip(strings, found, strict=True))
    assert abs(total - expected) < 0.1 * expected + 5 * scatter
    assert all(
        low <= share <= high for low, share, high in zip(column(rows, "low"), found, column(rows, "high"), strict=True)
    )


def test_where_half_are_found_is_read_between_the_crowds() -> None:
    shares = {50: 0.9, 100: 0.6, 200: 0.4, 400: 0.1}
    rows: list[Row] = [
        {"mechanism": "RAPPOR", "reports": 7, "strings": strings, "found": share, "low": share, "high": share + 0.3}
        for strings, share in shares.items()
    ]
    row = half_row(rows, "RAPPOR", 7)
    assert row["measured"] == pytest.approx(math.sqrt(100 * 200))
    assert row["high"] == pytest.approx(math.exp(math.log(200) + math.log(2) * 2 / 3))
    assert half_row(rows[:2], "RAPPOR", 7)["measured"] is None


def test_variants_err_as_their_variance_says_and_promise_what_the_theorems_do(results: dict[str, Result]) -> None:
    """20 mean squares of 100 errors, with 9 % for the bits that strings share: outside once in 10^6 (chi-square)."""
    rows = results["rappor-variants"].rows
    for row in rows:
        assert 0.40 < (number(row, "error") / number(row, "theory")) ** 2 < 2.17
    promised = {row["variant"]: (row["epsilon_report"], row["epsilon_lifetime"]) for row in rows}
    assert promised["RAPPOR"] == pytest.approx((1.0743, 4.3944), abs=1e-3)
    assert promised["Basic"] == pytest.approx((1.0743 / 2, 4.3944 / 2), abs=1e-3)
    assert promised["One-time"] == pytest.approx((4.3944, 4.3944), abs=1e-3)
    assert promised["Basic One-time"] == pytest.approx((4.3944 / 2, 4.3944 / 2), abs=1e-3)


def test_common_strings_are_found_and_hardly_any_that_nobody_has(results: dict[str, Result]) -> None:
    """Expected 13 and more found in each setting, give or take 4: 3 to 44 but once in 10^6.

    Half of the 12 decodings ask about strings that nobody has; about 6 are reported, more than 30 less than once in
    10^6. Each of the 50 rarest strings is found family-wise once in 4,000 times: more than 3 of them once in 10^9.
    """
    rows = results["rappor-exponential"].rows
    found = where(rows, panel="found")
    assert all(2 < number(row, "found") < 45 for row in found)
    assert sum(column(found, "false")) <= 30
    often = where(rows, panel="ranks")
    assert sum(number(row, "often") for row in often if number(row, "rank") <= 5) > 5
    rarest = [row for row in often if number(row, "rank") > 150 and row["control"] == "family-wise:0.05"]
    assert sum(column(rarest, "often")) <= 3


def test_the_default_response_keeps_the_promise_with_less_noise(results: dict[str, Result]) -> None:
    """Ten mean squares of 2,500 errors each, 5.5 scatters: by chance once in 2 million."""
    rows = where(results["optimal-response"].rows, panel="category")
    for measured, theory in zip(column(rows, "measured"), column(rows, "theory"), strict=True):
        assert scatters(measured, theory, REPEATS * 50) < 5.5
    ours, theirs = (metric_of("string", response, 1.0743) for response in ("default response", "RAPPOR's response"))
    assert (theirs.variance, ours.variance) == pytest.approx((7.875, 3.151), abs=2e-3)
    for metric in (ours, theirs):
        assert metric.epsilon(1) == pytest.approx(1.0743, abs=1e-3)
        assert metric.epsilon(1) <= 1.0743
        assert metric.epsilon(math.inf) <= 4.3944 + 1e-9


def test_string_noise_is_that_of_theory(results: dict[str, Result]) -> None:
    """Ten mean squares of 50 errors, with 10 % for an uneven spread of bits: outside once in 10^6 (chi-square)."""
    rows = where(results["optimal-response"].rows, panel="string")
    for measured, theory in zip(column(rows, "measured"), column(rows, "theory"), strict=True):
        assert 0.24 < measured / theory < 2.8


def test_the_caption_tells_the_response_from_the_hash(results: dict[str, Result]) -> None:
    two_hashes = least_variance("string", 2, 1.0743).variance
    assert two_hashes == pytest.approx(6.77, abs=0.01)
    caption = results["optimal-response"].figure.caption
    assert all(f"{variance:.3f}" in caption for variance in (7.875, two_hashes, 3.151))
    assert 7.875 / two_hashes < two_hashes / 3.151, "most of the gain is the single hash"


def test_small_helpers() -> None:
    assert spaced(10**6, decades=2, per_decade=1) == [10**4, 10**5, 10**6]
    assert spaced(50, decades=2, per_decade=1) == [50]
    assert to_a_thousandth(10**6) == [10**3, 10**4, 10**5, 10**6]
    assert to_a_thousandth(150) == [10, 15, 150]
    assert average([3.0]) == (3.0, 3.0, 3.0)
    mean, low, high = average([1.0, 3.0])
    assert (mean, low + high) == pytest.approx((2.0, 4.0))
    assert high == pytest.approx(2 + 12.706, abs=1e-3)  # Student's interval of two numbers is that wide
    assert root_of_mean([4.0]) == (2.0, 2.0, 2.0)
    assert level([{"a": 1}], [{"b": 2}]) == [{"a": 1, "b": None}, {"a": None, "b": 2}]
    assert [per_cent(0.204), per_cent(0.204, 1)] == ["20\N{NO-BREAK SPACE}%", "20.4\N{NO-BREAK SPACE}%"]


def test_series_are_drawn_of_the_rows_that_hold_a_number() -> None:
    rows: list[Row] = [{"x": x, "y": y, "low": 0, "high": 9} for x, y in ((1, 2.0), (2, None), (3, 4.0))]
    drawn = series("it", rows, "x", "y")
    assert (drawn.x, drawn.y, drawn.high) == ([1, 3], [2, 4], [9, 9])
    assert last(rows, "y", x=1) == 2
    with pytest.raises(TypeError, match="y"):
        column(rows, "y")
