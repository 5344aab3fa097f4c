"""`hubbub audit`: measure epsilon from outside."""

from __future__ import annotations

import os

import click
import msgspec

from hubbub.shared.errors import HubbubError
from hubbub.shared.registry import Registry
from hubbub.shared.table import show_table
from hubbub.simulations.audit.measure import (
    DEFAULT_CONFIDENCE,
    DEFAULT_REPORTS,
    DEFAULT_TRIALS,
    FEWEST_TRIALS,
    Audit,
    measure,
)
from hubbub.simulations.work import Work

JSON_FIELDS = ("name", "claimed", "measured", "trials", "reports")


class _NoAuditError(click.ClickException):
    """An audit that could not be made must not look like one that refuted a claim, whose exit code is 1."""

    exit_code = 2


@click.command()
@click.option("--registry", metavar="FILE", required=True, envvar="HUBBUB_REGISTRY", help="The registry of metrics.")
@click.option("--metric", "names", multiple=True, help="Only this metric; may be given several times.")
@click.option(
    "--trials",
    type=click.IntRange(FEWEST_TRIALS),
    default=DEFAULT_TRIALS,
    show_default=True,
    help="How many devices report, for each metric.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=DEFAULT_CONFIDENCE,
    show_default=True,
    help="That no bound of the whole run is too high.",
)
@click.option(
    "--reports",
    type=click.IntRange(1),
    default=DEFAULT_REPORTS,
    show_default=True,
    help="How many reports of its value each device makes.",
)
@click.option(
    "--workers", type=click.IntRange(1), help="How many processes work; as many as there are cores, unless told."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def audit(
    ctx: click.Context,
    registry: str,
    names: tuple[str, ...],
    trials: int,
    confidence: float,
    reports: int,
    workers: int | None,
    as_json: bool,
) -> None:
    """Measure epsilon of the installed client from outside, beside what a registry claims.

    New devices report one of two values, and a guesser who sees only their reports says which. How often he is right
    bounds epsilon from below. The exit code is 0 if no bound exceeds its claim and 1 if one does, which happens to a
    good client with a chance of at most 1 - CONFIDENCE: the chance is shared out among the metrics. It is 2 if no
    audit could be made.
    """
    try:
        loaded = Registry.load(registry)
        metrics = [loaded[name] for name in dict.fromkeys(names or loaded)]
        each = 1 - (1 - confidence) / len(metrics)
        with Work(workers or os.cpu_count() or 1) as work:
            audits = [measure(metric, work, trials=trials, confidence=each, reports=reports) for metric in metrics]
    except HubbubError as error:
        raise _NoAuditError(str(error)) from None
    if as_json:
        click.echo(msgspec.json.encode([{field: getattr(each, field) for field in JSON_FIELDS} for each in audits]))
    else:
        _show(audits, confidence)
    exceeded = [each.name for each in audits if each.exceeded]
    if exceeded:
        click.echo(f"Exceeds the claim: {', '.join(exceeded)}", err=True)
        ctx.exit(1)


def _show(audits: list[Audit], confidence: float) -> None:
    show_table(
        f"Epsilon claimed, and what it is at least, with {confidence:.10g} confidence in all of it",
        ["metric", "kind", "reports", "claimed", "at least", "of claim", "trials", "verdict"],
        [
            [
                each.name,
                each.kind,
                str(each.reports),
                f"{each.claimed:.4f}",
                f"{each.measured:.4f}",
                "-" if each.share is None else f"{each.share:.1%}",
                f"{each.trials:,}",
                "refuted" if each.exceeded else "stands",
            ]
            for each in audits
        ],
    )
