"""Poisoning: what a share of lying devices can do to an estimate, who notices, and what a bound per device buys.

A liar need not randomise. With P and Q the chances that a set and a clear bit are sent, one that always sets a bit
counts for (1 - Q)/(P - Q) devices that hold it, and one that sets r bits for r times that. So a share b of liars moves
the sum of r targets by b (r (1 - Q)/(P - Q) - their true share); with optimal unary encoding that is the gain of Cao,
Jia and Gong (2021). It moves a one-bit mean by at most b e^E/(e^E - 1) of its range.

Three ways to lie:

    modest    an honest client that is told the target as its value: nobody can tell, and the gain is least
    greedy    all target bits set, and all others noise as honest devices send it: too many ones
    careful   all target bits set, and as many ones as an honest report has, the rest elsewhere at random
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.collector.count import count_bits
from hubbub.collector.decode import decode
from hubbub.collector.decode.diagnostics import ones_distribution
from hubbub.collector.decode.noise import Noise
from hubbub.collector.tally import Tally
from hubbub.simulations.aggregate import simulate_tally
from hubbub.simulations.attackers import codes
from hubbub.simulations.declared import RAPPOR, category, mean, string
from hubbub.simulations.distributions import counts_of, shares
from hubbub.simulations.drawing import column, last, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import average, share

if TYPE_CHECKING:
    from hubbub.collector import Estimates
    from hubbub.shared.metric import Metric
    from hubbub.simulations.attackers import Bits, Counts
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

LIARS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)
NOTICED = (0.001, 0.003, 0.01, 0.03, 0.1)
SHARE, FEW = 0.01, 0.001
"""Of liars, where something else is varied: their targets, and their reports."""
MANY = 10
"""Targets, where it is asked who notices."""
TARGETS = (1, 2, 5, 10, 20, 40, 60)
REPEATS = (1, 3, 10, 30, 100)
CATEGORIES = tuple(f"value-{number}" for number in range(100))
LIES = ("modest", "greedy", "careful")
DIAGNOSTICS = ("cohort_balance", "saturated_bits", "misfit", "explained", "listed", "ones_per_report")
MEANS = {0.1: 9, 0.3: 1}
"""How many of ten honest devices hold each number: a mean of 0.12, far from the end that liars pull to."""

_SOLVED = {"report": 1.0, "lifetime": 4.0}
_MADE = (
    category(CATEGORIES, _SOLVED, name="category", description="category, hubbub"),
    category(CATEGORIES, RAPPOR, name="category_rappor", description="category, RAPPOR"),
    string(_SOLVED, hashes=1, cohorts=16, name="string", description="string, hubbub"),
    mean({"report": 1.0, "lifetime": 2.0}, name="mean", description="mean, hubbub"),
)
METRICS = {metric.name: metric for metric in _MADE}


@dataclass(frozen=True)
class Point:
    """A population of which some lie."""

    varied: str
    metric: str
    lie: str
    liars: float
    targets: int
    repeats: int
    devices: int
    trials: int


def run(run: Run) -> Result:
    """Vary the liars, then the targets, then the reports that each liar gets away with."""
    size = (run.devices, run.trials)
    points = [
        Point("liars", metric, lie, liars, 1, 1, *size)
        for metric in METRICS
        for lie in ("modest", "careful")
        for liars in LIARS
        if (metric, lie) != ("string", "modest")
    ]
    points += [Point("targets", "category", lie, SHARE, targets, 1, *size) for lie in LIES for targets in TARGETS]
    points += [
        Point("noticed", metric, lie, liars, MANY, 1, *size)
        for metric in ("category", "string")
        for lie in LIES
        for liars in NOTICED
    ]
    points += [
        Point("repeats", metric, "careful", FEW, 1, repeats, *size)
        for metric in ("category", "mean")
        for repeats in REPEATS
    ]
    rows = run.map(poison, points)
    return Result(rows, _figure(rows), _claims(rows))


def poison(point: Point, rng: np.random.Generator) -> Row:
    """Draw honest tallies, add what the liars send, and decode."""
    metric = METRICS[point.metric]
    liars = round(point.liars * point.devices)
    found = [_trial(point, metric, liars, rng) for _ in range(point.trials)]
    gain, low, high = average([gain for gain, _ in found])
    raised = [{look.name for look in each.diagnostics if look.alarm} for _, each in found]
    noticed = share(sum(bool(names & set(DIAGNOSTICS)) for names in raised), point.trials)
    return {
        "varied": point.varied,
        "metric": point.metric,
        "lie": point.lie,
        "liars": point.liars,
        "targets": point.targets,
        "repeats": point.repeats,
        "devices": point.devices,
        "trials": point.trials,
        "gain": gain,
        "low": low,
        "high": high,
        "theory": expected_gain(metric, point),
        "alarm": noticed.value,
        "alarm_low": noticed.low,
        "alarm_high": noticed.high,
        **{f"alarm_{name}": float(np.mean([name in names for names in raised])) for name in DIAGNOSTICS},
    }


def expected_gain(metric: Metric, point: Point) -> float:
    """By how much the liars should move the estimate, if nothing is done about them."""
    noise = Noise.of(metric.response)
    reports = point.liars * point.repeats
    weight = reports / (1 - point.liars + reports)
    if point.lie == "modest":
        return weight * (1 - _truth(metric, point.targets))
    ones = float(point.targets)
    chances = ones_distribution(metric.encoding, noise)
    if point.lie == "careful" and chances is not None:
        # A report has only so many ones to give.
        ones = float(chances @ np.minimum(np.arange(len(chances)), point.targets))
    return weight * ((ones - point.targets * noise.lie) / noise.slope - _truth(metric, point.targets))


def _truth(metric: Metric, targets: int) -> float:
    """The true share of the targets, the rarest values; of a mean, the mean."""
    if metric.kind == "mean":
        return sum(number * weight for number, weight in MEANS.items()) / sum(MEANS.values())
    return float(shares("zipf", len(CATEGORIES))[-targets:].sum())


def _trial(point: Point, metric: Metric, liars: int, rng: np.random.Generator) -> tuple[float, Estimates]:
    """The gain of one poisoned tally, and all that the decoder says about it."""
    noise = Noise.of(metric.response)
    honest = point.devices - liars
    tally = _honest(metric, honest, rng)
    cohort, bits = _lies(point, metric, noise, liars * point.repeats, rng)
    tally += Tally(tally.metric, tally.version, *_count(metric, cohort, bits))
    chances = ones_distribution(metric.encoding, noise)
    ones = None
    if chances is not None:
        # Drawn apart from the tally: right for each diagnostic alone, though not for how they go together.
        ones = rng.multinomial(honest, chances / chances.sum())
        ones += np.bincount(bits.sum(axis=1), minlength=len(chances))
    found = decode(metric, tally, candidates=CATEGORIES if metric.kind == "string" else None, ones=ones)
    if found.mean is not None:
        return found.mean.estimate - _truth(metric, 1), found
    targets = sum(found[name].share or 0.0 for name in CATEGORIES[-point.targets :])
    return targets - _truth(metric, point.targets), found


def _count(metric: Metric, cohort: Counts, bits: Bits) -> tuple[Counts, Counts]:
    counts = np.zeros((metric.encoding.cohorts, metric.size), np.int64)
    counted = count_bits(np.packbits(bits, axis=1, bitorder="little"), metric.size, cohort)
    counts[: len(counted)] = counted
    return np.bincount(cohort, minlength=metric.encoding.cohorts), counts


def _honest(metric: Metric, devices: int, rng: np.random.Generator) -> Tally:
    if metric.kind == "mean":
        weights = np.array(list(MEANS.values()))
        numbers = counts_of(weights / weights.sum(), devices).tolist()
        return simulate_tally(metric, dict(zip(MEANS, numbers, strict=True)), rng)
    numbers = counts_of(shares("zipf", len(CATEGORIES)), devices).tolist()
    return simulate_tally(metric, dict(zip(CATEGORIES, numbers, strict=True)), rng)


def _lies(point: Point, metric: Metric, noise: Noise, reports: int, rng: np.random.Generator) -> tuple[Counts, Bits]:
    """What the liars send; they pick their cohorts as honest devices do."""
    cohort = rng.integers(metric.encoding.cohorts, size=reports)
    if metric.kind == "mean":
        chance = noise.truth if point.lie == "modest" else 1.0
        return cohort, rng.random((reports, 1)) < chance
    table = codes(metric, CATEGORIES[-point.targets :])
    if point.lie == "modest":
        encoded = table[cohort, rng.integers(point.targets, size=reports)]
        return cohort, rng.random(encoded.shape) < np.where(encoded, noise.truth, noise.lie)
    wanted: Bits = np.bitwise_or.reduce(table, axis=1)[cohort]
    if point.lie == "greedy":
        return cohort, wanted | (rng.random(wanted.shape) < noise.lie)
    chances = ones_distribution(metric.encoding, noise)
    number = rng.choice(metric.size + 1, size=(reports, 1), p=None if chances is None else chances / chances.sum())
    # Places in random order, the wanted ones first; the first `number` of them are set.
    order = rng.random(wanted.shape, np.float32) - wanted
    last = np.take_along_axis(np.sort(order, axis=1), np.maximum(number - 1, 0), axis=1)
    return cohort, (order <= last) & (number > 0)


def _figure(rows: Rows) -> Figure:
    gain = Axis("gain of the target, or of the mean", percent=True, low=0)
    few = where(rows, varied="repeats", metric="category")
    ways = (("category_rappor", "careful"), ("category", "careful"), ("mean", "careful"), ("category", "modest"))
    panels = [
        Panel(
            "One target: how much?",
            Axis("devices that lie", percent=True),
            gain,
            [
                each
                for metric, lie in ways
                for each in _pair(f"{METRICS[metric].description}, {lie}", _of(rows, "liars", metric, lie), "liars")
            ],
        ),
        Panel(
            f"{per_cent(SHARE)} lie: several targets",
            Axis(f"targets, of {len(CATEGORIES)} categories", log=True),
            Axis("gain of all targets together", percent=True, low=0),
            [each for lie in LIES for each in _pair(lie, _of(rows, "targets", "category", lie), "targets")],
        ),
        Panel(
            f"{MANY} targets: who notices?",
            Axis("devices that lie", log=True, percent=True),
            Axis("tallies with an alarm", percent=True, low=0, high=1.02),
            [
                _alarms(rows, "greedy, category: ones_per_report", "category", "greedy", "alarm_ones_per_report"),
                _alarms(rows, "greedy, category: misfit", "category", "greedy", "alarm_misfit"),
                _alarms(rows, "greedy, string: misfit", "string", "greedy", "alarm_misfit"),
                _alarms(rows, "careful, string: any", "string", "careful", "alarm"),
                _alarms(rows, "careful, category: any", "category", "careful", "alarm"),
                _alarms(rows, "modest, category: any", "category", "modest", "alarm"),
            ],
        ),
        Panel(
            f"{per_cent(FEW, 1)} lie: several reports each",
            Axis("reports of each liar in a period", log=True),
            gain,
            [
                *_pair("category, hubbub", few, "repeats"),
                *_pair("mean, hubbub", where(rows, varied="repeats", metric="mean"), "repeats"),
                Series("category, one report each", REPEATS, [column(few, "theory")[0]] * len(REPEATS), look="theory"),
            ],
        ),
    ]
    of_category, of_mean, of_modest = (
        per_cent(last(rows, "gain", varied="liars", metric=metric, lie=lie))
        for metric, lie in (("category", "careful"), ("mean", "careful"), ("category", "modest"))
    )
    careful, greedy = (_of(rows, "noticed", "category", lie) for lie in ("careful", "greedy"))
    seen, seen_of_many, seen_greedy = (
        per_cent(last(some, "alarm", liars=liars))
        for some, liars in ((careful, SHARE), (careful, NOTICED[-1]), (greedy, SHARE))
    )
    lifted = per_cent(last(careful, "gain", liars=SHARE))
    caption = (
        f"If {per_cent(LIARS[-1])} of the devices lie, they add {of_category} to one category and move a mean by "
        f"{of_mean} of its range, as the formulas say; honest clients that are told a false value add {of_modest}. "
        "Greedy liars gain with every target, until the shares sum to more than 1, which raises an alarm. Careful "
        f"liars, {per_cent(SHARE)} of the devices, lift {MANY} categories by {lifted} together and raise an alarm in "
        f"{seen} of the tallies, greedy ones in {seen_greedy}; if {per_cent(NOTICED[-1])} of the devices are careful "
        f"liars, {seen_of_many} of the tallies raise one. A liar "
        f"with {REPEATS[-1]} reports instead of one has {last(few, 'gain') / column(few, 'theory')[0]:.0f} times the "
        "gain. A bound per device prevents that; it has to stand in front of the collector, which knows no devices."
    )
    return Figure("Lying devices", caption, panels)


def _of(rows: Rows, varied: str, metric: str, lie: str) -> Rows:
    return where(rows, varied=varied, metric=metric, lie=lie)


def _pair(label: str, rows: Rows, x: str) -> tuple[Series, Series]:
    """What was measured, and the formula."""
    return series(label, rows, x, "gain", "points"), theory_line(f"{label}: formula", rows, x)


def _alarms(rows: Rows, label: str, metric: str, lie: str, alarm: str) -> Series:
    return Series(label, NOTICED, column(_of(rows, "noticed", metric, lie), alarm))


def _claims(rows: Rows) -> list[Claim]:
    liars = LIARS[-1]
    unary, single = (float(np.exp(METRICS[name].epsilon(1))) for name in ("category", "mean"))
    held = _truth(METRICS["category"], 1)
    rappor = Noise.of(METRICS["category_rappor"].response)
    best = liars * (2 - held + 2 / (unary - 1))
    said = {
        "category": ("optimal unary encoding: b (2r - f) + 2br/(e^E - 1)", per_cent(best, 1)),
        "string": ("the same, with one hash", per_cent(best, 1)),
        "category_rappor": (
            "RAPPOR: b (r (1 - Q)/(P - Q) - f)",
            per_cent(liars * ((1 - rappor.lie) / rappor.slope - held), 1),
        ),
        "mean": ("one-bit mean: at most b e^E/(e^E - 1)", f"at most {per_cent(liars * single / (single - 1), 1)}"),
    }
    claims = []
    for metric, (source, claimed) in said.items():
        careful = _of(rows, "liars", metric, "careful")
        gain, low, high = (per_cent(last(careful, name), 1) for name in ("gain", "low", "high"))
        ours = f"{gain} ({low} to {high})"
        claims.append(Claim(f"{metric}: gain of {per_cent(liars)} of liars with one target", source, claimed, ours))
    return claims


EXPERIMENT = Experiment(
    name="poisoning",
    title="What can lying devices do, and who notices?",
    setting=(
        "100 categories or strings (Zipf), or a mean, at an epsilon of 1 a report; a share of the devices sends what "
        "helps its targets most. Targets are the rarest values; the shipped decoder makes the estimates and the alarms."
    ),
    devices=100_000,
    trials=20,
    run=run,
)
