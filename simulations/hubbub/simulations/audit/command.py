"""`hubbub audit`: measure epsilon from outside."""

from __future__ import annotations

import os

import click
import msgspec

from hubbub.client import privatize
from hubbub.shared.errors import HubbubError
from hubbub.shared.registry import Registry
from hubbub.shared.table import show_table
from hubbub.simulations.audit.measure import (
    DEFAULT_CONFIDENCE,
    DEFAULT_DIRECT_TRIALS,
    DEFAULT_REPORTS,
    DEFAULT_TRIALS,
    FEWEST_TRIALS,
    Audit,
    measure,
)
from hubbub.simulations.work import Work

JSON_FIELDS = (
    "name",
    "claimed",
    "measured",
    "trials",
    "reports",
    "bit_rates_p",
    "fresh_noise_p",
    "rarest_fault",
    "refuted",
    "reason",
)


class _NoAuditError(click.ClickException):
    """An audit that failed, which must not look like a refuted claim, whose exit code is 1."""

    exit_code = 2


@click.command()
@click.option("--registry", metavar="FILE", required=True, envvar="HUBBUB_REGISTRY", help="Registry of metrics")
@click.option("--metric", "names", metavar="NAME", multiple=True, help="Only this metric; can be repeated")
@click.option(
    "--trials",
    type=click.IntRange(FEWEST_TRIALS),
    metavar="N",
    help=f"Devices per metric  [default: {DEFAULT_TRIALS}, or {DEFAULT_DIRECT_TRIALS} with --direct]",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    default=DEFAULT_CONFIDENCE,
    show_default=True,
    help="Probability that a correct client passes the whole run",
)
@click.option(
    "--reports",
    type=click.IntRange(1),
    metavar="N",
    default=DEFAULT_REPORTS,
    show_default=True,
    help="Reports of each device that the guesser sees",
)
@click.option("--direct", is_flag=True, help="Audit the function privatize, without client, state file and HTTP")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes  [default: number of cores]")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON")
@click.pass_context
def audit(
    ctx: click.Context,
    registry: str,
    names: tuple[str, ...],
    trials: int | None,
    confidence: float,
    reports: int,
    direct: bool,
    workers: int | None,
    as_json: bool,
) -> None:
    """Measure epsilon of the installed client from outside.

    New devices run the installed client and report one of two values to a collector in memory. A guesser sees only the
    reports and names the value. The odds of right to wrong guesses bound epsilon from below. Two more checks compare
    the bits, and their changes between two reports, with the declared probabilities.

    The exit code is 0 if every metric stands and 1 if a metric is refuted. A correct client is refuted with a
    probability of at most 1 - CONFIDENCE, which is divided among the metrics. The exit code is 2 if the audit failed.
    """
    try:
        loaded = Registry.load(registry)
        metrics = [loaded[name] for name in dict.fromkeys(names or loaded)]
        each = 1 - (1 - confidence) / len(metrics)
        with Work(workers or os.cpu_count() or 1) as work:
            audits = [
                measure(
                    metric,
                    work,
                    trials=trials,
                    confidence=each,
                    reports=reports,
                    client=privatize if direct else None,
                )
                for metric in metrics
            ]
    except HubbubError as error:
        raise _NoAuditError(str(error)) from None
    if as_json:
        click.echo(msgspec.json.encode([{field: getattr(found, field) for field in JSON_FIELDS} for found in audits]))
    else:
        _show(audits, confidence)
    refuted = [found for found in audits if found.refuted]
    for found in refuted:
        click.echo(f'metric "{found.name}" is refuted: {found.reason}', err=True)
    if refuted:
        ctx.exit(1)


def _show(audits: list[Audit], confidence: float) -> None:
    show_table(
        f"Epsilon claimed and a lower bound of it, with {confidence:.10g} confidence in the whole table",
        ["metric", "kind", "reports", "claimed", "at least", "of claim", "rarest fault", "verdict"],
        [
            [
                found.name,
                found.kind,
                str(found.reports),
                f"{found.claimed:.4f}",
                f"{found.measured:.4f}",
                "-" if found.share is None else f"{found.share:.1%}",
                f"1 in {found.rarest_fault:,}" if found.rarest_fault else "-",
                "refuted" if found.refuted else "stands",
            ]
            for found in audits
        ],
    )
    [trials] = {found.trials for found in audits}
    click.echo(
        f"Rarest fault: if the client sends the true bits in fewer reports than that, {trials:,} trials rarely notice"
    )
