"""Rounding at random, once and for all, against rounding to fixed bins: accuracy, bias, and how much a drift reveals.

A device may remember its noisy answers only if its number comes in a few forms. Fixed bins make it so and are wrong for
every number that is not in the middle of one. Rounding up or down to the ends of the range, by an offset that the
device keeps (Ding, Kulkarni and Yekhanin 2017, alpha-point rounding), has two forms and no bias.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector import decode
from hubbub.collector.charts import Axis, Figure, Panel
from hubbub.collector.decode import DEFAULT_CONFIDENCE
from hubbub.collector.decode.interval import normal_quantile
from hubbub.shared.encode.rounding import GRID
from hubbub.simulations.aggregate import simulate_tally
from hubbub.simulations.declared import mean_once
from hubbub.simulations.distributions import normal_shares
from hubbub.simulations.drawing import column, last, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import Measured, average, ratio, root_mean_square
from hubbub.simulations.one_bit import Crowd, direct_estimates, rounded_estimates, theory
from hubbub.simulations.sizes import to_a_thousandth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.charts import Series
    from hubbub.collector.decode.noise import Numbers
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Cell, Run

EPSILON = 1.0
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
PLAIN, ROUNDED = "one-bit mean", "randomised rounding"
BINS = (2, 4, 8, 16)
DRAWN_BINS = (4, 8)
MEAN, DEVIATION = 37.0, 3.0
"""Of the crowd's numbers, per cent of the range: near each other, as bins are wrong for most of them in one way."""
VALUES = 41
DAYS = (1, 3, 10, 30, 100, 365)
STEP = 0.02
"""How far a number moves in a day, as a part of the range: the deviation of a normal step."""
WALKERS = 2_000
FEWEST_TRIALS = 20
"""Without which there is no quotient of standard errors."""


def run(run: Run) -> Result:
    """Measure all four."""
    sizes = to_a_thousandth(run.devices)
    ways = [PLAIN, ROUNDED, *map(_name, BINS)]
    rows = run.map(accuracy, [(way, devices, run.trials) for way in ways for devices in sizes], label="accuracy")
    enough = max(run.trials, FEWEST_TRIALS)
    rows += run.map(same_error, [(epsilon, sizes[-1], enough) for epsilon in EPSILONS], label="ratio")
    places = np.linspace(0, 1, VALUES).tolist()
    rows += run.map(bias, [(bins, place, run.devices) for bins in (0, *DRAWN_BINS) for place in places], label="bias")
    rows += [row for days in run.map(drift, [min(run.devices, WALKERS)], label="drift") for row in days]
    return Result(rows, _figure(rows, sizes[-1]), _claims(rows))


def to_bins(values: Numbers, bins: int) -> Numbers:
    """Round to the nearest of so many evenly spaced numbers, the ends of the range among them."""
    nearest: Numbers = np.floor(values * (bins - 1) + 0.5) / (bins - 1)
    return nearest


def accuracy(point: tuple[str, int, int], rng: np.random.Generator) -> Row:
    """Draw estimates of a crowd's mean in one way, and measure how far off they are."""
    way, devices, trials = point
    metric, crowd = mean_once(EPSILON), _crowd(devices)
    draw = rounded_estimates if way == ROUNDED else direct_estimates
    sent = Crowd(to_bins(crowd.values, int(way.split()[0])), crowd.counts) if way.endswith("bins") else crowd
    size = root_mean_square(draw(metric, sent, trials, rng) - crowd.mean)
    expected = math.hypot(theory(metric, sent), sent.mean - crowd.mean)
    return _row("accuracy", way, size, expected, devices=devices, epsilon=EPSILON)


def same_error(point: tuple[float, int, int], rng: np.random.Generator) -> Row:
    """Compare the standard errors of randomised rounding and of one-bit mean, as the quotient of the two."""
    epsilon, devices, trials = point
    metric, crowd = mean_once(epsilon), _crowd(devices)
    plain, rounded = (draw(metric, crowd, trials, rng) for draw in (direct_estimates, rounded_estimates))
    found = ratio(rounded, plain)
    return _row("ratio", ROUNDED, found, 1.0, devices=devices, epsilon=epsilon)


def bias(point: tuple[int, float, int], rng: np.random.Generator) -> Row:
    """Let all devices hold one number, and see by how much the decoded mean misses it; 0 bins are none."""
    bins, value, devices = point
    metric = mean_once(EPSILON)
    held = float(to_bins(np.array([value]), bins)[0]) if bins else value
    found = decode(metric, simulate_tally(metric, {held: devices}, rng)).mean
    missed = [end - value for end in (found.estimate, found.low, found.high)] if found else [math.nan] * 3
    way = _name(bins) if bins else ROUNDED
    return _row("bias", way, Measured(*missed), held - value, devices=devices, epsilon=EPSILON, value=value)


def chance_without_bias(rows: Rows, way: str) -> float:
    """How often decoded means without a bias miss the truth by as much as these, all numbers together (chi square)."""
    own = where(rows, part="bias", way=way)
    reach = 2 * normal_quantile(DEFAULT_CONFIDENCE)
    ends = zip(*(column(own, key) for key in ("measured", "low", "high")), strict=True)
    return float(special.chdtrc(len(own), sum((reach * miss / (high - low)) ** 2 for miss, low, high in ends)))


def drift(devices: int, rng: np.random.Generator) -> list[Row]:
    """Let numbers wander, and count how often a device has to answer anew because its number took another form."""
    walks = _walks(devices, DAYS[-1], rng)
    offsets = rng.integers(0, GRID, (devices, 1))
    forms: dict[str, NDArray[np.int64]] = {
        ROUNDED: (np.rint(walks * GRID).astype(np.int64) + offsets >= GRID).astype(np.int64)
    }
    forms |= {_name(bins): np.rint(to_bins(walks, bins) * (bins - 1)).astype(np.int64) for bins in BINS}
    moved = np.abs(np.diff(walks, axis=1)).cumsum(axis=1).mean(axis=0)
    rows = []
    for way, form in forms.items():
        changes = (np.diff(form, axis=1) != 0).cumsum(axis=1)
        edges = 1 if way == ROUNDED else int(way.split()[0]) - 1
        for day in DAYS:
            found = average(changes[:, day - 1].astype(np.float64))
            shown = float(np.mean([len(set(each)) for each in form[:, : day + 1].tolist()]))
            # A wandering number passes any one edge as often as any other.
            expected = edges * float(moved[day - 1])
            rows.append(_row("drift", way, found, expected, devices=devices, days=day, forms=shown))
    return rows


def one_way_changes(bins: int, steps: int = 10_000) -> int:
    """Count the changes of a number that goes from one end of the range to the other; at most, over all offsets."""
    way = np.linspace(0, 1, steps)
    if bins:
        return int(np.count_nonzero(np.diff(to_bins(way, bins))))
    metric = mean_once(EPSILON)
    offsets = np.linspace(0, GRID - 1, 17).astype(np.int64).tolist()
    bits = [[metric.encode(value, 0, offset) for value in way[::50].tolist()] for offset in offsets]
    return int(np.abs(np.diff(bits, axis=1)).sum(axis=1).max())


def _walks(devices: int, days: int, rng: np.random.Generator) -> Numbers:
    """Numbers that begin anywhere and take a step a day; the ends of the range throw them back."""
    steps = rng.normal(0, STEP, (devices, days))
    path = np.concatenate([rng.random((devices, 1)), steps], axis=1).cumsum(axis=1)
    folded: Numbers = 1 - np.abs(path % 2 - 1)
    return folded


def _crowd(devices: int) -> Crowd:
    return Crowd.spread(normal_shares(MEAN, DEVIATION, 101), 0.0, 1.0, devices)


def _name(bins: int) -> str:
    return f"{bins} fixed bins"


def _row(part: str, way: str, found: Measured, theory: float, **known: Cell) -> Row:
    empty: Row = dict.fromkeys(("devices", "epsilon", "value", "days", "forms"))
    numbers: Row = {"measured": found.value, "low": found.low, "high": found.high, "theory": theory}
    return {"part": part, "way": way} | empty | known | numbers


def _claims(rows: Rows) -> list[Claim]:
    quotients = where(rows, part="ratio")
    values = ", ".join(f"{value:.4f}" for value in column(quotients, "measured"))
    forms = {str(row["way"]): row["forms"] for row in where(rows, part="drift", days=DAYS[-1])}
    return [
        Claim(
            "repeated collection is as exact as a single round: standard error of randomised rounding over that of "
            f"one-bit mean, epsilon {', '.join(f'{epsilon:g}' for epsilon in EPSILONS)}",
            "Ding, Kulkarni and Yekhanin 2017, abstract: comparable or even the same accuracy",
            "1",
            values,
        ),
        Claim(
            "the decoded mean has no bias: p-value over all numbers, randomised rounding; 4 and 8 fixed bins",
            "the same, theory: rounding by a uniform offset is unbiased, bins are not",
            "no bias; biased, biased",
            "; ".join(
                (
                    f"{chance_without_bias(rows, ROUNDED):.2g}",
                    ", ".join(f"{chance_without_bias(rows, _name(bins)):.2g}" for bins in DRAWN_BINS),
                )
            ),
        ),
        Claim(
            "changes of a number that goes through the whole range in one direction: rounding; 2, 4, 8, 16 bins",
            "alpha-point rounding: one crossing at most; bins: one less than there are",
            "1; 1, 3, 7, 15",
            f"{one_way_changes(0)}; {', '.join(str(one_way_changes(bins)) for bins in BINS)}",
        ),
        Claim(
            f"different answers one device has given after {DAYS[-1]} days, on average: rounding; 2, 4, 8, 16 bins",
            "at most 2 for rounding, so at most 2 lifetime epsilons; bins: as many as there are",
            "2; 2, 4, 8, 16 at most",
            f"{forms[ROUNDED]:.2f}; {', '.join(f'{forms[_name(bins)]:.2f}' for bins in BINS)}",
        ),
    ]


def _figure(rows: Rows, devices: int) -> Figure:
    parts = {part: where(rows, part=part) for part in ("accuracy", "ratio", "bias", "drift")}
    quotients = column(parts["ratio"], "measured")
    off, off_in_bins = (last(parts["accuracy"], "measured", way=way, devices=devices) for way in (ROUNDED, _name(4)))
    changes, changes_in_bins = (last(parts["drift"], "measured", way=way) for way in (ROUNDED, _name(16)))
    caption = (
        "Randomised rounding is as exact as one-bit mean: the quotient of their standard errors is between "
        f"{min(quotients):.3f} and {max(quotients):.3f}. Fixed bins keep an error that no number of devices removes: "
        f"4 bins are off by {off_in_bins:.3f} of the range at {devices:,} devices, rounding by {off:.4f}. A number "
        f"that wanders for {DAYS[-1]} days changes its rounded bit {changes:.1f} times, between two remembered "
        f"answers; one of 16 bins changes {changes_in_bins:.0f} times."
    )
    plain, rounded = (where(parts["accuracy"], way=way) for way in (PLAIN, ROUNDED))
    lines = [
        series(PLAIN, plain, "devices", look="points"),
        _beside(series(ROUNDED, rounded, "devices", look="points")),
    ]
    lines += [series(_name(bins), where(parts["accuracy"], way=_name(bins)), "devices") for bins in BINS]
    lines.append(theory_line(f"{PLAIN}, theory", plain, "devices"))
    biases = [series(ROUNDED, where(parts["bias"], way=ROUNDED), "value", look="points")]
    biases += [series(_name(bins), where(parts["bias"], way=_name(bins)), "value") for bins in DRAWN_BINS]
    drifts = [series(way, where(parts["drift"], way=way), "days") for way in (ROUNDED, *map(_name, BINS))]
    same = [
        series("rounding / one-bit mean", parts["ratio"], "epsilon", look="points"),
        theory_line("the same", parts["ratio"], "epsilon"),
    ]
    share = "error of the mean (part of the range)"
    return Figure(
        "Randomised rounding against fixed bins",
        caption,
        [
            Panel(f"accuracy, epsilon {EPSILON:g}", Axis("devices", log=True), Axis(share, log=True), lines),
            Panel(f"bias, {devices:,} devices", Axis("number that all devices hold"), Axis(share), biases),
            Panel("accuracy compared", Axis("epsilon", log=True), Axis("quotient of standard errors"), same),
            Panel(
                "a number that wanders", Axis("days", log=True), Axis("changes of a device's answer", log=True), drifts
            ),
        ],
    )


def _beside(points: Series) -> Series:
    """Move points a little to the right, for they would hide others."""
    return replace(points, x=[1.15 * x for x in points.x])


EXPERIMENT = Experiment(
    name="rounding",
    title="Does rounding at random, once and for all, cost any accuracy?",
    setting=(
        "The mean of numbers in [0, 1] at epsilon 1, as one-bit mean, with randomised rounding that the device keeps, "
        "and rounded to 2 to 16 fixed bins (Ding, Kulkarni and Yekhanin 2017); and numbers that wander by 2 % of the "
        "range a day for a year."
    ),
    devices=1_000_000,
    trials=20_000,
    run=run,
)
