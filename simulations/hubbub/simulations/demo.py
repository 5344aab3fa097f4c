"""`hubbub demo`: a crowd of devices, the noisy reports they send, and what can still be learnt from them.

Everything happens in this one process: real secrets, the real `privatize`, counting and decoding.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import click
import msgspec
import numpy as np

from hubbub.client import privatize
from hubbub.collector import Tally, decode
from hubbub.collector.count import count_bits
from hubbub.shared import Metric, Registry, Secret
from hubbub.shared.encode import Bucket
from hubbub.shared.table import show_table

if TYPE_CHECKING:
    from collections.abc import Iterator

Value: TypeAlias = str | bool | float

DEFAULT_DEVICES = 50_000
FEWEST_DEVICES = 1_000
SITES = tuple(f"site-{number:02}.example" for number in range(1, 21))
SHOWN_SITES = 8


@dataclass(frozen=True)
class Row:
    """One line of the result: what is true, what the reports say, and how sure they are."""

    name: str
    truth: float
    estimate: float
    standard_error: float
    low: float
    high: float


@click.command()
@click.option("--devices", type=click.IntRange(FEWEST_DEVICES), default=DEFAULT_DEVICES, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the hidden truth; the noise is the system's.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "--exit", "exit_", is_flag=True, help="End when done. There is no service to keep up yet: it always does."
)
def demo(devices: int, seed: int, as_json: bool, exit_: bool) -> None:  # noqa: ARG001
    """Let a crowd of devices report five metrics, and compare what is learnt with the truth."""
    registry = Registry.parse(files("hubbub.simulations").joinpath("demo.toml").read_text("utf-8"), source="demo.toml")
    people = list(_people(devices, random.Random(seed)))
    reports = {name: _Reports(metric) for name, metric in registry.items()}
    with click.progressbar(people, label=f"{devices:,} devices report", file=sys.stderr) as crowd:
        for values in crowd:
            secret = Secret.generate()
            for name, value in values.items():
                reports[name].add(value, secret)
    results = {
        name: estimate(metric, reports[name].tally(), [values[name] for values in people])
        for name, metric in registry.items()
    }
    if as_json:
        click.echo(msgspec.json.encode(results, enc_hook=float))
        return
    for name, metric in registry.items():
        _show(metric, results[name])
    click.echo(
        "No report tells more about its sender than the epsilon above it allows. The crowd is heard all the same."
    )


def _people(devices: int, rng: random.Random) -> Iterator[dict[str, Value]]:
    weights = [1 / rank for rank in range(1, len(SITES) + 1)]
    for _ in range(devices):
        yield {
            "homepage": rng.choices(SITES, weights)[0],
            "theme": rng.choices(["light", "dark", "system"], [5, 3, 2])[0],
            "crashed": rng.random() < 0.04,
            "minutes_used": min(rng.expovariate(1 / 90), 480.0),
            "startup_ms": min(rng.lognormvariate(6.5, 0.7), 7999.0),
        }


class _Reports:
    """The reports of one metric, as a collector would hold them: bits by cohort, and nothing about who sent them."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._packed = [bytearray() for _ in range(metric.encoding.cohorts)]

    def add(self, value: Value, secret: Secret) -> None:
        report = privatize(self._metric, value, secret)
        self._packed[report.cohort] += report.bits

    def tally(self) -> Tally:
        tally = Tally.empty(self._metric)
        for cohort, packed in enumerate(self._packed):
            rows = np.frombuffer(packed, np.uint8).reshape(-1, self._metric.width)
            tally.n[cohort] = len(rows)
            tally.counts[cohort] = count_bits(rows, self._metric.size)
        return tally


def estimate(metric: Metric, tally: Tally, values: list[Value]) -> list[Row]:
    """Set what the reports say beside what is true."""
    estimates = decode(metric, tally, candidates=SITES if metric.kind == "string" else None)
    if metric.kind == "mean" and estimates.mean is not None:
        mean = estimates.mean
        truth = math.fsum(map(float, values)) / len(values)
        return [Row("mean", truth, mean.estimate, mean.standard_error or 0.0, mean.low, mean.high)]
    shares = _true_shares(metric, values)
    rows = [
        Row(row.value, shares.get(row.value, 0.0), row.share or 0.0, row.standard_error or 0.0, row.low, row.high)
        for row in estimates.rows
    ]
    if metric.kind == "string":
        return sorted(rows, key=lambda row: -row.truth)[:SHOWN_SITES]
    return rows


def _true_shares(metric: Metric, values: list[Value]) -> dict[str, float]:
    """The share of each value, by the name that its row has."""
    if isinstance(metric.encoding, Bucket):
        counts, _ = np.histogram(np.array(values, dtype=float), metric.encoding.edges)
        named = dict(
            zip((f"{low:g} to {high:g}" for low, high in pairwise(metric.encoding.edges)), counts, strict=True)
        )
    else:
        named = {("true" if value is True else str(value)): count for value, count in Counter(values).items()}
    return {name: float(count) / len(values) for name, count in named.items()}


def _show(metric: Metric, rows: list[Row]) -> None:
    form = ("{:.1f}" if metric.kind == "mean" else "{:.2%}").format
    show_table(
        f"{metric.name} ({metric.description}): epsilon {metric.epsilon():.2f} a report, "
        f"{metric.epsilon(math.inf):.2f} a lifetime",
        ["", "truth", "estimate", "95 % interval"],
        [
            [
                row.name,
                form(row.truth),
                form(row.estimate),
                f"{form(row.low)} to {form(row.high)}",
            ]
            for row in rows
        ],
    )
    click.echo()
