"""RAPPOR's second example: 200 strings, exponentially distributed, a million reports (Erlingsson et al. 2014, 5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.collector.decode import decode
from hubbub.collector.decode.control import Control
from hubbub.simulations.aggregate import simulate_tally
from hubbub.simulations.declared import RAPPOR, string
from hubbub.simulations.detection import chance
from hubbub.simulations.drawing import level, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import average

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.decode import Estimates
    from hubbub.shared.metric import Metric
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

STRINGS = 200
SCALE = 20
"""Ranks after which shares have fallen to 1/e: our choice, for the commonest string to have the 5 % we remember."""
SHARES = np.exp(-np.arange(STRINGS) / SCALE) / np.exp(-np.arange(STRINGS) / SCALE).sum()
COHORTS = (8, 16, 64)
SHOWN = 16
"""The cohorts of the panels that show single strings."""
ABSENT = (0, 800)
"""How many strings that nobody has are asked about as well."""
CONTROLS = {"fdr:0.1": "false discovery rate 10 %", "family-wise:0.05": "family-wise 5 %"}
FDR, FAMILY_WISE = CONTROLS
REMEMBERED = 47


class Point(NamedTuple):
    """One trial of one setting."""

    cohorts: int
    absent: int
    reports: int
    trial: int


class Outcome(NamedTuple):
    """What was found in one trial, by each control."""

    found: dict[str, NDArray[np.bool_]]
    """Which of the strings, the commonest first."""
    false: dict[str, int]
    estimates: Rows
    """The strings found under the false discovery rate, with their intervals."""


def rappor(cohorts: int) -> Metric:
    """RAPPOR's own parameters."""
    return string(RAPPOR, cohorts=cohorts)


def trial(point: Point, rng: np.random.Generator) -> Outcome:
    """Draw a population and decode it; the strings, and so their bits, are new in every trial."""
    metric = rappor(point.cohorts)
    tag = int(rng.integers(1 << 62))
    names = [f"{tag}-{rank}" for rank in range(STRINGS)]
    asked = names + [f"{tag}-absent-{each}" for each in range(point.absent)]
    counts = rng.multinomial(point.reports, SHARES)
    tally = simulate_tally(metric, dict(zip(names, counts.tolist(), strict=True)), rng)
    decoded = {control: decode(metric, tally, candidates=asked, control=control) for control in CONTROLS}
    found, false = {}, {}
    for control, estimates in decoded.items():
        there = {row.value for row in estimates.detected}
        found[control] = np.array([name in there for name in names])
        false[control] = len(there.difference(names))
    return Outcome(found, false, estimate_rows(point, names, decoded[FDR]))


def estimate_rows(point: Point, names: list[str], estimates: Estimates) -> list[Row]:
    """The true strings that were found."""
    rank = {name: place for place, name in enumerate(names)}
    return [
        {
            "panel": "estimates",
            "cohorts": point.cohorts,
            "candidates": STRINGS + point.absent,
            "rank": rank[row.value] + 1,
            "truth": float(SHARES[rank[row.value]]),
            "estimate": row.consistent,
            "low": row.found_low,
            "high": row.found_high,
        }
        for row in sorted(estimates.detected, key=lambda row: rank.get(row.value, STRINGS))
        if row.value in rank
    ]


def power(metric: Metric, reports: int, candidates: int) -> list[float]:
    """The chance that each string stands out, as if it shared its bits with no other."""
    level = Control.parse(FAMILY_WISE).bar(np.ones(candidates))
    return [chance(share, metric.variance, reports, level) for share in SHARES.tolist()]


def run(run: Run) -> Result:
    """Find strings with few cohorts and many, among true ones alone and among others too."""
    settings = [(cohorts, absent) for cohorts in COHORTS for absent in ABSENT]
    points = [Point(*setting, run.devices, trial) for setting in settings for trial in range(run.trials)]
    answers = dict(zip(points, run.map(trial, points), strict=True))
    outcomes = {
        setting: [answers[Point(*setting, run.devices, trial)] for trial in range(run.trials)] for setting in settings
    }
    found = [found_row(*setting, control, run.devices, of) for setting, of in outcomes.items() for control in CONTROLS]
    ranks = [row for control in CONTROLS for row in rank_rows(control, run.devices, outcomes[SHOWN, 0])]
    estimates = outcomes[SHOWN, 0][0].estimates
    figure = Figure(
        "Finding 200 exponentially distributed strings",
        caption(found),
        [found_panel(found), rank_panel(ranks), estimate_panel(estimates)],
    )
    return Result(level(found, ranks, estimates), figure, claims(found, run.devices))


def found_row(cohorts: int, absent: int, control: str, reports: int, outcomes: list[Outcome]) -> Row:
    """How many strings one setting finds."""
    mean, low, high = average([int(outcome.found[control].sum()) for outcome in outcomes])
    return {
        "panel": "found",
        "place": COHORTS.index(cohorts),
        "cohorts": cohorts,
        "candidates": STRINGS + absent,
        "control": control,
        "reports": reports,
        "trials": len(outcomes),
        "found": mean,
        "low": low,
        "high": high,
        "false": float(np.mean([outcome.false[control] for outcome in outcomes])),
        "theory": sum(power(rappor(cohorts), reports, STRINGS + absent)) if control == FAMILY_WISE else None,
    }


def rank_rows(control: str, reports: int, outcomes: list[Outcome]) -> list[Row]:
    """How often each string is found."""
    often = np.mean([outcome.found[control] for outcome in outcomes], axis=0).tolist()
    expected: list[float | None] = [None] * STRINGS
    if control == FAMILY_WISE:
        expected = [*power(rappor(SHOWN), reports, STRINGS)]
    return [
        {
            "panel": "ranks",
            "cohorts": SHOWN,
            "candidates": STRINGS,
            "control": control,
            "rank": rank + 1,
            "truth": float(SHARES[rank]),
            "often": often[rank],
            "theory": expected[rank],
        }
        for rank in range(STRINGS)
    ]


def found_panel(rows: Rows) -> Panel:
    """Strings found by cohorts."""
    lines = []
    for absent in ABSENT:
        for control, label in CONTROLS.items():
            own = where(rows, candidates=STRINGS + absent, control=control)
            lines.append(series(f"{label}, {STRINGS + absent:,} candidates", own, "place", "found"))
    x = Axis("cohorts", names=[str(cohorts) for cohorts in COHORTS])
    return Panel("Strings found", x, Axis(f"true strings found, of {STRINGS}", low=0), lines)


def rank_panel(rows: Rows) -> Panel:
    """How often each string is found, beside theory."""
    measured = [
        series(label, where(rows, control=control), "rank", "often", "points", bars=None)
        for control, label in CONTROLS.items()
    ]
    expected = theory_line("theory, family-wise", where(rows, control=FAMILY_WISE), "rank")
    return Panel(
        f"Which strings ({SHOWN} cohorts)",
        Axis("rank of the string", low=0, high=STRINGS / 2),
        Axis("trials that find it", percent=True, low=0, high=1),
        [*measured, expected],
    )


def estimate_panel(rows: Rows) -> Panel:
    """Estimates of what one trial found."""
    ends = [0.0, float(SHARES[0])]
    return Panel(
        f"Found in one trial ({SHOWN} cohorts)",
        Axis("true share", percent=True),
        Axis("estimated share", percent=True),
        [
            series("estimate, 95 % interval", rows, "truth", "estimate", "points"),
            Series("estimate = truth", ends, ends, look="theory"),
        ],
    )


def pick(rows: Rows, cohorts: int, candidates: int, control: str) -> Row:
    """One row."""
    return where(rows, cohorts=cohorts, candidates=candidates, control=control)[0]


def caption(rows: Rows) -> str:
    """What to learn."""
    few, many = (pick(rows, cohorts, STRINGS, FDR) for cohorts in (COHORTS[0], COHORTS[-1]))
    strict = pick(rows, SHOWN, STRINGS, FAMILY_WISE)
    long = pick(rows, SHOWN, STRINGS + ABSENT[-1], FDR)
    return (
        f"From {few['reports']:,} reports {few['found']:.0f} strings of {STRINGS} are found with {COHORTS[0]} cohorts "
        f"and {many['found']:.0f} with {COHORTS[-1]}, at a false discovery rate of 10 %; with {SHOWN} cohorts "
        f"family-wise control at 5 % finds {strict['found']:.0f}, and the false discovery rate among "
        f"{long['candidates']:,} candidates {long['found']:.0f}, besides {long['false']:.1f} that nobody has. "
        f"Where all {STRINGS} candidates are true, one that is found by luck counts as found. The scale of the "
        f"exponential, {SCALE}, was chosen by us so that the commonest string has {per_cent(float(SHARES[0]))}, and "
        f"the paper's count of about {REMEMBERED} is remembered and unverified: a match is no proof."
    )


def claims(rows: Rows, reports: int) -> list[Claim]:
    """The paper's count."""
    ours = ", ".join(
        f"{pick(rows, cohorts, STRINGS, control)['found']:.1f} ({cohorts} cohorts, {control}, {reports:,} reports)"
        for cohorts in COHORTS[:2]
        for control in CONTROLS
    )
    error = (rappor(SHOWN).variance * reports) ** 0.5
    source = "Erlingsson, Pihur, Korolova 2014, section 5.2"
    return [
        Claim("strings found of 200 at 10^6 reports", source, f"about {REMEMBERED}", ours, verified=False),
        Claim(
            "standard error of the count of a string at 10^6 reports",
            source + ", table 1",
            "about 2,800",
            f"{error:,.0f} at {reports:,} reports",
            verified=False,
        ),
    ]


EXPERIMENT = Experiment(
    name="rappor-exponential",
    title="How many of 200 exponentially distributed strings do a million reports find?",
    setting=(
        "k = 128 bits, h = 2 hashes, f = 1/2, p = 1/2, q = 3/4, m = 8, 16 and 64 cohorts, 10^6 reports; a share is 1/e "
        f"of that {SCALE} ranks before it, our choice. That the paper used just these numbers is unverified."
    ),
    devices=10**6,
    trials=20,
    run=run,
)
