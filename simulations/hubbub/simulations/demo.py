"""`hubbub demo`: a crowd of devices, the noisy reports they send, and what can still be learnt from them.

Everything happens in this one process: real secrets, the real `privatize`, counting, and the plain debiased estimates.
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
import numpy.typing as npt

from hubbub.client import privatize
from hubbub.shared import Metric, Registry, Secret
from hubbub.shared.encode import Bloom, Bucket, OneHot, Rounding
from hubbub.shared.encode.bloom import digest, position
from hubbub.shared.table import show_table

if TYPE_CHECKING:
    from collections.abc import Iterator

Value: TypeAlias = str | bool | float
Numbers: TypeAlias = npt.NDArray[np.float64]

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
        name: estimate(metric, reports[name], [values[name] for values in people]) for name, metric in registry.items()
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

    def debiased(self) -> tuple[Numbers, Numbers]:
        """Reports of each cohort, and for each cohort and bit how many devices have it set: (c - N Q)/(P - Q)."""
        width, size, response = self._metric.width, self._metric.size, self._metric.response
        rows = [np.frombuffer(packed, np.uint8).reshape(-1, width) for packed in self._packed]
        numbers = np.array([len(row) for row in rows], dtype=float)
        counts = np.array([np.unpackbits(row, axis=1, count=size, bitorder="little").sum(0) for row in rows])
        noise, truth = response.noise_is_sent, response.truth_is_sent
        return numbers, (counts - numbers[:, None] * noise) / (truth - noise)


def estimate(metric: Metric, reports: _Reports, values: list[Value]) -> list[Row]:
    """Set what the reports say beside what is true."""
    numbers, debiased = reports.debiased()
    match metric.encoding:
        case Bloom() as encoding:
            return _strings(encoding, numbers, debiased, Counter(values))
        case Rounding(low=low, high=high):
            mean = math.fsum(map(float, values)) / len(values)
            share, error = _share(metric, numbers[0], debiased[0, 0])
            return [Row("mean", mean, low + (high - low) * share, (high - low) * error)]
        case Bucket() as encoding:
            return _histogram(metric, encoding, numbers, debiased, values)
        case OneHot(categories=names):
            truth = Counter(values)
            return [
                Row(name, truth[name] / len(values), *_share(metric, numbers[0], count))
                for name, count in zip(names, debiased[0], strict=True)
            ]
        case _:
            return [Row("true", sum(map(bool, values)) / len(values), *_share(metric, numbers[0], debiased[0, 0]))]


def _share(metric: Metric, number: float, count: float) -> tuple[float, float]:
    """A share from a debiased count, and its standard error: sqrt(r(1 - r)/n)/(P - Q)."""
    truth, noise = metric.response.truth_is_sent, metric.response.noise_is_sent
    sent = noise + (truth - noise) * count / number
    return count / number, math.sqrt(sent * (1 - sent) / number) / (truth - noise)


def _strings(encoding: Bloom, numbers: Numbers, debiased: Numbers, truth: Counter[Value]) -> list[Row]:
    bits, cohorts = encoding.bits, np.arange(encoding.cohorts)
    rows = []
    for site in SITES[:SHOWN_SITES]:
        start, stride = digest(site)
        places = [position(start, stride, cohort, bits) for cohort in range(encoding.cohorts)]
        # In each cohort its bit also holds the 1/bits of all others that happen to fall there.
        shares = (debiased[cohorts, places] / numbers - 1 / bits) / (1 - 1 / bits)
        error = shares.std(ddof=1) / math.sqrt(len(shares))
        rows.append(Row(site, truth[site] / truth.total(), float(shares.mean()), float(error)))
    return rows


def _histogram(metric: Metric, encoding: Bucket, numbers: Numbers, debiased: Numbers, values: list[Value]) -> list[Row]:
    truth, _ = np.histogram(np.array(values, dtype=float), encoding.edges)
    seen, found = np.zeros(encoding.buckets), np.zeros(encoding.buckets)
    for cohort, number in enumerate(numbers):
        observed = list(encoding.observed(cohort))
        seen[observed] += number
        found[observed] += debiased[cohort]
    names = [f"{low:g} to {high:g}" for low, high in pairwise(encoding.edges)]
    return [
        Row(name, count / len(values), *_share(metric, number, estimated))
        for name, count, number, estimated in zip(names, truth, seen, found, strict=True)
    ]


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
                f"{form(row.estimate - 1.96 * row.standard_error)} to {form(row.estimate + 1.96 * row.standard_error)}",
            ]
            for row in rows
        ],
    )
    click.echo()
