"""`hubbub simulate`: a published experiment, an attack, or a metric of one's own, with data and figure."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hubbub.shared.table import figure, show_table
from hubbub.simulations.distributions import DISTRIBUTIONS, read_truth
from hubbub.simulations.experiment import Claim, Experiment, Own, Result, Run
from hubbub.simulations.experiments import NAMES, OWN, experiment
from hubbub.simulations.results import check_folder, to_json, write
from hubbub.simulations.work import Work

DEFAULT_OUT = Path("figures")
SHOWN_ROWS = 30


@click.command()
@click.argument("name", required=False)
@click.option(
    "--devices", type=click.IntRange(1), help="in the largest population; each experiment has its own default"
)
@click.option("--trials", type=click.IntRange(1), help="how often each point is repeated")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="same seed, same result")
@click.option(
    "--out", type=click.Path(path_type=Path), default=DEFAULT_OUT, show_default=True, help="folder for data and figure"
)
@click.option("--workers", type=click.IntRange(1), help="processes of this machine; by default one a core")
@click.option("--scheduler", metavar="ADDRESS", help="a Dask scheduler to work on instead, as tcp://HOST:8786")
@click.option("--registry", metavar="FILE", help=f"{OWN}: the file of metrics")
@click.option("--metric", help=f"{OWN}: which one")
@click.option(
    "--distribution", help=f"{OWN}: uniform, gauss, normal, exponential, zipf, zipf1.5, or a CSV of value,count"
)
@click.option("--json", "as_json", is_flag=True, help="print everything as one JSON object")
def simulate(
    name: str | None,
    devices: int | None,
    trials: int | None,
    seed: int,
    out: Path,
    workers: int | None,
    scheduler: str | None,
    registry: str | None,
    metric: str | None,
    distribution: str | None,
    as_json: bool,
) -> None:
    """Run the experiment NAME, and write NAME.csv, .json, .svg and .png. Without a name: list them all."""
    if name is None:
        show_table("experiments", ["name", "what it asks"], [[each, experiment(each).title] for each in NAMES])
        return
    found = experiment(name)
    own = Own(registry, metric, distribution)
    if name != OWN and own != Own():
        raise click.ClickException(f"--registry, --metric, --distribution: are not for {name}; allowed: with {OWN}")
    if devices is None:
        devices = _counted(distribution) or found.devices
    check_folder(out)
    with Work(workers or os.cpu_count() or 1, scheduler) as work:
        run = Run(name, devices, trials or found.trials, seed, work, own)
        result = found.run(run)
    paths = write(found, run, result, out)
    if as_json:
        click.echo(to_json(found, run, result))
        return
    _show(found, run, result)
    for path in paths:
        click.echo(str(path))


def _counted(distribution: str | None) -> int:
    """How many devices a user's own CSV holds; 0 where there is none."""
    return 0 if distribution in {None, *DISTRIBUTIONS} else sum(read_truth(str(distribution)).values())


def _show(found: Experiment, run: Run, result: Result) -> None:
    click.echo(f"{found.title}\n{found.setting}\n{run.devices:,} devices, {run.trials:,} trials, seed {run.seed}\n")
    rows = [[_cell(cell) for cell in row.values()] for row in result.rows[:SHOWN_ROWS]]
    more = len(result.rows) - len(rows)
    show_table(f"data{f' (and {more} more rows in the files)' if more else ''}", list(result.rows[0]), rows)
    click.echo()
    if result.claims:
        show_table("claims", ["what", "claimed", "ours", "source"], [_claim(claim) for claim in result.claims])
        click.echo()
    click.echo(f"{result.figure.caption}\n")


def _cell(cell: object) -> str:
    return cell if isinstance(cell, str) else figure(cell)  # type: ignore[arg-type]


def _claim(claim: Claim) -> list[str]:
    return [claim.what, claim.claimed, claim.ours, claim.source if claim.verified else f"{claim.source} (unverified)"]
