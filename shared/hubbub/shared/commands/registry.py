"""`hubbub registry`: look after the TOML file of metrics."""

from __future__ import annotations

import math
import sys

import click
import msgspec

from hubbub.shared.errors import RegistryError
from hubbub.shared.planning import cohort_warnings
from hubbub.shared.registry import Registry


@click.group()
def registry() -> None:
    """Look after a registry of metrics."""


@registry.command()
@click.argument("file")
@click.option("--devices", type=click.IntRange(1), metavar="N", help="Devices that will report, to check the cohorts")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def check(file: str, devices: int | None, as_json: bool) -> None:
    """Check FILE and list every problem in it, with the metric and the key; exit 1 if there are any."""
    try:
        metrics = Registry.load(file)
    except RegistryError as error:
        if as_json:
            click.echo(msgspec.json.encode({"file": file, "problems": error.problems}))
        else:
            click.echo(str(error), err=True)
            click.echo(f"{file}: {len(error.problems)} problem(s)", err=True)
        sys.exit(1)
    fingerprints = [
        {"name": metric.name, "version": metric.version, "fingerprint": metric.fingerprint}
        for metric in metrics.values()
    ]
    warnings = [
        f"{metric.name}: {warning}"
        for metric in metrics.values()
        for warning in ([] if devices is None else cohort_warnings(metric.encoding, devices))
    ]
    if as_json:
        click.echo(msgspec.json.encode({"file": file, "problems": [], "warnings": warnings, "metrics": fingerprints}))
        return
    for metric in metrics.values():
        click.echo(
            f"{metric.name} version {metric.version}: {metric.kind}, every {metric.every}, {metric.fingerprint[:16]}"
        )
    for warning in warnings:
        click.echo(f"warning: {warning}")
    cost = sum(metric.max_epsilon for metric in metrics.values())
    limit = "without limit" if math.isinf(cost) else f"at most {cost:.4f}"
    click.echo(f"The values of one device can cost epsilon {limit} over its life.")
    click.echo(f"{file}: {len(metrics)} metric(s), no problem")
