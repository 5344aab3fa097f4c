"""`hubbub preview`: what this device would send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from hubbub.client.clock import system_clock
from hubbub.client.errors import StateError
from hubbub.client.ledger import Cost, costs
from hubbub.client.preview import Pending, Walkthrough, pending, walk_through
from hubbub.client.state import State
from hubbub.shared.registry import Registry
from hubbub.shared.table import show_table

if TYPE_CHECKING:
    from hubbub.shared.metric import Metric

SHOWN_BITS = 64


@click.command()
@click.option("--registry", required=True, help="The registry of metrics.")
@click.option("--state", required=True, help="The state file of the client.")
@click.option("--metric", help="Show what would become of a value of this metric.")
@click.option("--value", help="The value: a string or category, true or false, or a number.")
@click.option("--ledger", "only_ledger", is_flag=True, help="Show only what each metric has cost this device.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def preview(registry: str, state: str, metric: str | None, value: str | None, only_ledger: bool, as_json: bool) -> None:
    """Show what this device would send, when, and what it has cost; or a value on its way through the three steps.

    Nothing is recorded and nothing is sent.
    """
    if (metric is None) != (value is None):
        raise click.UsageError("--metric and --value go together")
    metrics, file = Registry.load(registry), State(state)
    if not file.path.exists():
        raise StateError(f"state {file.path}: does not exist; allowed: the state file of a client that has recorded")
    if metric is not None and value is not None:
        chosen = metrics[metric]
        with file.transaction() as connection:
            secret = file.secret(connection)
            shown = walk_through(connection, chosen, _typed(chosen, value), secret, system_clock())
        if as_json:
            click.echo(msgspec.json.encode(shown))
        else:
            _show_steps(shown)
        return
    with file.transaction() as connection:
        waiting, ledger = pending(connection, metrics), costs(connection)
    if as_json:
        click.echo(msgspec.json.encode(ledger if only_ledger else waiting))
        return
    if not only_ledger:
        _show_pending(waiting)
    _show_ledger(ledger)


def _typed(metric: Metric, value: str) -> object:
    """Read a word of the command line as the metric's sort of value; what does not fit is refused by the metric."""
    if metric.kind == "flag":
        return {"true": True, "false": False}.get(value.lower(), value)
    if metric.kind in ("mean", "histogram"):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _show_steps(shown: Walkthrough) -> None:
    click.echo(f"{shown.metric}, cohort {shown.cohort}: bit 0 first")
    for name in ("encoded", "permanent", "sent"):
        bits = getattr(shown, name)
        for start in range(0, len(bits), SHOWN_BITS):
            click.echo(f"  {'' if start else name:<10}{bits[start : start + SHOWN_BITS]}")
    click.echo(f"epsilon {shown.epsilon_report:.4f} for one report, {shown.epsilon_lifetime:.4f} for all of one value")
    click.echo(f"epsilon spent by this device before: at most {shown.epsilon_spent:.4f}")
    click.echo(
        f"recorded now, it would go between {shown.earliest:%Y-%m-%d %H:%M} and {shown.latest:%Y-%m-%d %H:%M} UTC"
    )


def _show_pending(waiting: list[Pending]) -> None:
    if not waiting:
        click.echo("Nothing waits to be sent.")
        return
    show_table(
        "Waiting to be sent",
        ["metric", "version", "period", "from", "epsilon spent before", "bits"],
        [
            [
                each.metric,
                str(each.version),
                each.period,
                "now" if each.frozen and each.when.timestamp() == 0 else f"{each.when:%Y-%m-%d %H:%M} UTC",
                f"{each.epsilon_spent:.4f}",
                "(number being combined)" if each.bits is None else _shortened(each.bits),
            ]
            for each in waiting
        ],
    )


def _show_ledger(ledger: dict[str, Cost]) -> None:
    if ledger:
        show_table(
            "Epsilon that the values have cost, and that they may reach",
            ["metric", "spent", "reserved"],
            [[name, f"{cost.spent:.4f}", f"{cost.reserved:.4f}"] for name, cost in ledger.items()],
        )


def _shortened(bits: str) -> str:
    return bits if len(bits) <= SHOWN_BITS else f"{bits[:SHOWN_BITS]}..."
