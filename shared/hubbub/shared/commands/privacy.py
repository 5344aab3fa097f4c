"""`hubbub privacy`: what a registry promises, exactly."""

from __future__ import annotations

import math

import click
import msgspec

from hubbub.shared.budget import Year, year
from hubbub.shared.privacy import DEFAULT_REPORTS, promise
from hubbub.shared.registry import Registry
from hubbub.shared.table import figure, show_table


@click.command()
@click.argument("registry")
@click.option("--metric", "names", multiple=True, help="Only this metric; may be given several times.")
@click.option(
    "--reports",
    type=click.IntRange(1),
    default=DEFAULT_REPORTS,
    show_default=True,
    help="How many reports of one value `epsilon after` speaks of.",
)
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Chance that the total of a year may fail to hold; 0 asks for pure epsilon.",
)
@click.option("--year", "only_year", is_flag=True, help="Only what a device spends over a year.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def privacy(registry: str, names: tuple[str, ...], reports: int, delta: float, only_year: bool, as_json: bool) -> None:
    """Print what the metrics of REGISTRY promise: the epsilons of one report, of several, of a lifetime, of a year."""
    loaded = Registry.load(registry)
    metrics = [loaded[name] for name in names or loaded]
    promises = [promise(metric, reports) for metric in metrics]
    spending = year(metrics, delta)
    if as_json:
        click.echo(msgspec.json.encode(spending if only_year else promises))
        return
    if not only_year:
        show_table(
            f"Epsilon of one report, of {reports} reports of one value, and of a lifetime of them",
            ["metric", "kind", "every", "report", "odds", f"after {reports}", "lifetime", "n Var"],
            [
                [
                    each.name,
                    each.kind,
                    each.every,
                    f"{each.epsilon_report:.4f}",
                    f"x {math.exp(each.epsilon_report):.2f}",
                    f"{each.epsilon_after:.4f}",
                    f"{each.epsilon_lifetime:.4f}",
                    figure(each.variance_per_report),
                ]
                for each in promises
            ],
        )
        click.echo("A report changes anyone's odds about a device's answer by at most the factor under `odds`.\n")
    _show_year(spending, delta)
    silent = [metric.name for metric in metrics if metric.default is None]
    if silent and not only_year:
        click.echo(
            f"Without a default: {', '.join(silent)}. A report shows that the app recorded something in that period: "
            "recording only when something happens tells that it happened."
        )


def _show_year(spending: Year, delta: float) -> None:
    show_table(
        "Epsilon that one device spends in a year, at most",
        ["metric", "reports", "encodings", "per encoding", "of the values", "of the changes"],
        [
            [
                metric.name,
                str(metric.reports),
                str(metric.values),
                f"{metric.epsilon_per_value:.4f}",
                f"{metric.epsilon:.4f}",
                figure(metric.epsilon_changes),
            ]
            for metric in spending.metrics
        ],
    )
    total = spending.total
    click.echo(
        f"All metrics: epsilon {total.epsilon:.4f}, delta {total.delta:g} of values, by {total.method} composition; "
        f"{figure(spending.total_changes)} of the changes."
    )
    click.echo(
        "The cost of the values compares two histories whose encodings repeat and change in the same periods. The cost "
        "of the changes compares any two histories: it bounds what the reports tell about when a value changed."
    )
    if delta > 0:
        others = ", ".join(f"{method} {epsilon:.4f}" for method, epsilon in sorted(total.totals.items()))
        click.echo(f"Totals tried for delta {delta:g}: {others}.")
