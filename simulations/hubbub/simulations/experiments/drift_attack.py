"""Drift: what a number gives away that creeps through its range, in bins as RAPPOR would have it, or rounded.

In bins every new bin is a new value, with permanent bits of its own: epsilon is spent again, and someone who watches
the device sees its permanent bits change. Rounding (Ding, Kulkarni, Yekhanin 2017) has two answers for ever, and the
number changes from one to the other once, at a place that the device draws in secret.

The promise of memoised answers compares histories whose encodings repeat and change in the same periods. A change is
hidden by fresh noise, and in rounding by the secret place too: two histories of which one stays and the other moves
through a share of the range look different for at most that share of the devices, whatever the attacker does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector.charts import Axis, Figure, Panel
from hubbub.collector.decode.noise import Noise
from hubbub.shared.encode import OneHot
from hubbub.shared.encode.encoding import ONE_BIT
from hubbub.shared.permanent import rounding_offset
from hubbub.shared.response import Response
from hubbub.shared.secret import SECRET_BYTES, Secret
from hubbub.simulations.attackers import log_memoised, remember, send
from hubbub.simulations.declared import RAPPOR, category, mean
from hubbub.simulations.drawing import last, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import NORMAL_REACH, Measured, average, share

if TYPE_CHECKING:
    from hubbub.collector.charts import Series
    from hubbub.collector.decode.noise import Numbers
    from hubbub.shared.metric import Metric
    from hubbub.simulations.attackers import Counts
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

YEAR = 365
"""Days in which the number creeps from one end of its range to the other."""
BINS = 20
SPENT_DAYS = (1, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 330, 365)
WATCHED_DAYS = (15, 30, 60, 120, 240, 365)
WINDOW = 60
"""Days of watching in which one change surely happens, on a day to be named."""
CLOSE = (0, 1, 2, 3, 5, 7, 10, 15, 20)

_NAMES = [str(number) for number in range(BINS)]
_SOLVED = {"report": 1.0, "lifetime": 2.0}
_MADE = (
    category(_NAMES, RAPPOR, name="bins_rappor", description=f"{BINS} bins, with RAPPOR's own parameters"),
    category(_NAMES, _SOLVED, name="bins", description=f"{BINS} bins, report 1, lifetime 2"),
    mean(_SOLVED, name="rounding", description="rounding, report 1, lifetime 2"),
    # A registry rejects a repeated metric without fresh noise, so only the response is replaced.
    replace(
        mean(_SOLVED, name="rounding_still", description="rounding, no fresh noise"),
        response=Response.flipping(2.0, 0.0, contrasts=ONE_BIT),
    ),
)
METRICS = {metric.name: metric for metric in _MADE}


@dataclass(frozen=True)
class Point:
    """One question about devices with one metric."""

    question: str
    metric: str
    days: int
    devices: int


def run(run: Run) -> Result:
    """Ask what is spent, whether a change is seen, and how well its day is known."""
    points = [Point("spent", metric, YEAR, run.trials) for metric in METRICS]
    points += [Point("changed", metric, days, run.devices) for metric in METRICS for days in WATCHED_DAYS]
    points += [Point("day", metric, WINDOW, run.devices) for metric in METRICS]
    rows = [row for some in run.map(ask, points) for row in some]
    return Result(rows, _figure(rows), _claims(rows))


def ask(point: Point, rng: np.random.Generator) -> list[Row]:
    """Answer one question."""
    return {"spent": _spent, "changed": _changed, "day": _day}[point.question](point, rng)


def _row(point: Point, x: int, found: Measured, theory: float | None, encodings: float | None = None) -> Row:
    return {
        "question": point.question,
        "metric": point.metric,
        "x": x,
        "devices": point.devices,
        "y": found.value,
        "low": found.low,
        "high": found.high,
        "theory": theory,
        "encodings": encodings,
    }


def _spent(point: Point, rng: np.random.Generator) -> list[Row]:
    """Add up what each different encoding costs, by the shipped encoding and accounting; `theory` is the most ever."""
    metric = METRICS[point.metric]
    spent = np.empty((point.devices, len(SPENT_DAYS)))
    encodings = np.empty_like(spent)
    for device in range(point.devices):
        offset = rounding_offset(metric, Secret(rng.bytes(SECRET_BYTES)))
        sent = [_encode(metric, day / YEAR, offset) for day in range(YEAR)]
        for column, days in enumerate(SPENT_DAYS):
            each = Counter(sent[:days])
            encodings[device, column] = len(each)
            spent[device, column] = sum(metric.epsilon(reports) for reports in each.values())
    most = (metric.lifetime_values or YEAR) * metric.epsilon(np.inf)
    return [
        _row(point, days, average(spent[:, column]), most, float(encodings[:, column].mean()))
        for column, days in enumerate(SPENT_DAYS)
    ]


def _encode(metric: Metric, place: float, offset: int) -> int:
    value = str(int(place * BINS)) if isinstance(metric.encoding, OneHot) else place
    return metric.encode(value, 0, offset)


def _changed(point: Point, rng: np.random.Generator) -> list[Row]:
    """How much more often a moving number is called so than one that stays; `theory` bounds it for rounding.

    The attacker knows both histories, where the number began and how fast it moves, and asks which is likelier. With
    the likelihood ratio that difference is the total variation distance: no attack has a larger one.
    """
    metric = METRICS[point.metric]
    noise = Noise.of(metric.response)
    moved = (point.days - 1) / YEAR
    start = rng.random(point.devices) * (1 - moved)
    in_bins = isinstance(metric.encoding, OneHot)
    look = _look_at_bins if in_bins else _look_at_rounding
    called = [look(noise, start, point.days, moves=moves, rng=rng) for moves in (True, False)]
    right, wrong = (np.where(ratio == 0, 0.5, ratio > 0).mean() for ratio in called)
    gain = float(right - wrong)
    reach = NORMAL_REACH * float(np.sqrt((right * (1 - right) + wrong * (1 - wrong)) / point.devices))
    return [_row(point, point.days, Measured(gain, gain - reach, gain + reach), None if in_bins else moved)]


def _look_at_bins(noise: Noise, start: Numbers, days: int, *, moves: bool, rng: np.random.Generator) -> Numbers:
    """Log likelihood ratio of moving against staying, for one-hot bins."""
    bins = ((start[:, None] + np.arange(days) / YEAR) * BINS).astype(int)
    first = bins[:, 0]
    places = bins + BINS * np.arange(len(start))[:, None]
    lasted = np.bincount(places.ravel(), minlength=len(start) * BINS).reshape(-1, BINS)  # device, bin: days in it
    device, inside = np.nonzero(lasted)
    reports = lasted[device, inside][:, None]
    own = np.eye(BINS, dtype=bool)
    remembered = remember(own[inside], noise, rng) if moves else remember(own[first], noise, rng)[device]
    ones = rng.binomial(reports, np.where(remembered, noise.p2, noise.q2))  # a row for each device and bin it was in
    moving = log_memoised(ones, reports, noise, np.where(own[inside], noise.p1, noise.q1)).sum(axis=1)
    total = np.zeros((len(start), BINS), np.int64)
    np.add.at(total, device, ones)
    staying = log_memoised(total, days, noise, np.where(own[first], noise.p1, noise.q1)).sum(axis=1)
    ratio: Numbers = np.bincount(device, moving) - staying
    return ratio


def _look_at_rounding(noise: Noise, start: Numbers, days: int, *, moves: bool, rng: np.random.Generator) -> Numbers:
    """The same for rounding, where the day of the change is not known, nor whether there is one."""
    place = start[:, None] + (np.arange(days) / YEAR if moves else np.zeros(days))
    rounded = place + rng.random((len(start), 1)) >= 1
    answers = np.stack([remember(np.full(len(start), up), noise, rng) for up in (False, True)], axis=1)
    ones = np.cumsum(send(np.take_along_axis(answers, rounded.astype(int), axis=1), 1, noise, rng), axis=1)
    down, up = (log_memoised(ones[:, -1], days, noise, chance) for chance in (noise.q1, noise.p1))
    staying = np.logaddexp(np.log(start) + up, np.log1p(-start) + down)
    changing = special.logsumexp(_split(ones[:, :, None], noise, np.array([noise.q1]), np.array([noise.p1])), axis=1)
    never = np.log(np.maximum(1 - start - (days - 1) / YEAR, 1e-300)) + down
    ratio: Numbers = np.logaddexp(np.logaddexp(np.log(start) + up, never), changing - np.log(YEAR)) - staying
    return ratio


def _split(ones: Counts, noise: Noise, before: Numbers, after: Numbers) -> Numbers:
    """Log likelihood of a change after 1, 2, ... days; `ones` are running sums of device, day, bit."""
    days = np.arange(1, ones.shape[1])[:, None]
    first = log_memoised(ones[:, :-1], days, noise, before)
    second = log_memoised(ones[:, -1:] - ones[:, :-1], ones.shape[1] - days, noise, after)
    split: Numbers = (first + second).sum(axis=2)
    return split


def _day(point: Point, rng: np.random.Generator) -> list[Row]:
    """How often the day of a change is named this closely, by its posterior median; `theory` is naming the middle."""
    metric = METRICS[point.metric]
    noise = Noise.of(metric.response)
    in_bins = isinstance(metric.encoding, OneHot)
    before, after = np.eye(BINS, dtype=bool)[:2] if in_bins else np.array([[False], [True]])
    day = rng.integers(1, WINDOW, size=point.devices)
    shape = (point.devices, len(before))
    old, new = (remember(np.broadcast_to(encoded, shape), noise, rng) for encoded in (before, after))
    changed = np.arange(WINDOW)[:, None] >= day[:, None, None]
    ones = np.cumsum(send(np.where(changed, new[:, None], old[:, None]), 1, noise, rng), axis=1)
    chances = _split(ones, noise, *(np.where(encoded, noise.p1, noise.q1) for encoded in (before, after)))
    posterior = special.softmax(chances, axis=1)
    named = 1 + (posterior.cumsum(axis=1) < 0.5).sum(axis=1)
    rows = []
    for close in CLOSE:
        hits = int((abs(named - day) <= close).sum())
        blind = min((2 * close + 1) / (WINDOW - 1), 1.0)
        rows.append(_row(point, close, share(hits, point.devices), blind))
    return rows


def _figure(rows: Rows) -> Figure:
    panels = [
        Panel(
            "What it costs",
            Axis(f"days of a number that crosses its range in {YEAR}"),
            Axis("epsilon spent, by composition", low=0),
            _lines(rows, "spent"),
        ),
        Panel(
            "Is a change seen?",
            Axis("days watched"),
            Axis("advantage over guessing", percent=True, low=0, high=1.02),
            [
                *_lines(rows, "changed"),
                theory_line("rounding: no attack gets more", where(rows, question="changed", metric="rounding"), "x"),
            ],
        ),
        Panel(
            f"A change within {WINDOW} days: when?",
            Axis("day named this close, in days"),
            Axis("devices", percent=True, low=0, high=1.02),
            [
                *_lines(rows, "day"),
                theory_line("naming the middle day", where(rows, question="day", metric="rounding"), "x"),
            ],
        ),
    ]
    costs = _answers(rows, "spent", YEAR)
    days = WATCHED_DAYS[1]
    seen = {name: per_cent(found) for name, found in _answers(rows, "changed", days).items()}
    most = per_cent(last(rows, "theory", question="changed", metric="rounding", x=days))
    week, same_day = _answers(rows, "day", 7)["rounding"], _answers(rows, "day", 0)["rounding_still"]
    caption = (
        f"A number that creeps through its whole range in {YEAR} days costs an epsilon of {costs['bins']:.0f} in "
        f"{BINS} bins and of {costs['rounding']:.0f} rounded, at the same epsilons of a report and of a lifetime. "
        f"Within {days} days the attacker tells that it moved, in bins, with an advantage of {seen['bins']} "
        f"({seen['bins_rappor']} with RAPPOR's parameters); rounded it is {seen['rounding']}, and no attack gets more "
        f"than {most}. A crossing that does happen is not hidden by rounding: its day is then named within a week for "
        f"{per_cent(week)} of the devices, and without fresh noise to the day for {per_cent(same_day)}."
    )
    return Figure("A number that creeps: bins against rounding", caption, panels)


def _lines(rows: Rows, question: str) -> list[Series]:
    return [
        series(metric.description, where(rows, question=question, metric=name), "x", "y")
        for name, metric in METRICS.items()
    ]


def _answers(rows: Rows, question: str, x: int) -> dict[str, float]:
    return {name: last(rows, "y", question=question, metric=name, x=x) for name in METRICS}


def _claims(rows: Rows) -> list[Claim]:
    rounding, bins = (last(rows, "encodings", question="spent", metric=name) for name in ("rounding", "bins"))
    days = WATCHED_DAYS[3]
    seen = {name: per_cent(found, 1) for name, found in _answers(rows, "changed", days).items()}
    close = per_cent(_answers(rows, "day", 2)["bins"])
    most = last(rows, "theory", question="changed", metric="rounding", x=days)
    return [
        Claim(
            "different answers of a device whose number crosses its range",
            "answers are memoised by encoding: two by rounding, one for each bin",
            f"{METRICS['rounding'].lifetime_values} and {BINS}",
            f"{rounding:.2f} and {bins:.2f}",
        ),
        Claim(
            f"advantage in telling a rounded number that moves for {days} days from one that stays",
            "derived: at most the share of the range that it moves through, also without fresh noise",
            f"at most {per_cent(most, 1)}",
            f"{seen['rounding']}, without fresh noise {seen['rounding_still']}",
        ),
        Claim(
            "what a steady drift reveals beside its answers",
            "S. Das, Differential Privacy: Ideas, Concepts and Advances, 2022, section 7.4.3",
            "only the crossing",
            f"rounding to two answers: yes, there is one; bins: {BINS - 1} crossings, each known within two days for "
            f"{close} of the devices, and the time between two of them is the speed",
        ),
    ]


EXPERIMENT = Experiment(
    name="drift-attack",
    title="What does a number give away that changes slowly?",
    setting=(
        f"A number creeps evenly from one end of its range to the other in {YEAR} days: as one of {BINS} bins "
        "(Basic RAPPOR), or by randomised rounding. The attacker knows how fast it moves. `devices` are attacked; "
        "what is spent is counted on `trials` of them with the shipped encoding."
    ),
    devices=4_000,
    trials=200,
    run=run,
)
