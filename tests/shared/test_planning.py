"""Planning: the published anchors, and simulations that find what a plan said they would."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from hubbub.shared import ParameterError, Registry
from hubbub.shared.encode import Bloom, Bucket, Encoding
from hubbub.shared.metric import Kind
from hubbub.shared.planning import MIN_COHORT_DEVICES, Goal, Outlook, cohort_warnings, plan

Floats = npt.NDArray[np.float64]


def goal(kind: Kind, **changes: float) -> Goal:
    return Goal(**{"kind": kind, "devices": 100_000, "report": 1.0, "lifetime": 3.0} | changes)  # type: ignore[arg-type]


def test_devices_for_one_percent() -> None:
    """FORMULAS F4: a share of 1 % among 1,000 candidates with 80 % power: 1.76 million and .71 million devices."""
    made = plan(Goal("string", 10**6, 1.0743, 4.3944, candidates=1000, share=0.01))
    assert made.classic.devices_needed == pytest.approx(1.76e6, rel=0.01)
    assert made.recommended.devices_needed == pytest.approx(0.71e6, rel=0.01)
    assert made.classic.variance_per_report == pytest.approx(7.875, rel=1e-3)
    assert made.recommended.variance_per_report == pytest.approx(3.151, rel=1e-3)


@pytest.mark.parametrize("kind", ["string", "category", "flag", "mean", "histogram"])
@pytest.mark.parametrize(("report", "lifetime"), [(0.3, 1.0), (1.0, 2.0), (1.9, 2.0), (3.0, 8.0)])
def test_a_plan_is_a_registry_that_keeps_it(kind: Kind, report: float, lifetime: float) -> None:
    made = plan(goal(kind, report=report, lifetime=lifetime, low=-5.0, high=5.0))
    text = made.registry.replace("NAME", "planned").replace("...", "planned")
    metric = Registry.parse(text)["planned"]
    ours = made.recommended
    assert (metric.response.p1, metric.response.q1) == (ours.p1, ours.q1)
    assert (metric.response.p2, metric.response.q2) == (ours.p2, ours.q2)
    assert metric.epsilon() == ours.epsilon_report <= report
    assert metric.epsilon(math.inf) == ours.epsilon_lifetime <= lifetime
    assert metric.variance == ours.variance_per_report <= made.classic.variance_per_report
    assert made.classic.epsilon_report <= report
    assert made.classic.epsilon_lifetime <= lifetime


def test_more_candidates_get_larger_filters() -> None:
    sizes = []
    for candidates in (1, 100, 1_000, 10_000, 1_000_000, 10_000_000):
        parameters = plan(goal("string", candidates=candidates)).recommended.parameters
        sizes.append(parameters["bits"] * parameters["cohorts"])
    assert sizes == sorted(sizes)
    assert sizes[2] >= 4_000
    assert sizes[-1] == 4096 * 1024


def test_few_buckets_send_one_bit_and_many_send_all() -> None:
    """One bit may spend the whole epsilon: k e^R/(e^R - 1)^2 against 4 e^R/(e^R - 1)^2 for any number of bits."""
    assert plan(goal("histogram", buckets=3)).recommended.parameters["sent"] == 1
    assert plan(goal("histogram", buckets=5)).recommended.parameters["sent"] == 5
    assert plan(goal("histogram", buckets=4096)).recommended.parameters["sent"] == 4096


@pytest.mark.parametrize("kind", ["string", "histogram"])
@pytest.mark.parametrize("devices", [20, 39, 100, 1_000, 20_000, 10**6])
@pytest.mark.parametrize("size", [2, 3, 100, 4096])
def test_a_plan_leaves_enough_devices_in_every_cohort(kind: Kind, devices: int, size: int) -> None:
    made = plan(goal(kind, devices=devices, candidates=size, buckets=size))
    assert devices / made.recommended.parameters["cohorts"] >= MIN_COHORT_DEVICES
    assert not any("withholds" in warning for warning in made.warnings)


@pytest.mark.parametrize(
    ("kind", "changes", "warning"),
    [
        (
            "flag",
            {"devices": 12},
            "12 devices in 1 cohort are too few",
        ),
        (
            "string",
            {"devices": 100, "candidates": 10**6},
            "too few to tell 1,000,000 candidates apart: use at most 4,096 candidates",
        ),
    ],
)
def test_a_plan_warns_of_too_few_devices(kind: Kind, changes: dict[str, float], warning: str) -> None:
    [found] = plan(goal(kind, **changes)).warnings
    assert warning in found


@pytest.mark.parametrize(
    ("encoding", "devices", "words"),
    [
        (Bloom(128, 1, 1024), 1_000, "1,024 cohorts for 1,000 devices leave 1 device in a cohort; "),
        (Bloom(128, 1, 1024), 1_000, "fewer than 10 reports: use at most 32 cohorts"),
        (Bloom(128, 1, 2), 39, "use at most 1 cohort"),
        (Bucket((0.0, 1.0, 2.0, 3.0), 1, 64), 50, "use at most 2 cohorts, with sent = 2 or more"),
    ],
)
def test_cohorts_that_are_too_small_get_advice_that_a_registry_allows(
    encoding: Encoding, devices: int, words: str
) -> None:
    [warning] = cohort_warnings(encoding, devices)
    assert words in warning
    assert cohort_warnings(encoding, MIN_COHORT_DEVICES * encoding.cohorts) == []


def simulated(side: Outlook, share: float, devices: int, rng: np.random.Generator, runs: int) -> Floats:
    """Estimates of a share from as many simulated surveys."""
    p1, q1, p2, q2 = (getattr(side, name) / 65536 for name in ("p1", "q1", "p2", "q2"))
    truth, noise = p1 * p2 + (1 - p1) * q2, q1 * p2 + (1 - q1) * q2
    holders = round(share * devices)
    ones = rng.binomial(holders, truth, runs) + rng.binomial(devices - holders, noise, runs)
    estimates: Floats = (ones - devices * noise) / (truth - noise) / devices
    return estimates


@pytest.mark.parametrize("side", ["recommended", "classic"])
def test_standard_error_and_power_are_what_simulation_finds(side: str) -> None:
    """20,000 simulated surveys of a category; fixed seed. Errors of the measured numbers: 0.5 % and 0.3 points."""
    made = plan(goal("category", categories=20, devices=50_000))
    outlook = getattr(made, side)
    rng = np.random.default_rng(7)
    nothing = simulated(outlook, 0.0, 50_000, rng, 20_000)
    assert nothing.std() == pytest.approx(outlook.standard_error, rel=0.03)
    from scipy.stats import norm

    threshold = norm.isf(0.05 / 20) * outlook.standard_error
    assert np.mean(nothing > threshold) == pytest.approx(0.05 / 20, abs=0.002)
    found = simulated(outlook, outlook.detectable_share, 50_000, rng, 20_000)
    assert np.mean(found > threshold) == pytest.approx(0.8, abs=0.03)


def test_error_of_a_mean_is_what_simulation_finds() -> None:
    made = plan(goal("mean", low=0.0, high=1440.0, error=5.0, devices=20_000))
    ours = made.recommended
    # Worst case of the plan: numbers in the middle of the range, whose bits are toss-ups before any noise.
    rng = np.random.default_rng(8)
    rounded_up = rng.binomial(20_000, 0.5, 20_000) / 20_000
    estimates = 1440 * np.array([simulated(ours, share, 20_000, rng, 1)[0] for share in rounded_up])
    assert estimates.std() == pytest.approx(ours.standard_error, rel=0.03)
    assert ours.devices_needed is not None
    assert ours.standard_error * math.sqrt(20_000 / ours.devices_needed) == pytest.approx(5.0, rel=1e-3)
    assert ours.detectable_share is None


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("string", {"devices": 0}, "devices = 0"),
        ("string", {"candidates": 0}, "candidates = 0"),
        ("string", {"candidates": 10**8}, "candidates"),
        ("category", {"categories": 1}, "categories = 1"),
        ("histogram", {"buckets": 1}, "buckets = 1"),
        ("mean", {"low": 1.0, "high": 1.0}, "range = 1.0 1.0"),
        ("mean", {"low": math.nan}, "range"),
        ("mean", {"high": math.inf}, "range"),
        ("mean", {"share": 0.1}, "a mean has none"),
        ("flag", {"share": 0.0}, "share = 0.0"),
        ("flag", {"share": 1.0}, "share = 1.0"),
        ("flag", {"error": 0.0}, "error = 0.0"),
        ("flag", {"report": 3.0}, "report = 3.0"),
        ("flag", {"report": -1.0}, "report = -1.0"),
        ("flag", {"lifetime": 50.0}, "lifetime = 50.0"),
    ],
)
def test_impossible_goals(kind: Kind, changes: dict[str, float], words: str) -> None:
    with pytest.raises(ParameterError, match="allowed: ") as caught:
        plan(goal(kind, **changes))
    assert words in str(caught.value)
