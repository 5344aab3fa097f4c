"""RAPPOR's first example: a normal distribution from 10^4, 10^5 and 10^6 reports (Erlingsson et al. 2014, 5.1).

Each whole number has a bit of its own. Nothing is assumed about the shape: what looks like a bell was learned as a
hundred separate shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.collector.decode import decode
from hubbub.collector.decode.noise import Noise
from hubbub.simulations.aggregate import simulate_tally
from hubbub.simulations.declared import RAPPOR, category, one_step
from hubbub.simulations.distributions import normal_shares
from hubbub.simulations.drawing import last, level, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import root_of_mean
from hubbub.simulations.sizes import spaced

if TYPE_CHECKING:
    from hubbub.collector.decode.noise import Numbers
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

VALUES = 100
SHARES = normal_shares(50.0, 10.0, VALUES)
NAMES = tuple(str(number) for number in range(VALUES))

ONE_TIME, FULL = "one-time", "full"
METRICS = {ONE_TIME: one_step(NAMES), FULL: category(NAMES, RAPPOR)}
"""A bit for each whole number, by each response."""


class Point(NamedTuple):
    """Some trials of one response at one size."""

    response: str
    reports: int
    trials: int


class Learned(NamedTuple):
    """The curve of the first trial, and how wrong each trial was."""

    estimate: Numbers
    low: Numbers
    high: Numbers
    squares: list[float]
    """Mean square of the errors of the hundred shares."""
    distances: list[float]
    """Total variation between the truth and the nearest possible shares."""


def learn(point: Point, rng: np.random.Generator) -> Learned:
    """Let devices report some times over, and decode."""
    metric = METRICS[point.response]
    curves, squares, distances = [], [], []
    for _ in range(point.trials):
        truth = dict(zip(NAMES, rng.multinomial(point.reports, SHARES).tolist(), strict=True))
        rows = decode(metric, simulate_tally(metric, truth, rng)).rows
        curve = np.array([(row.share, row.low, row.high, row.consistent) for row in rows], np.float64).T
        curves.append(curve)
        squares.append(float(np.mean((curve[0] - SHARES) ** 2)))
        distances.append(float(np.abs(curve[3] - SHARES).sum() / 2))
    estimate, low, high, _ = curves[0]
    return Learned(estimate, low, high, squares, distances)


def theory(response: str, reports: int) -> float:
    """Return the standard error of a share, on average."""
    variance = Noise.of(METRICS[response].response).variance(SHARES).mean()
    return float(np.sqrt(variance / reports))


def run(run: Run) -> Result:
    """Learn it from three sizes of population."""
    numbers = spaced(run.devices, decades=2, per_decade=1)
    points = [Point(response, reports, run.trials) for response in METRICS for reports in numbers]
    learned = dict(zip(points, run.map(learn, points), strict=True))
    curves = [curve_row(point, got, number) for point, got in learned.items() for number in range(VALUES)]
    errors = [error_row(point, got) for point, got in learned.items()]
    shown = [Point(ONE_TIME, reports, run.trials) for reports in numbers]
    panels = [curve_panel(point, learned[point]) for point in shown]
    figure = Figure(
        "Learning a normal distribution (Basic RAPPOR)", caption(errors, numbers), [*panels, error_panel(errors)]
    )
    return Result(level(curves, errors), figure, claims(errors, numbers))


def curve_row(point: Point, got: Learned, number: int) -> Row:
    """One whole number of one curve."""
    return {
        "panel": "curve",
        "response": point.response,
        "reports": point.reports,
        "value": number,
        "truth": float(SHARES[number]),
        "estimate": float(got.estimate[number]),
        "low": float(got.low[number]),
        "high": float(got.high[number]),
    }


def error_row(point: Point, got: Learned) -> Row:
    """How wrong one response is at one size."""
    error, low, high = root_of_mean(got.squares)
    return {
        "panel": "error",
        "response": point.response,
        "reports": point.reports,
        "error": error,
        "low": low,
        "high": high,
        "theory": theory(point.response, point.reports),
        "total_variation": float(np.mean(got.distances)),
        "epsilon": METRICS[point.response].epsilon(1),
    }


def curve_panel(point: Point, got: Learned) -> Panel:
    """The estimate over the truth."""
    values = list(range(VALUES))
    return Panel(
        f"{point.reports:,} reports",
        Axis("value"),
        Axis("share of devices", percent=True, low=-0.05, high=0.09),
        [
            Series(
                "estimate, 95 % interval", values, got.estimate.tolist(), got.low.tolist(), got.high.tolist(), "band"
            ),
            Series("truth", values, SHARES.tolist(), look="theory"),
        ],
    )


def error_panel(rows: Rows) -> Panel:
    """Errors against the number of reports."""
    measured = [series(name, where(rows, response=name), "reports", "error", "points") for name in METRICS]
    expected = [theory_line(f"theory, {name}", where(rows, response=name), "reports") for name in METRICS]
    y = Axis("standard error", log=True, percent=True)
    return Panel("Error of one share", Axis("reports", log=True), y, [*measured, *expected])


def misplaced(rows: Rows, reports: int) -> str:
    """The share of the estimated mass that is in the wrong place, with one step."""
    return per_cent(last(rows, "total_variation", response=ONE_TIME, reports=reports))


def caption(rows: Rows, numbers: list[int]) -> str:
    """What to learn."""
    least, most = numbers[0], numbers[-1]
    return (
        f"One report of each device, epsilon {METRICS[ONE_TIME].epsilon(1):.2f}, and nothing assumed about the shape. "
        f"At {least:,} reports {misplaced(rows, least)} of the estimated mass is in the wrong place, at {most:,} "
        f"{misplaced(rows, most)}. Full RAPPOR, which protects repeated reports too (epsilon "
        f"{METRICS[FULL].epsilon(1):.2f} a report), needs by theory "
        f"{(theory(FULL, most) / theory(ONE_TIME, most)) ** 2:.1f} times as many for the same error."
    )


def claims(rows: Rows, numbers: list[int]) -> list[Claim]:
    """The paper's reading of its figure."""
    return [
        Claim(
            "the estimated curve comes close to the true one as reports grow from 10^4 to 10^6",
            "Erlingsson, Pihur, Korolova 2014, section 5.1; parameters believed to be p = 1/2, q = 3/4, one time",
            "shown in a figure, without numbers",
            "mass in the wrong place: " + ", ".join(f"{misplaced(rows, number)} at {number:,}" for number in numbers),
            verified=False,
        )
    ]


EXPERIMENT = Experiment(
    name="rappor-normal",
    title="How many reports does it take to learn a normal distribution?",
    setting=(
        "Basic RAPPOR over the whole numbers 0 to 99, values from normal(50, 10), 10^4, 10^5 and 10^6 reports. "
        "The paper's exact parameters are unverified: the curves use one step with p = 1/2, q = 3/4 (epsilon ln 3), "
        "the last panel also f = 1/2, p = 1/2, q = 3/4."
    ),
    devices=10**6,
    trials=200,
    run=run,
)
