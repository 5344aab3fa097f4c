"""The default response against RAPPOR's own, at equal epsilons for one report and for a lifetime.

RAPPOR spends its epsilon on two hashes and treats 0 and 1 alike in its permanent step; the default takes one hash and
the response of least variance, that of optimal unary encoding (Wang et al. 2017). Both promise the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.charts import Axis, Figure, Panel
from hubbub.collector.decode import decode
from hubbub.collector.decode.noise import Noise
from hubbub.shared.encode import Bloom
from hubbub.shared.response import Response
from hubbub.simulations.aggregate import respond, simulate_tally
from hubbub.simulations.declared import RAPPOR_EPSILONS as POINT
from hubbub.simulations.declared import category, string
from hubbub.simulations.distributions import counts_of, shares
from hubbub.simulations.drawing import last, level, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import average

if TYPE_CHECKING:
    from hubbub.shared.metric import Metric
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

LIFETIMES = POINT[1] / POINT[0]
"""A lifetime's epsilon is so many times that of a report, here at every point."""
REPORT = (0.25, 0.5, POINT[0], 2.0, 3.0)
OURS, THEIRS = "default response", "RAPPOR's response"
HASHES = {OURS: 1, THEIRS: 2}
KINDS = ("string", "category")

HELD = [f"held {number}" for number in range(50)]
RARE = [f"rare {number}" for number in range(50)]
"""Asked about, but held by nobody: what is estimated of them is noise."""
REPEATS = 50
"""Trials of a category for each of a string: they take no time."""
ZIPF = 1000
"""Strings that follow Zipf's law."""


class Point(NamedTuple):
    """One trial of one response at one epsilon."""

    kind: str
    response: str
    report: float
    reports: int
    trial: int


def least_variance(kind: str, hashes: int, report: float) -> Metric:
    """The response of least variance, at one epsilon of a report."""
    privacy = {"report": report, "lifetime": report * LIFETIMES}
    return string(privacy, hashes=hashes) if kind == "string" else category(HELD + RARE, privacy)


def metric_of(kind: str, response: str, report: float) -> Metric:
    """The same promise, kept in two ways."""
    made = least_variance(kind, HASHES[response], report)
    if response == OURS:
        return made
    return replace(made, response=Response.classic(report, report * LIFETIMES, made.encoding.contrasts))


def noise_of(point: Point, rng: np.random.Generator) -> list[float]:
    """Reports times the mean square of what is estimated of values that nobody has, for one trial or several."""
    metric = metric_of(point.kind, point.response, point.report)
    counts = counts_of(shares("uniform", len(HELD)), point.reports)
    if point.kind == "category":
        noise, reports = Noise.of(metric.response), np.full(REPEATS, point.reports)
        held = np.tile(np.concatenate([counts, np.zeros(len(RARE), np.int64)]), (REPEATS, 1))
        estimates = noise.debias(respond(held, reports, noise, rng).astype(float), reports[:, None].astype(float))
        return (point.reports * np.mean(estimates[:, len(HELD) :] ** 2, axis=1)).tolist()  # type: ignore[no-any-return]
    tag = int(rng.integers(1 << 62))
    held_names, rare_names = ([f"{tag} {name}" for name in names] for names in (HELD, RARE))
    tally = simulate_tally(metric, dict(zip(held_names, counts.tolist(), strict=True)), rng)
    estimates_of = decode(metric, tally, candidates=held_names + rare_names)
    found = [row.share for row in estimates_of.rows if row.value in set(rare_names) and row.share is not None]
    return [float(point.reports * np.mean(np.square(found)))]


def strings_found(point: Point, rng: np.random.Generator) -> int:
    """Strings found among 1,000 that follow Zipf's law."""
    metric = metric_of(point.kind, point.response, point.report)
    tag = int(rng.integers(1 << 62))
    names = [f"{tag}-{rank}" for rank in range(ZIPF)]
    counts = rng.multinomial(point.reports, shares("zipf", ZIPF))
    tally = simulate_tally(metric, dict(zip(names, counts.tolist(), strict=True)), rng)
    return len(decode(metric, tally, candidates=names).detected)


def run(run: Run) -> Result:
    """Measure noise and discoveries over a range of epsilons."""

    def points(kind: str) -> list[Point]:
        return [
            Point(kind, response, report, run.devices, trial)
            for response in HASHES
            for report in REPORT
            for trial in range(run.trials)
        ]

    noisy = [point for kind in KINDS for point in points(kind)]
    noises = dict(zip(noisy, run.map(noise_of, noisy, "noise"), strict=True))
    searched = points("string")
    found = dict(zip(searched, run.map(strings_found, searched, "strings found"), strict=True))
    rows = [noise_row(kind, response, report, noises) for kind in KINDS for response in HASHES for report in REPORT]
    finds = [found_row(response, report, found) for response in HASHES for report in REPORT]
    panels = [*(noise_panel(kind, rows) for kind in KINDS), found_panel(finds)]
    figure = Figure("The default response and RAPPOR's, at equal privacy", caption(rows, finds), panels)
    return Result(level(rows, finds), figure, claims(rows))


def expected(metric: Metric) -> float:
    """Reports times variance of a rare value's share; bits of a Bloom filter are shared with the others."""
    if not isinstance(metric.encoding, Bloom):
        return metric.variance
    load = 1 - (1 - 1 / metric.encoding.bits) ** metric.encoding.hashes
    return float(Noise.of(metric.response).variance(np.array(load))) / metric.encoding.hashes


def noise_row(kind: str, response: str, report: float, noises: dict[Point, list[float]]) -> Row:
    """Measured and expected noise."""
    metric = metric_of(kind, response, report)
    values = [v for point, own in noises.items() if point[:3] == (kind, response, report) for v in own]
    mean, low, high = average(values)
    return {
        "panel": kind,
        "response": response,
        "epsilon_report": metric.epsilon(1),
        "epsilon_lifetime": metric.epsilon(math.inf),
        "wanted": report,
        "measured": mean,
        "low": max(low, mean / 100),
        "high": high,
        "theory": expected(metric),
        "variance_per_report": metric.variance,
        "trials": len(values),
    }


def found_row(response: str, report: float, found: dict[Point, int]) -> Row:
    """Strings found, on average."""
    metric = metric_of("string", response, report)
    values = [number for point, number in found.items() if point[1:3] == (response, report)]
    mean, low, high = average(values)
    return {
        "panel": "found",
        "response": response,
        "epsilon_report": metric.epsilon(1),
        "epsilon_lifetime": metric.epsilon(math.inf),
        "wanted": report,
        "measured": mean,
        "low": low,
        "high": high,
        "variance_per_report": metric.variance,
        "trials": len(values),
    }


def noise_panel(kind: str, rows: Rows) -> Panel:
    """Noise against epsilon."""
    own = {response: where(rows, panel=kind, response=response) for response in HASHES}
    measured = [series(name, some, "epsilon_report", look="points") for name, some in own.items()]
    expected = [theory_line(f"theory, {name}", some, "epsilon_report") for name, some in own.items()]
    title = {"string": "Strings", "category": "Categories"}[kind]
    y = Axis("variance of a share x reports", log=True)
    return Panel(title, Axis("epsilon of one report", log=True), y, [*measured, *expected])


def found_panel(rows: Rows) -> Panel:
    """Strings found against epsilon."""
    lines = [series(name, where(rows, response=name), "epsilon_report") for name in HASHES]
    y = Axis(f"strings found, of {ZIPF:,}", low=0)
    return Panel("Found (Zipf's law)", Axis("epsilon of one report", log=True), y, lines)


def at_rappor(rows: Rows, panel: str, key: str) -> dict[str, float]:
    """A number of both responses at RAPPOR's own point."""
    return {name: last(rows, key, panel=panel, wanted=POINT[0], response=name) for name in HASHES}


def caption(rows: Rows, finds: Rows) -> str:
    """What to learn, and what of it comes from the response and what from the one hash."""
    variance, alone = (at_rappor(rows, kind, "variance_per_report") for kind in KINDS)
    two_hashes = least_variance("string", HASHES[THEIRS], POINT[0]).variance
    found = at_rappor(finds, "found", "measured")
    return (
        f"At RAPPOR's own point, epsilon {POINT[0]:.2f} a report and {POINT[1]:.2f} a lifetime, the variance of a rare "
        f"string's share, times reports, is {variance[THEIRS]:.3f} with RAPPOR's response and its two hashes. The "
        f"response of least variance makes it {two_hashes:.3f} with two hashes ({variance[THEIRS] / two_hashes:.2f} "
        f"times less), and one hash instead of two makes that {variance[OURS]:.3f} (another "
        f"{two_hashes / variance[OURS]:.2f} times less): the default needs "
        f"{per_cent(variance[OURS] / variance[THEIRS])} of the devices, and most of that gain is the single hash. "
        f"Categories have no hashes; there the response alone gains {alone[THEIRS] / alone[OURS]:.2f} times. The "
        f"default finds {found[OURS]:.1f} strings, RAPPOR's {found[THEIRS]:.1f}."
    )


def claims(rows: Rows) -> list[Claim]:
    """What the formulas say."""
    measured = at_rappor(rows, "string", "measured")
    return [
        Claim(
            "variance of a rare string's share, times reports: RAPPOR's response, and the default",
            "computed from Q(1 - Q)/(h (P - Q)^2) at f = 1/2, p = 1/2, q = 3/4",
            "7.875 and 3.151",
            f"{measured[THEIRS]:.3f} and {measured[OURS]:.3f}, measured with the bits that strings share",
        ),
    ]


EXPERIMENT = Experiment(
    name="optimal-response",
    title="What does the default response gain over RAPPOR's, at the same privacy?",
    setting=(
        "128 bits, 64 cohorts; 2 hashes with RAPPOR's response, 1 with the default. A lifetime's epsilon is 4.09 times "
        "that of a report, as at f = 1/2, p = 1/2, q = 3/4. Zipf's law over 1,000 strings for those found."
    ),
    devices=10**6,
    trials=12,
    run=run,
)
