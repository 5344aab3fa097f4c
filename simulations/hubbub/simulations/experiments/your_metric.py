"""`your-metric`: what a metric of one's own will tell, before anything is collected."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hubbub.collector import decode
from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.shared import Registry
from hubbub.shared.encode import Bit, Bloom, Bucket, OneHot, Rounding
from hubbub.shared.errors import ParameterError
from hubbub.simulations.aggregate import simulate_tally
from hubbub.simulations.distributions import DISTRIBUTIONS, counts_of, read_truth, shares
from hubbub.simulations.drawing import column, number
from hubbub.simulations.experiment import Experiment, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hubbub.collector import Estimates
    from hubbub.collector.decode.noise import Numbers
    from hubbub.shared import Metric
    from hubbub.simulations.drawing import Row
    from hubbub.simulations.experiment import Own, Run

Value: TypeAlias = str | bool | float

DEFAULT_METRIC = "homepage"
DEFAULT_DISTRIBUTION = "zipf"
STRINGS = 100
PLACES = 50
"""Of numbers between the lowest and the highest."""
SIZES = (0.01, 0.1, 1.0)
"""Parts of the population that are tried as well."""
SHOWN = 20


@dataclass(frozen=True)
class Question:
    """A metric, the values of its population, and one size of it."""

    metric: Metric
    values: tuple[Value, ...]
    counts: tuple[int, ...]
    trials: int

    @property
    def devices(self) -> int:
        """How many there are."""
        return sum(self.counts)


@dataclass(frozen=True)
class Answer:
    """What the first trial says, row by row, and how far all of them are from the truth."""

    rows: tuple[Row, ...]
    error: float
    found: float
    found_error: float
    """The standard error of that mean."""


def run(run: Run) -> Result:
    """Simulate the metric at several sizes of its population, and decode each."""
    metric, distribution = _metric(run.own), run.own.distribution or DEFAULT_DISTRIBUTION
    values, spread = _population(metric, distribution, run.devices)
    sizes = sorted({max(1, round(part * run.devices)) for part in SIZES})
    questions = [Question(metric, values, tuple(counts_of(spread, size).tolist()), run.trials) for size in sizes]
    answers = run.map(ask, questions, f"simulating {metric.name}")
    rows = [row for answer in reversed(answers) for row in answer.rows]
    return Result(rows, _figure(metric, distribution, questions, answers))


def ask(question: Question, rng: np.random.Generator) -> Answer:
    """Draw the tally of the population, decode it, and compare, some times over."""
    metric, truth = question.metric, dict(zip(question.values, question.counts, strict=True))
    true = _true(metric, question)
    candidates = [*map(str, question.values), *_absent(len(question.values))] if metric.kind == "string" else None
    first: list[Row] = []
    squares, found = 0.0, []
    for _ in range(question.trials):
        rows = _compare(decode(metric, simulate_tally(metric, truth, rng), candidates=candidates), true)
        squares += float(np.mean([(number(row, "estimate") - number(row, "truth")) ** 2 for row in rows]))
        found.append(sum(row["found"] == "yes" and bool(row["truth"]) for row in rows))
        first = first or [{"devices": question.devices} | row for row in rows]
    spread = float(np.std(found) / np.sqrt(question.trials))
    return Answer(tuple(first), float(np.sqrt(squares / question.trials)), float(np.mean(found)), spread)


def _metric(own: Own) -> Metric:
    if own.registry is not None:
        registry = Registry.load(own.registry)
        if own.metric is None:
            raise ParameterError(f"metric: is missing; allowed: --metric with one of {', '.join(registry)}")
        return registry[own.metric]
    demo = Registry.parse(files("hubbub.simulations").joinpath("demo.toml").read_text("utf-8"), source="demo.toml")
    return demo[own.metric or DEFAULT_METRIC]


def _population(metric: Metric, distribution: str, devices: int) -> tuple[tuple[Value, ...], Numbers]:
    if distribution in DISTRIBUTIONS:
        values = _values(metric)
        return values, shares(distribution, len(values))
    truth = read_truth(distribution)
    if sum(truth.values()) != devices:
        raise ParameterError(
            f"devices: {devices:,}, and the counts of {distribution} sum up to {sum(truth.values()):,}; "
            "allowed: that sum, or no --devices at all"
        )
    counts = np.array(list(truth.values()), np.float64)
    return tuple(_read(metric, value, distribution) for value in truth), counts / counts.sum()


def _values(metric: Metric) -> tuple[Value, ...]:
    encoding = metric.encoding
    if isinstance(encoding, OneHot):
        return encoding.categories
    if isinstance(encoding, Bucket):
        return tuple((low + high) / 2 for low, high in pairwise(encoding.edges))
    if isinstance(encoding, Rounding):
        return tuple(np.linspace(encoding.low, encoding.high, PLACES).tolist())
    if isinstance(encoding, Bit):
        return (False, True)
    return tuple(f"value-{rank:03}" for rank in range(1, STRINGS + 1))


def _read(metric: Metric, text: str, source: str) -> Value:
    """Read a value of a CSV as the kind of the metric has it."""
    if metric.kind == "flag":
        if text.lower() not in {"true", "false"}:
            raise ParameterError(f"{source}: a value is not a flag; allowed: true, false")
        return text.lower() == "true"
    if metric.kind in {"mean", "histogram"}:
        try:
            return float(text)
        except ValueError:
            raise ParameterError(f"{source}: a value is not a number; allowed: numbers") from None
    return text


def _absent(many: int) -> list[str]:
    """Candidates that nobody holds: an analyst's list has such too."""
    return [f"absent-{each}" for each in range(many)]


def _true(metric: Metric, question: Question) -> dict[str, float]:
    """The true share of each row, by its name; for a mean, the mean."""
    counts = np.array(question.counts, np.float64)
    if isinstance(metric.encoding, Rounding):
        clamped = np.clip(np.array(question.values, np.float64), metric.encoding.low, metric.encoding.high)
        return {"mean": float(clamped @ counts / counts.sum())}
    if isinstance(metric.encoding, Bucket):
        edges = np.array(metric.encoding.edges)
        inside, _ = np.histogram(
            np.clip(np.array(question.values, np.float64), edges[0], edges[-1]), edges, weights=counts
        )
        names = [f"{low:g} to {high:g}" for low, high in pairwise(metric.encoding.edges)]
        return dict(zip(names, (inside / counts.sum()).tolist(), strict=True))
    names = ["true" if value is True else str(value) for value in question.values]
    return dict(zip(names, (counts / counts.sum()).tolist(), strict=True))


def _compare(estimates: Estimates, true: dict[str, float]) -> list[Row]:
    if estimates.mean is not None and "mean" in true and estimates.kind == "mean":
        mean = estimates.mean
        return [_row("mean", true["mean"], mean.estimate, mean.low, mean.high, found=True)]
    rows = [
        _row(row.value, true.get(row.value, 0.0), row.share or 0.0, row.low, row.high, found=row.detected)
        for row in estimates.rows
    ]
    return rows if estimates.kind == "histogram" else sorted(rows, key=lambda row: -number(row, "truth"))


def _row(value: str, truth: float, estimate: float, low: float, high: float, *, found: bool) -> Row:
    return {
        "value": value,
        "truth": truth,
        "estimate": estimate,
        "low": low,
        "high": high,
        "found": "yes" if found else "no",
    }


def _figure(metric: Metric, distribution: str, questions: Sequence[Question], answers: Sequence[Answer]) -> Figure:
    sizes = [question.devices for question in questions]
    shown = answers[-1].rows[:SHOWN]
    numbers = [column(shown, name) for name in ("truth", "estimate", "low", "high")]
    places = list(range(len(shown)))
    isolated = metric.kind == "mean"
    first = Panel(
        f"{sizes[-1]:,} devices",
        Axis("value", names=[str(row["value"]) for row in shown]),
        Axis("mean" if isolated else "share of devices", percent=not isolated),
        [
            Series("truth", places, numbers[0], look="bars"),
            Series("estimate, 95 % interval", places, numbers[1], numbers[2], numbers[3], look="points"),
        ],
    )
    strings = isinstance(metric.encoding, Bloom)
    second = Panel(
        "what more devices buy",
        Axis("devices", log=True),
        Axis("true strings found") if strings else Axis("root mean square error", log=True),
        [_found(sizes, answers, questions[0].trials) if strings else _error(sizes, answers, questions[0].trials)],
    )
    if strings:
        learnt = f"{answers[-1].found:.1f} of {len(questions[0].values)} strings are found on average, "
        learnt += f"{answers[0].found:.1f} with {sizes[0]:,} devices."
    else:
        learnt = f"The root mean square error is {answers[-1].error:.2g}, "
        learnt += f"and {answers[0].error:.2g} with {sizes[0]:,} devices."
    promise = f"at epsilon {metric.epsilon():.2f} a report"
    caption = f"Truth ({distribution}) and estimates of {sizes[-1]:,} devices {promise}. {learnt}"
    return Figure(f"What {metric.name} will tell", caption, [first, second])


def _found(sizes: list[int], answers: Sequence[Answer], trials: int) -> Series:
    low, high = ([answer.found + side * answer.found_error for answer in answers] for side in (-2, 2))
    label = f"mean of {trials} trials, ± 2 standard errors"
    return Series(label, sizes, [answer.found for answer in answers], low, high)


def _error(sizes: list[int], answers: Sequence[Answer], trials: int) -> Series:
    return Series(f"of {trials} trials", sizes, [answer.error for answer in answers])


EXPERIMENT = Experiment(
    "your-metric",
    "What will a metric of your own tell, with so many devices?",
    "A metric of your registry (--registry, --metric) and the spread of its values (--distribution); "
    "without them, the home page of the demo.",
    devices=100_000,
    trials=20,
    run=run,
)
