"""The price of trusting nobody: noise added once by a trusted curator, against noise added by every device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.charts import Axis, Figure, Panel
from hubbub.simulations.declared import mean_once
from hubbub.simulations.distributions import shares
from hubbub.simulations.drawing import column, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import NORMAL_REACH, root_mean_square, root_of_mean
from hubbub.simulations.one_bit import Crowd, direct_estimates, theory

if TYPE_CHECKING:
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

EPSILON = 1.0
WAYS = ("central Laplace", "local one-bit mean")
PLACES = 21
STEPS = 9
FEWEST = 100
GOALS = (0.1, 0.03, 0.01, 0.003, 0.001)
"""Errors that one may want, as parts of the range."""
RISK = 0.05
ALLOWED_ERROR = 0.01


def run(run: Run) -> Result:
    """Measure both errors over the number of devices, and how fast they fall."""
    fewest = min(FEWEST, max(run.devices // 10, 1))
    sizes = sorted({round(size) for size in np.geomspace(fewest, max(run.devices, fewest + 1), STEPS).tolist()})
    rows = run.map(measure, [(way, devices, run.trials) for way in WAYS for devices in sizes])
    tail, kept = run.map(central_tail, [(run.devices, run.trials), (_enough(), run.trials)], label="tails")
    slopes = {way: slope(where(rows, way=way)) for way in WAYS}
    claims = [
        Claim(
            f"slope of the error against the number of devices, logarithmic: {way}",
            "theory: 1/(epsilon n) against 1/(epsilon sqrt n)",
            f"{exponent}",
            f"{slopes[way][0]:.4f}, standard error {slopes[way][1]:.4f}",
        )
        for way, exponent in zip(WAYS, (-1, -0.5), strict=True)
    ]
    claims += [
        Claim(
            "how often the central error exceeds 1/(epsilon n)",
            "the tail of the Laplace distribution, e^-1; some texts take 1/(epsilon n) for a bound",
            f"{math.exp(-1):.3f}",
            f"{tail[0]:.3f}",
        ),
        Claim(
            f"central: {_enough()} devices, ln(1/{RISK})/({ALLOWED_ERROR} epsilon), keep the error below "
            f"{ALLOWED_ERROR} except so often",
            "the same tail",
            f"{RISK}",
            f"{kept[1]:.3f}",
        ),
    ]
    rows += [_needed(way, goal) for way in WAYS for goal in GOALS]
    return Result(rows, _figure(rows, slopes), claims)


def measure(point: tuple[str, int, int], rng: np.random.Generator) -> Row:
    """Draw estimates of one mean, numbers in [0, 1], around the truth of a fixed crowd."""
    way, devices, trials = point
    if way == "central Laplace":
        # One device moves the mean by at most 1/n, its sensitivity.
        scale = 1 / (EPSILON * devices)
        expected, errors = math.sqrt(2) * scale, rng.laplace(0.0, scale, trials)
        size = root_of_mean(errors**2)
    else:
        crowd, metric = Crowd.spread(shares("exponential", PLACES), 0.0, 1.0, devices), mean_once(EPSILON)
        expected, errors = theory(metric, crowd), direct_estimates(metric, crowd, trials, rng) - crowd.mean
        size = root_mean_square(errors)
    return {
        "part": "error",
        "way": way,
        "devices": devices,
        "epsilon": EPSILON,
        "measured": size.value,
        "low": size.low,
        "high": size.high,
        "theory": expected,
    }


def central_tail(point: tuple[int, int], rng: np.random.Generator) -> tuple[float, float]:
    """How often the central error exceeds its scale, and the error that is allowed."""
    devices, trials = point
    errors = np.abs(rng.laplace(0.0, 1 / (EPSILON * devices), trials))
    return float(np.mean(errors > 1 / (EPSILON * devices))), float(np.mean(errors > ALLOWED_ERROR))


def slope(rows: Rows) -> tuple[float, float]:
    """The slope of the straight line through the logarithms, and its standard error, from those of the points."""
    x, y, low, high = (np.log(np.array(column(rows, key))) for key in ("devices", "measured", "low", "high"))
    doubt = float(np.mean(high - low)) / (2 * NORMAL_REACH)
    around = x - x.mean()
    return float(around @ y / (around @ around)), doubt / math.sqrt(float(around @ around))


def devices_for(way: str, goal: float) -> float:
    """How many devices it takes, by theory, until the standard error is no larger than the goal."""
    if way == "central Laplace":
        return math.sqrt(2) / (EPSILON * goal)
    many = 10**6
    return many * (theory(mean_once(EPSILON), Crowd.spread(shares("exponential", PLACES), 0.0, 1.0, many)) / goal) ** 2


def _needed(way: str, goal: float) -> Row:
    needed: Row = {"part": "needed", "way": way, "devices": devices_for(way, goal), "epsilon": EPSILON}
    return needed | {"measured": None, "low": None, "high": None, "theory": goal}


def _enough() -> int:
    return math.ceil(math.log(1 / RISK) / (ALLOWED_ERROR * EPSILON))


def _figure(rows: Rows, slopes: dict[str, tuple[float, float]]) -> Figure:
    errors, needed = where(rows, part="error"), where(rows, part="needed")
    lines = [series(way, where(errors, way=way), "devices", look="points") for way in WAYS]
    lines += [theory_line(f"{way}, theory", where(errors, way=way), "devices") for way in WAYS]
    central, local = (devices_for(way, ALLOWED_ERROR) for way in WAYS)
    caption = (
        f"A trusted curator's error falls with the devices as their power {slopes[WAYS[0]][0]:.2f}, that of devices "
        f"that trust nobody as the power {slopes[WAYS[1]][0]:.2f}. A standard error of {per_cent(ALLOWED_ERROR)} of "
        f"the range at epsilon {EPSILON:g} takes, by theory, {central:,.0f} devices against {local:,.0f}, "
        f"{local / central:,.0f} times as many, and the price grows as the error shrinks."
    )
    return Figure(
        "The price of trusting nobody",
        caption,
        [
            Panel(
                f"error, epsilon {EPSILON:g}",
                Axis("devices", log=True),
                Axis("error of the mean (part of the range)", log=True),
                lines,
            ),
            Panel(
                "devices for a wanted error (theory)",
                Axis("error of the mean (part of the range)", log=True, percent=True),
                Axis("devices", log=True),
                [series(way, where(needed, way=way), "theory", "devices", bars=None) for way in WAYS],
            ),
        ],
    )


EXPERIMENT = Experiment(
    name="central-vs-local",
    title="How many more devices does it take when nobody has to be trusted?",
    setting=(
        "The mean of numbers in [0, 1] at epsilon 1: Laplace noise of scale 1/(epsilon n) added once to the true mean, "
        "against one-bit mean on every device."
    ),
    devices=1_000_000,
    trials=20_000,
    run=run,
)
