"""Telling a newcomer what the demo has found."""

from __future__ import annotations

import math
from textwrap import fill
from typing import TYPE_CHECKING

import click

from hubbub.shared.table import show_table
from hubbub.simulations.demo.crowd import CANDIDATES, DAYS, NOBODYS
from hubbub.simulations.demo.outcome import OTHER

if TYPE_CHECKING:
    from hubbub.simulations.demo.attack import Attack
    from hubbub.simulations.demo.outcome import Found, Line, Outcome

WIDTH = 79
MOST_COMMON = 6
"""Strings that are shown; the others are there as well."""


def begin(devices: int, clients: int) -> None:
    """Say what is going to happen."""
    _say(
        f"{devices:,} devices report five metrics over the {DAYS} days up to yesterday. Each adds noise to its values "
        f"before anything leaves it. {clients:,} of them are real clients that send to a real collector on this "
        "machine; the others are simulated, and what they send goes into the same store.\n"
    )


def show(outcome: Outcome) -> None:
    """Show all of it."""
    _say(
        "Here is what the collector makes of the reports, beside the truth, which only the demo knows. Epsilon is the "
        "promise to each device: whatever anybody thought its value was, a report, or a lifetime of reports of one "
        "value, changes those odds by no more than the factor beside it. Found: more than noise alone would show.\n"
    )
    for name, found in outcome.metrics.items():
        _show_metric(name, found)
    lines = [line for found in outcome.metrics.values() for line in found.rows]
    _say(f"{sum(line.holds for line in lines)} of all {len(lines)} intervals hold the truth.\n")
    _show_attack(outcome.attack)
    _say("No report tells more about its sender than the epsilon above it allows. The crowd is heard all the same.")


def _show_metric(name: str, found: Found) -> None:
    click.secho(f"{name}: {found.description}", bold=True)
    click.echo(
        f"epsilon {found.epsilon_report:.2f} a report, {found.epsilon_lifetime:.2f} a lifetime "
        f"(odds: at most x {math.exp(found.epsilon_report):.1f} and x {math.exp(found.epsilon_lifetime):.1f})"
    )
    form = ("{:.1f}" if found.kind == "mean" else "{:.2%}").format
    show_table(
        f"average of {found.periods} {found.every}s from {found.start}: {found.reports:,} reports",
        ["", "truth", "estimate", "95 % interval", "found"],
        [
            [
                line.name,
                form(line.truth),
                form(line.estimate),
                f"{form(line.low)} to {form(line.high)}",
                {True: "yes", False: "no", None: ""}[line.found],
            ]
            for line in _shown(found)
        ],
    )
    if found.kind == "string":
        _say(
            f"{len(CANDIDATES)} strings were asked about, of which {len(NOBODYS)} are nobody's; "
            f"the {MOST_COMMON} most common of the others are shown."
        )
    for alarm in found.alarms:
        _say(f"! {alarm}")
    click.echo()


def _shown(found: Found) -> list[Line]:
    if found.kind != "string":
        return list(found.rows)
    return [*found.rows[:MOST_COMMON], *(line for line in found.rows if line.name in {*NOBODYS, OTHER})]


def _show_attack(attack: Attack) -> None:
    click.secho("Can somebody who averages the reports of one device find out its value?", bold=True)
    _say(
        f"He collects reports of {attack.metric} from one device and names the likeliest of "
        f"{round(1 / attack.blind)} values; who has seen none is right in {attack.blind:.0%}."
    )
    show_table(
        f"guessed right, of {attack.devices} devices",
        ["reports of a device", "hubbub", "without memory", "most any attack can"],
        [
            [f"{each.reports:,}", f"{each.guessed:.0%}", f"{each.without_memory:.0%}", f"{each.bound:.0%}"]
            for each in attack.guesses
        ],
    )
    _say(
        "Without memory, noise that is drawn anew for every report averages out. A hubbub device remembers its noise: "
        "more reports repeat it. The last column is what epsilon allows, whatever the attacker does.\n"
    )


def _say(text: str) -> None:
    """Print a paragraph; a line end at its end is an empty line after it."""
    click.echo(fill(text, WIDTH) + ("\n" if text.endswith("\n") else ""))
