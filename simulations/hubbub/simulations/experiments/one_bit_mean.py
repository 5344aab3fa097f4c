"""How exact the mean of a private number is: one-bit mean against Laplace noise, and two later mechanisms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.simulations import references
from hubbub.simulations.declared import mean_once
from hubbub.simulations.distributions import shares
from hubbub.simulations.drawing import column, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import root_mean_square
from hubbub.simulations.one_bit import Crowd, direct_estimates, theory
from hubbub.simulations.sizes import to_a_thousandth

if TYPE_CHECKING:
    from hubbub.collector.decode.noise import Numbers
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 7.0, 10.0)
WAYS = ("one-bit mean", "Laplace", "piecewise", "hybrid")
EXACT = WAYS[:2]
"""Those whose sum over any number of devices is drawn at once, and so measured at every point."""
LINE_EPSILON = 1.0
PLACES = 11
RANGE = (-1.0, 1.0)
DRAWS = 4_000_000
"""Numbers that are drawn for a point of the other two, where every device has to be drawn by itself."""
CLAIMED = {
    "one-bit mean": (4.68, 1.72, 1.08),
    "Laplace": (8.0, 2.0, 0.5),
    "piecewise": (5.22, 1.23, 0.241),
    "hybrid": (4.29, 1.04, 0.219),
}
CLAIMED_AT = (1.0, 2.0, 4.0)


def run(run: Run) -> Result:
    """Measure the error over epsilon and the number of devices."""
    sizes = to_a_thousandth(run.devices)
    points = [
        (way, epsilon, devices, run.trials)
        for way in WAYS
        for epsilon in EPSILONS
        for devices in sizes
        if way in EXACT or devices == sizes[0] or epsilon == LINE_EPSILON
    ]
    rows = run.map(measure, points)
    draws = min(run.devices, DRAWS)
    worst = [(way, epsilon, draws) for way in WAYS for epsilon in CLAIMED_AT]
    found = dict(zip(worst, run.map(worst_variance, worst, label="worst variances"), strict=True))
    claims = [
        Claim(
            f"variance of one report at worst, numbers in [-1, 1], epsilon 1, 2, 4: {way}",
            "computed from the formulas of the papers named in hubbub.simulations.references",
            ", ".join(f"{number:.3g}" for number in CLAIMED[way]),
            ", ".join(f"{found[way, epsilon, draws]:.3g}" for epsilon in CLAIMED_AT),
        )
        for way in WAYS
    ]
    return Result(rows, _figure(rows, sizes), claims)


def measure(point: tuple[str, float, int, int], rng: np.random.Generator) -> Row:
    """Draw estimates of one mean by one mechanism, and compare their error with theory."""
    way, epsilon, devices, trials = point
    # Skewed, so that a bias would show: most numbers are near the lower end.
    crowd = Crowd.spread(shares("exponential", PLACES), *RANGE, devices)
    expected, errors = expected_error(way, epsilon, crowd), _errors(way, epsilon, crowd, trials, rng)
    row: Row = {"way": way, "epsilon": epsilon, "devices": devices, "theory": expected, "trials": len(errors)}
    if not len(errors):
        return row | {"error": None, "low": None, "high": None, "ratio": None, "bias": None}
    size = root_mean_square(errors)
    return row | {
        "error": size.value,
        "low": size.low,
        "high": size.high,
        "ratio": size.value / expected,
        "bias": float(errors.mean()),
    }


def expected_error(way: str, epsilon: float, crowd: Crowd) -> float:
    """The standard error that theory gives."""
    if way == "one-bit mean":
        return theory(mean_once(epsilon, *RANGE), crowd)
    if way == "Laplace":
        return math.sqrt(references.laplace_variance(epsilon) / crowd.devices)
    variance = references.piecewise_variance if way == "piecewise" else references.hybrid_variance
    return math.sqrt(float(variance(crowd.values, epsilon) @ crowd.counts)) / crowd.devices


def worst_variance(point: tuple[str, float, int], rng: np.random.Generator) -> float:
    """Measure the variance of one report of the value that has the most: an end of the range, or its middle."""
    way, epsilon, draws = point
    value = 1.0 if way == "piecewise" else 0.0
    if way == "one-bit mean":
        crowd = Crowd(np.array([value]), np.array([1]))
        return float(direct_estimates(mean_once(epsilon, *RANGE), crowd, draws, rng).var())
    if way == "Laplace":
        return float(references.laplace_sums(1, epsilon, draws, rng).var())
    mechanism = references.piecewise if way == "piecewise" else references.hybrid
    return float(mechanism(np.full(draws, value), epsilon, rng).var())


def _errors(way: str, epsilon: float, crowd: Crowd, trials: int, rng: np.random.Generator) -> Numbers:
    """Draw by how much the estimates miss; nothing where it would take too many draws to be worth a point."""
    if way == "one-bit mean":
        return direct_estimates(mean_once(epsilon, *RANGE), crowd, trials, rng) - crowd.mean
    if way == "Laplace":
        return references.laplace_sums(crowd.devices, epsilon, trials, rng) / crowd.devices
    mechanism = references.piecewise if way == "piecewise" else references.hybrid
    affordable = min(trials, DRAWS // crowd.devices)
    if affordable < min(trials, 100):
        return np.empty(0)
    values = np.broadcast_to(np.repeat(crowd.values, crowd.counts), (affordable, crowd.devices))
    means: Numbers = mechanism(values, epsilon, rng).mean(axis=1)
    return means - crowd.mean


def _figure(rows: Rows, sizes: list[int]) -> Figure:
    exact = [row for way in EXACT for row in where(rows, way=way)]
    off = max(abs(ratio - 1) for ratio in column(exact, "ratio"))
    caption = (
        "For this crowd one bit tells more than a number with Laplace noise up to an epsilon of "
        f"{_crossing(sizes[0]):.1f}, by theory; above it the bit has no more to tell, and its error stays. Piecewise "
        "and hybrid send a real number and are better at a large epsilon. One-bit mean and Laplace are within "
        f"{per_cent(off, 1)} of their theoretical standard error at all {len(exact)} points, of "
        f"{min(column(exact, 'trials')):,.0f} trials each."
    )
    epsilon, error = Axis("epsilon of one report", log=True), Axis("error of the mean (of a range of 2)", log=True)
    few, line = where(rows, devices=sizes[0]), where(rows, epsilon=LINE_EPSILON)
    ends = [EPSILONS[0] / 1.3, EPSILONS[-1] * 1.3]
    allowed = Series("theory, within 3 %", ends, [1.0, 1.0], [0.97, 0.97], [1.03, 1.03], look="band")
    panels = [
        Panel(f"{sizes[0]:,} devices", epsilon, error, _lines(few, "epsilon")),
        Panel(f"epsilon {LINE_EPSILON:g}", Axis("devices", log=True), error, _lines(line, "devices")),
        Panel(
            "all points against theory",
            epsilon,
            Axis("measured / theoretical standard error"),
            [allowed, *(_ratios(exact, way, sizes) for way in EXACT)],
        ),
    ]
    return Figure("The mean of a private number", caption, panels)


def _lines(rows: Rows, along: str) -> list[Series]:
    """Theory and measurement of each mechanism."""
    measurements = [series(way, where(rows, way=way), along, "error", "points") for way in WAYS]
    return measurements + [theory_line(f"{way}, theory", where(rows, way=way), along) for way in WAYS]


def _ratios(rows: Rows, way: str, sizes: list[int]) -> Series:
    """Points side by side: those of more devices, and those of Laplace, are moved a little to the right."""
    own = where(rows, way=way)
    step, shift = 1.035, EXACT.index(way) - len(sizes)
    moved = [
        epsilon * step ** (2 * sizes.index(int(devices)) + shift)
        for epsilon, devices in zip(column(own, "epsilon"), column(own, "devices"), strict=True)
    ]
    low, high = (
        [end / expected for end, expected in zip(column(own, key), column(own, "theory"), strict=True)]
        for key in ("low", "high")
    )
    return Series(way, moved, column(own, "ratio"), low, high, look="points")


def _crossing(devices: int) -> float:
    """The epsilon from which Laplace noise is the better of the two, by theory, for this crowd."""
    crowd = Crowd.spread(shares("exponential", PLACES), *RANGE, devices)
    low, high = EPSILONS[0], EPSILONS[-1]
    while high - low > 0.01:
        middle = (low + high) / 2
        one_bit_wins = expected_error("one-bit mean", middle, crowd) < expected_error("Laplace", middle, crowd)
        low, high = (middle, high) if one_bit_wins else (low, middle)
    return low


EXPERIMENT = Experiment(
    name="one-bit-mean",
    title="How exact is the mean of a private number?",
    setting=(
        "Numbers in [-1, 1], most of them near the lower end, reported once (Ding, Kulkarni and Yekhanin 2017); "
        "epsilon 0.1 to 10, a thousandth of the devices to all of them. Piecewise and hybrid, whose sums have no "
        "simple distribution, are drawn device by device, and only where that is affordable."
    ),
    devices=1_000_000,
    trials=20_000,
    run=run,
)
