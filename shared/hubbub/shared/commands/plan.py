"""`hubbub plan`: parameters for a goal, and what they will find."""

from __future__ import annotations

import click
import msgspec

from hubbub.shared.bernoulli import ONE
from hubbub.shared.metric import KINDS
from hubbub.shared.planning import (
    ALPHA,
    DEFAULT_BUCKETS,
    DEFAULT_CANDIDATES,
    DEFAULT_CATEGORIES,
    POWER,
    Goal,
    Outlook,
    Plan,
)
from hubbub.shared.planning import plan as make_plan
from hubbub.shared.table import figure, show_table


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--devices", type=int, required=True, help="How many devices will report.")
@click.option("--report", type=float, required=True, help="Epsilon of one report.")
@click.option("--lifetime", type=float, required=True, help="Epsilon of all reports of one value.")
@click.option(
    "--candidates",
    type=int,
    default=DEFAULT_CANDIDATES,
    show_default=True,
    help="string: how many strings will be asked about.",
)
@click.option(
    "--categories", type=int, default=DEFAULT_CATEGORIES, show_default=True, help="category: how many there are."
)
@click.option("--buckets", type=int, default=DEFAULT_BUCKETS, show_default=True, help="histogram: how many there are.")
@click.option(
    "--range",
    "low_high",
    type=(float, float),
    default=(0.0, 1.0),
    show_default=True,
    help="mean, histogram: the lowest and the highest number.",
)
@click.option("--share", type=float, help="Also: how many devices it takes to detect this share.")
@click.option("--error", type=float, help="Also: how many devices it takes for this standard error.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def plan(low_high: tuple[float, float], as_json: bool, **options: object) -> None:
    """Recommend parameters for a metric of KIND, and tell what they will find.

    Beside them: RAPPOR's own parameters at the same two epsilons.
    """
    low, high = low_high
    made = make_plan(msgspec.convert({**options, "low": low, "high": high}, Goal))
    if as_json:
        click.echo(msgspec.json.encode(made))
        return
    _show(made)


def _show(made: Plan) -> None:
    goal = made.goal
    sides = (made.recommended, made.classic)
    unit = "mean" if goal.kind == "mean" else "share"
    lines = [
        ("parameters", [_parameters(side) for side in sides]),
        *((name, [f"{getattr(side, name) / ONE:.6f}" for side in sides]) for name in ("p1", "q1", "p2", "q2")),
        ("epsilon of a report", [f"{side.epsilon_report:.4f}" for side in sides]),
        ("epsilon of a lifetime", [f"{side.epsilon_lifetime:.4f}" for side in sides]),
        ("n Var", [figure(side.variance_per_report) for side in sides]),
        (f"standard error of a {unit}", [figure(side.standard_error) for side in sides]),
    ]
    if goal.kind != "mean":
        lines += [("smallest share detected", [_share(side) for side in sides])]
    if made.recommended.devices_needed is not None:
        lines += [("devices needed", [f"{side.devices_needed:,}" for side in sides])]
    show_table(
        f"A {goal.kind} metric from {goal.devices:,} devices",
        ["", "recommended", "RAPPOR's parameters"],
        [[name, *cells] for name, cells in lines],
    )
    if goal.kind != "mean":
        click.echo(f"Detected: with {POWER:.0%} power, and a chance of {ALPHA:.0%} that anything false is.")
    for warning in made.warnings:
        click.echo(f"Warning: {warning}.")
    click.echo(f"\n{made.registry}", nl=False)


def _parameters(side: Outlook) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in side.parameters.items()) or "-"


def _share(side: Outlook) -> str:
    share = side.detectable_share
    return "-" if share is None else f"{share:.3%}" if share < 1 else "none"
