"""The attacks do what theory says they can, and no more."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from hubbub.collector.decode.noise import Noise
from hubbub.simulations.attackers import seeded
from hubbub.simulations.drawing import Row, column, last, number, where
from hubbub.simulations.experiment import Result, Run
from hubbub.simulations.experiments import ATTACKS, averaging_attack, experiment, poisoning, tracking_attack
from hubbub.simulations.work import Work

SIZES = {
    "averaging-attack": (500, 60),
    "tracking-attack": (1600, 4),
    "drift-attack": (400, 20),
    "poisoning": (6000, 2),
}
SURE = 6
"""Standard errors that a normal number is away from its mean 2 times in 10^9."""


def run_small(name: str, devices: int, trials: int) -> Result:
    return experiment(name).run(Run(name=name, devices=devices, trials=trials, seed=1, work=Work()))


@cache
def result(name: str) -> Result:
    return run_small(name, *SIZES[name])


def hits(row: Row, share: str) -> tuple[int, int]:
    """How many devices were guessed right, and how many were not."""
    right = round(number(row, share) * number(row, "devices"))
    return right, int(number(row, "devices")) - right


@pytest.mark.parametrize("name", ATTACKS)
def test_rows_and_figure_are_complete(name: str) -> None:
    found = result(name)
    assert all(row.keys() == found.rows[0].keys() for row in found.rows)
    assert found.claims
    assert found.figure.title
    assert len(found.figure.caption) > 100
    assert 1 <= len(found.figure.panels) <= 4
    for panel in found.figure.panels:
        assert panel.title
        assert panel.x.label
        assert panel.y.label
        for series in panel.series:
            assert len(series.x) == len(series.y) > 1
            assert np.isfinite(series.y).all()


@pytest.mark.parametrize("name", ["drift-attack", "averaging-attack"])
def test_the_same_seed_gives_the_same_result(name: str) -> None:
    """Also where the shipped client is asked, whose noise would come from the operating system."""
    first, again = (run_small(name, devices=20, trials=5) for _ in range(2))
    assert first == again


def test_the_seeded_client_is_the_shipped_one_but_for_its_noise() -> None:
    metric = averaging_attack.METRICS["string"]
    copy = seeded(metric, np.random.default_rng(1))
    assert copy == metric
    assert copy.fingerprint == metric.fingerprint
    assert metric.response.instantaneous is not copy.response.instantaneous


@pytest.mark.parametrize("metric", ["category", "category_rappor"])
def test_averaging_levels_off_where_the_permanent_bits_are_known(metric: str) -> None:
    """Exact: a permanent 1 is shared with those of the others that have one. False alarm 1e-7 at each metric."""
    noise = Noise.of(averaging_attack.METRICS[metric].response)
    values, lie = len(averaging_attack.CATEGORIES), noise.q1
    level = noise.p1 * (1 - (1 - lie) ** values) / (values * lie) + (1 - noise.p1) * (1 - lie) ** (values - 1) / values
    row = where(result("averaging-attack").rows, metric=metric, client="remembers")[-1]
    right, wrong = hits(row, "guessed")
    assert stats.binomtest(right, right + wrong, level).pvalue > 1e-7
    assert level < number(row, "lifetime_bound")


def test_no_average_beats_its_epsilon() -> None:
    """68 shares, each above its bound by chance once in 10^8."""
    for row in result("averaging-attack").rows:
        right, wrong = hits(row, "guessed")
        bound = number(row, "bound")
        assert stats.binomtest(right, right + wrong, bound, alternative="greater").pvalue > 1e-8


def test_a_client_that_forgets_gives_all_away() -> None:
    """All but the values that share their bits: 4 shares, each as far off by chance once in 10^7."""
    rows = result("averaging-attack").rows
    for metric in averaging_attack.METRICS:
        row = where(rows, metric=metric, client="forgets")[-1]
        right, wrong = hits(row, "guessed")
        ceiling = number(row, "collisions_allow")
        assert stats.binomtest(right, right + wrong, ceiling).pvalue > 1e-7


def test_the_shipped_client_is_guessed_as_the_model_is() -> None:
    """Fisher's exact test on 12 pairs, each as far apart by chance 5 times in 10^8."""
    rows = result("averaging-attack").rows
    for row in where(rows, client="client"):
        model = where(rows, metric=row["metric"], client="remembers", reports=row["reports"])[0]
        assert stats.fisher_exact(np.array([hits(row, "guessed"), hits(model, "guessed")])).pvalue > 5e-8


def test_the_likelihood_of_true_pairs_is_the_mutual_information() -> None:
    """The sum over all 90 settings has a standard error of less than 0.3 %: 2 % is more than six of them."""
    rows = result("tracking-attack").rows
    exact, measured = (sum(column(rows, name)) for name in ("information_bits", "measured_information_bits"))
    assert measured == pytest.approx(exact, rel=0.02)


def test_tracking_needs_information() -> None:
    """Of 25 devices four times: 90 shares, each above Fano's bound or chance by chance once in 10^8."""
    rows = result("tracking-attack").rows
    for row in rows:
        right = round(100 * number(row, "linked"))
        assert stats.binomtest(right, 100, number(row, "fano_bound"), alternative="greater").pvalue > 1e-8
    assert min(column(where(rows, response=tracking_attack.ONCE, bits=128), "linked")) == 1.0
    blind = round(100 * last(rows, "linked", response="hubbub 1 / 8", bits=32, days=1))
    assert stats.binomtest(blind, 100, 1 / 25).pvalue > 1e-7
    assert last(rows, "linked", response=tracking_attack.RAPPOR, bits=128, days=30) > 0.9


def test_information_of_one_report_by_enumeration() -> None:
    noise = Noise(0.6, 0.2, 0.8, 0.3)
    total = 0.0
    for bits, permanent in ((1, noise.p1), (2, noise.q1)):
        ones = permanent * noise.p2 + (1 - permanent) * noise.q2
        for a in (0, 1):
            for b in (0, 1):
                both = sum(
                    weight * (chance if a else 1 - chance) * (chance if b else 1 - chance)
                    for weight, chance in ((permanent, noise.p2), (1 - permanent, noise.q2))
                )
                alone = (ones if a else 1 - ones) * (ones if b else 1 - ones)
                total += bits * both * math.log2(both / alone)
    assert tracking_attack.information(noise, 1, 3, 1) == pytest.approx(total)


def test_a_rounded_number_costs_two_answers_and_moves_unseen() -> None:
    """The advantage is at most the share moved: 12 differences of two shares, each within 6 of its largest errors."""
    rows = result("drift-attack").rows
    assert last(rows, "y", question="spent", metric="bins") == pytest.approx(40, rel=1e-3)
    for metric in ("rounding", "rounding_still"):
        assert 1.9 < last(rows, "encodings", question="spent", metric=metric) <= 2
        assert max(column(where(rows, question="spent", metric=metric), "y")) <= 4
        for row in where(rows, question="changed", metric=metric):
            gain, most = number(row, "y"), number(row, "theory")
            assert -SURE * math.sqrt(0.5 / 400) < gain < most + SURE * math.sqrt(0.5 / 400)
    assert last(rows, "y", question="changed", metric="bins") > 0.99
    assert last(rows, "y", question="day", metric="bins", x=2) > last(rows, "y", question="day", metric="rounding", x=2)


def test_liars_gain_what_the_formulas_say() -> None:
    """Some 70 estimates within 6 standard errors of the decoder's noise, sqrt(targets n Var / (devices trials))."""
    devices, trials = SIZES["poisoning"]
    checked = 0
    for row in result("poisoning").rows:
        if row["lie"] == "greedy" or (row["metric"] == "string" and row["targets"] != 1):
            continue  # what the decoder takes back of these is no formula of ours
        metric = poisoning.METRICS[str(row["metric"])]
        gain, theory, targets = (number(row, name) for name in ("gain", "theory", "targets"))
        variance = 2 * metric.variance if metric.kind == "string" else metric.variance
        error = math.sqrt((targets * variance + 1) / (devices * trials))
        assert abs(gain - theory) < SURE * error, row
        checked += 1
    assert checked > 60


def test_the_decoder_notices_greed_and_not_care() -> None:
    """Honest tallies raise an alarm once in 10,000 looks: three among the 60 of ten tallies, 4 times in 10^8."""
    trials = SIZES["poisoning"][1]
    rows = where(result("poisoning").rows, varied="noticed", metric="category")
    assert last(rows, "alarm_ones_per_report", lie="greedy", liars=0.1) == 1.0
    assert last(rows, "alarm_misfit", lie="greedy", liars=0.1) == 1.0
    assert sum(column(where(rows, lie="modest"), "alarm")) * trials < 3
    assert sum(column(where(rows, lie="careful"), "alarm_ones_per_report")) * trials < 3
