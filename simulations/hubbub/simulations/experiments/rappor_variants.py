"""RAPPOR and its three modifications, at RAPPOR's parameters, on the same population (Erlingsson et al. 2014, 2.1).

Basic RAPPOR gives each value a bit of its own instead of a Bloom filter; the one-time variants leave out the
instantaneous step, because a value that is reported once needs no protection against being reported again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.collector.decode import decode
from hubbub.simulations.aggregate import simulate_tally
from hubbub.simulations.declared import RAPPOR, RAPPOR_EPSILONS, category, string
from hubbub.simulations.distributions import shares
from hubbub.simulations.drawing import column, last, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import average, root_of_mean
from hubbub.simulations.sizes import spaced

if TYPE_CHECKING:
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

VALUES = 100
NAMES = [f"value {rank}" for rank in range(1, VALUES + 1)]
SHARES = shares("exponential", VALUES)
FULL, BASIC, ONE_TIME, BASIC_ONE_TIME = "RAPPOR", "Basic", "One-time", "Basic One-time"
METRICS = {
    FULL: string(RAPPOR),
    BASIC: category(NAMES, RAPPOR),
    ONE_TIME: string({"f": RAPPOR["f"]}, every="once"),
    BASIC_ONE_TIME: category(NAMES, {"f": RAPPOR["f"]}, every="once"),
}


class Point(NamedTuple):
    """One trial of one variant."""

    variant: str
    reports: int
    trial: int


def trial(point: Point, rng: np.random.Generator) -> tuple[float, int]:
    """Decode a population: the mean square error of the shares, and how many values were found."""
    metric = METRICS[point.variant]
    counts = rng.multinomial(point.reports, SHARES)
    tally = simulate_tally(metric, dict(zip(NAMES, counts.tolist(), strict=True)), rng)
    estimates = decode(metric, tally, candidates=NAMES if metric.kind == "string" else None)
    share = dict(zip(NAMES, SHARES.tolist(), strict=True))
    errors = [row.share - share[row.value] for row in estimates.rows if row.share is not None]
    return float(np.mean(np.square(errors))), len(estimates.detected)


def epsilons(variant: str) -> tuple[float, float]:
    """Of one report, and of all reports of one value; what is reported once has only the one."""
    metric = METRICS[variant]
    return metric.epsilon(1), metric.epsilon(1 if metric.every == "once" else math.inf)


def run(run: Run) -> Result:
    """Decode the same population by all four."""
    numbers = spaced(run.devices, decades=2, per_decade=2)
    points = [Point(name, reports, trial) for name in METRICS for reports in numbers for trial in range(run.trials)]
    outcomes = dict(zip(points, run.map(trial, points), strict=True))
    rows = [
        row_of(name, reports, [outcomes[Point(name, reports, trial)] for trial in range(run.trials)])
        for name in METRICS
        for reports in numbers
    ]
    panels = [error_panel(rows), found_panel(rows), price_panel()]
    return Result(rows, Figure("RAPPOR and its three modifications", caption(rows), panels), claims())


def row_of(name: str, reports: int, outcomes: list[tuple[float, int]]) -> Row:
    """What came of the trials of one variant at one size."""
    error, low, high = root_of_mean([square for square, _ in outcomes])
    found, found_low, found_high = average([number for _, number in outcomes])
    report, lifetime = epsilons(name)
    return {
        "variant": name,
        "reports": reports,
        "error": error,
        "low": low,
        "high": high,
        "theory": math.sqrt(METRICS[name].variance / reports),
        "found": found,
        "found_low": found_low,
        "found_high": found_high,
        "variance_per_report": METRICS[name].variance,
        "epsilon_report": report,
        "epsilon_lifetime": lifetime,
    }


def error_panel(rows: Rows) -> Panel:
    """Measured and expected errors."""
    measured = [series(name, where(rows, variant=name), "reports", "error", "points") for name in METRICS]
    expected = [theory_line(f"theory, {name}", where(rows, variant=name), "reports") for name in METRICS]
    y = Axis("standard error", log=True, percent=True)
    return Panel("Error of one share", Axis("reports", log=True), y, [*measured, *expected])


def found_panel(rows: Rows) -> Panel:
    """What is found."""
    ends = ("found_low", "found_high")
    found = [series(name, where(rows, variant=name), "reports", "found", bars=ends) for name in METRICS]
    y = Axis(f"values found, of {VALUES}", low=0, high=VALUES)
    return Panel("What is found", Axis("reports", log=True), y, found)


def price_panel() -> Panel:
    """What each costs."""
    prices = [epsilons(name) for name in METRICS]
    places = list(range(len(prices)))
    return Panel(
        "What it costs",
        Axis("variant", names=list(METRICS)),
        Axis("epsilon", low=0),
        [
            Series("one report", places, [report for report, _ in prices], look="bars"),
            Series("all reports of one value", places, [lifetime for _, lifetime in prices], look="bars"),
        ],
    )


def caption(rows: Rows) -> str:
    """What to learn."""
    most = max(column(rows, "reports"))
    found = {name: last(rows, "found", variant=name, reports=most) for name in METRICS}
    ratio = METRICS[FULL].variance / METRICS[ONE_TIME].variance
    hash_ratio = METRICS[BASIC].variance / METRICS[FULL].variance
    epsilon_ratio = epsilons(FULL)[1] / epsilons(BASIC)[1]
    return (
        f"At {most:,.0f} reports RAPPOR finds {found[FULL]:.0f} of {VALUES} values, Basic {found[BASIC]:.0f}, One-time "
        f"{found[ONE_TIME]:.0f} and Basic One-time {found[BASIC_ONE_TIME]:.0f}. Without the instantaneous step the "
        f"variance of a share is {ratio:.1f} times smaller, and one report spends all of the lifetime's epsilon. With "
        f"the two hashes of its Bloom filter RAPPOR has {hash_ratio:.1f} times less variance than Basic, and "
        f"{epsilon_ratio:.1f} times its epsilons: Basic is the more private one here."
    )


def claims() -> list[Claim]:
    """The privacy that the paper's theorems give."""
    known = {FULL: RAPPOR_EPSILONS, BASIC: tuple(epsilon / 2 for epsilon in RAPPOR_EPSILONS)}
    return [
        Claim(
            f"epsilon of one report and of a lifetime, {name}",
            "theorems 1 and 2 of Erlingsson et al. 2014 at f = 1/2, p = 1/2, q = 3/4, computed",
            "{:.3f} and {:.3f}".format(*claimed),
            "{:.3f} and {:.3f}".format(*epsilons(name)),
        )
        for name, claimed in known.items()
    ]


EXPERIMENT = Experiment(
    name="rappor-variants",
    title="What do RAPPOR's three modifications gain, and what do they give up?",
    setting=(
        "f = 1/2, p = 1/2, q = 3/4; 128 bits, 2 hashes and 64 cohorts where there is a Bloom filter. "
        f"{VALUES} values, exponential, all of them asked about; false discovery rate 10 %."
    ),
    devices=10**6,
    trials=15,
    run=run,
)
