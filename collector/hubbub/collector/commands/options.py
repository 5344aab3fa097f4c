"""Options that decoding commands have, and what they share around their work."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource

from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL, Control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Command = TypeVar("Command", bound=Callable[..., None])


def decoding_options(command: Command) -> Command:
    """Give a command the confidence of intervals and the control over false discoveries."""
    for option in (
        click.option(
            "--family-wise", type=float, help="the chance that any string reported is false, instead of --fdr"
        ),
        click.option(
            "--fdr",
            type=float,
            default=DEFAULT_CONTROL.level,
            show_default=True,
            help="the share of the strings reported that may be false",
        ),
        click.option(
            "--confidence", type=float, default=DEFAULT_CONFIDENCE, show_default=True, help="that of the intervals"
        ),
    ):
        command = option(command)
    return command


def chosen_control(fdr: float, family_wise: float | None) -> Control:
    """Read `--fdr` and `--family-wise`, of which at most one is given."""
    if family_wise is None:
        return Control("fdr", fdr)
    if click.get_current_context().get_parameter_source("fdr") is not ParameterSource.DEFAULT:
        raise click.ClickException("--fdr and --family-wise: are both given; allowed: one of them")
    return Control("family-wise", family_wise)


@contextmanager
def showing_progress() -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is being done; nothing anywhere else."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    with Console(stderr=True).status("") as status:
        yield lambda doing: status.update(Text(doing))
