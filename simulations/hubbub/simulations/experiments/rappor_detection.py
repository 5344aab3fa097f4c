"""How rare a string can be and still be found, and how many can be learned (Erlingsson et al. 2014, 4.2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.charts import Axis, Figure, Panel
from hubbub.collector.decode import decode
from hubbub.collector.decode.noise import Noise
from hubbub.collector.tally import Tally
from hubbub.shared.planning import ALPHA
from hubbub.simulations.aggregate import respond, simulate_tally
from hubbub.simulations.declared import ONE_STEP, RAPPOR_EPSILONS, one_step, string
from hubbub.simulations.declared import RAPPOR as RAPPORS_PRIVACY
from hubbub.simulations.detection import chance, learnable, smallest_share
from hubbub.simulations.drawing import column, last, level, number, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import share
from hubbub.simulations.sizes import spaced

if TYPE_CHECKING:
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

CONTROL = f"family-wise:{ALPHA:g}"
CROWDS = (0.5, 0.7, 1.0, 1.4, 2.0)
"""How many strings there are, in parts of what the formula says can be learned."""
FORMULA_DECADES = range(4, 11)
LISTED = 100
"""The strings asked about, for the smallest share."""
COMPUTED = {10**4: 18, 10**6: 147, 10**8: 1266, 10**10: 11254}
"""Most equally likely strings, for p = 1/2, q = 3/4, f = 0, computed before and apart from this code."""

BASIC, RAPPOR, DEFAULT = "Basic One-time", "RAPPOR", "default response"
RAPPOR_METRIC = string(RAPPORS_PRIVACY)
DEFAULT_METRIC = string(dict(zip(("report", "lifetime"), RAPPOR_EPSILONS, strict=True)), hashes=1)
MEASURED = (BASIC, RAPPOR)
VARIANCES = {BASIC: ONE_STEP.variance, RAPPOR: RAPPOR_METRIC.variance, DEFAULT: DEFAULT_METRIC.variance}


class Point(NamedTuple):
    """Some trials of one crowd."""

    mechanism: str
    reports: int
    strings: int
    trials: int


def crowd(point: Point, rng: np.random.Generator) -> int:
    """Let devices hold equally likely strings, and count those that are found, in all trials together."""
    names = [f"{int(rng.integers(1 << 62))}-{each}" for each in range(point.strings)]
    spread = np.full(point.strings, 1 / point.strings)
    found = 0
    for _ in range(point.trials):
        counts = rng.multinomial(point.reports, spread)
        if point.mechanism == BASIC:
            metric = one_step(names)
            tally = Tally.empty(metric)
            tally.n[:] = point.reports
            tally.counts[:] = respond(counts[None], tally.n, Noise.of(ONE_STEP), rng)
            found += len(decode(metric, tally, control=CONTROL).detected)
        else:
            tally = simulate_tally(RAPPOR_METRIC, dict(zip(names, counts.tolist(), strict=True)), rng)
            found += len(decode(RAPPOR_METRIC, tally, candidates=names, control=CONTROL).detected)
    return found


def run(run: Run) -> Result:
    """Compare the formula with what is found in crowds of several sizes."""
    points = [
        Point(mechanism, reports, max(round(part * learnable(VARIANCES[mechanism], reports)), 2), run.trials)
        for mechanism in MEASURED
        for reports in spaced(run.devices, decades=3, per_decade=1)
        for part in CROWDS
    ]
    found = run.map(crowd, points)
    crowds = [crowd_row(point, hits) for point, hits in zip(points, found, strict=True)]
    halves = [half_row(crowds, mechanism, reports) for mechanism, reports in dict.fromkeys(p[:2] for p in points)]
    formula = [formula_row(mechanism, 10**decade) for mechanism in VARIANCES for decade in FORMULA_DECADES]
    figure = Figure(
        "What can be learned, and what cannot",
        caption(halves, formula),
        [share_panel(formula), learnable_panel(formula, halves), crowd_panel(crowds)],
    )
    return Result(level(formula, halves, crowds), figure, claims(halves))


def crowd_row(point: Point, found: int) -> Row:
    """The share of the strings found, with Wilson's interval."""
    variance, often = VARIANCES[point.mechanism], share(found, point.strings * point.trials)
    return {
        "panel": "crowds",
        "mechanism": point.mechanism,
        "reports": point.reports,
        "strings": point.strings,
        "of_learnable": point.strings / learnable(variance, point.reports),
        "found": often.value,
        "low": often.low,
        "high": often.high,
        "theory": chance(1 / point.strings, variance, point.reports, ALPHA / point.strings),
    }


def half_row(crowds: Rows, mechanism: str, reports: int) -> Row:
    """How many strings there may be for half of them to be found, between the crowds that were tried."""
    own = where(crowds, mechanism=mechanism, reports=reports)
    strings = np.log(column(own, "strings"))

    def crossing(key: str) -> float | None:
        found = np.minimum.accumulate(column(own, key))
        if not found[-1] <= 0.5 <= found[0]:
            return None
        return float(np.exp(np.interp(0.5, found[::-1], strings[::-1])))

    measured, low, high = (crossing(key) for key in ("found", "low", "high"))
    return {
        "panel": "learnable",
        "mechanism": mechanism,
        "reports": reports,
        "learnable": learnable(VARIANCES[mechanism], reports),
        "measured": measured,
        "low": low,
        "high": high,
    }


def formula_row(mechanism: str, reports: int) -> Row:
    """What the formulas say."""
    return {
        "panel": "formula",
        "mechanism": mechanism,
        "reports": reports,
        "smallest_share": smallest_share(VARIANCES[mechanism], reports, LISTED),
        "learnable": learnable(VARIANCES[mechanism], reports),
        "rule_of_thumb": math.sqrt(reports) / 10,
    }


def share_panel(formula: Rows) -> Panel:
    """The smallest share."""
    lines = [series(name, where(formula, mechanism=name), "reports", "smallest_share", bars=None) for name in VARIANCES]
    y = Axis(f"share of devices, among {LISTED} strings (formula)", log=True, percent=True)
    return Panel("Smallest share that is found", Axis("reports", log=True), y, lines)


def learnable_panel(formula: Rows, halves: Rows) -> Panel:
    """How many strings can be learned, by formula and as measured."""
    known = [row for row in halves if None not in row.values()]
    own = {name: where(formula, mechanism=name) for name in MEASURED}
    lines = [series(f"{name}, measured", where(known, mechanism=name), "reports", look="points") for name in MEASURED]
    lines += [theory_line(f"formula, {name}", rows, "reports", "learnable") for name, rows in own.items()]
    lines.append(theory_line("rule of thumb, sqrt(n)/10", own[BASIC], "reports", "rule_of_thumb"))
    y = Axis("equally likely strings", log=True)
    return Panel("Strings that can be learned", Axis("reports", log=True), y, lines)


def crowd_panel(crowds: Rows) -> Panel:
    """What is found in crowds below the limit and beyond it."""
    largest = max(column(crowds, "reports"))
    own = {name: where(crowds, mechanism=name, reports=largest) for name in MEASURED}
    measured = [series(name, rows, "of_learnable", "found", "points") for name, rows in own.items()]
    expected = [theory_line(f"theory, {name}", rows, "of_learnable") for name, rows in own.items()]
    x = Axis("strings, in parts of the formula's number")
    y = Axis("strings found", percent=True, low=0, high=1)
    return Panel(f"More strings, {largest:,.0f} reports", x, y, [*measured, *expected])


def caption(halves: Rows, formula: Rows) -> str:
    """What to learn."""
    known = [row for row in halves if row["measured"]]
    ratios = [number(row, "measured") / number(row, "learnable") for row in known]
    close = ""
    if ratios:
        least = known[int(np.argmin(ratios))]
        close = (
            f"Half of the strings are found when there are {min(ratios):.2f} to {max(ratios):.2f} times as many as the "
            "formula says, which leaves out that the strings of a Bloom filter share bits; fewest with "
            f"{least['mechanism']} at {least['reports']:,} reports. "
        )

    def smallest(mechanism: str) -> str:
        million, more = (last(formula, "smallest_share", mechanism=mechanism, reports=10**n) for n in (6, 8))
        return f"{per_cent(million, 2)} at 10^6 reports and {per_cent(more, 3)} at 10^8"

    return (
        f"{close}By the formula a hundred times the reports find strings a tenth as common, here among {LISTED}: "
        f"{smallest(RAPPOR)} with RAPPOR's parameters, and {smallest(DEFAULT)} with the default response at the same "
        "epsilons."
    )


def claims(halves: Rows) -> list[Claim]:
    """The computed numbers, and the paper's rule of thumb."""
    measured = [row for row in halves if row["mechanism"] == BASIC and row["measured"]]
    return [
        Claim(
            "most equally likely strings that can be learned at n = "
            + ", ".join(f"{reports:.0e}" for reports in COMPUTED),
            "computed from z(1 - 0.05/S) sqrt(Q(1 - Q)/n)/(P - Q) at p = 1/2, q = 3/4, f = 0",
            ", ".join(map(str, COMPUTED.values())),
            ", ".join(str(learnable(ONE_STEP.variance, reports)) for reports in COMPUTED),
        ),
        Claim(
            "about sqrt(n)/10 strings can be learned",
            "Erlingsson, Pihur, Korolova 2014, section 4.2",
            ", ".join(f"{math.sqrt(number(row, 'reports')) / 10:.0f} at {row['reports']:,}" for row in measured),
            ", ".join(f"{row['measured']:.0f} at {row['reports']:,}" for row in measured),
            verified=False,
        ),
    ]


EXPERIMENT = Experiment(
    name="rappor-detection",
    title="How rare can a string be and still be found, and how many can be learned?",
    setting=(
        "Equally likely strings, family-wise error 5 %. Basic One-time RAPPOR with p = 1/2, q = 3/4 (f = 0), and "
        "RAPPOR with f = 1/2, p = 1/2, q = 3/4, 128 bits, 2 hashes, 64 cohorts."
    ),
    devices=10**7,
    trials=8,
    run=run,
)
