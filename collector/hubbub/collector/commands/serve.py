"""`hubbub serve`: run the collector."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from hubbub.collector.serving import serve as run
from hubbub.collector.settings import CONFIG, PREFIX, SETTINGS, read_settings

if TYPE_CHECKING:
    from collections.abc import Callable


_SECRETS = ", ".join(setting.variable for setting in SETTINGS if setting.secret)


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for every setting that is no secret; settings themselves say what is wrong with a value."""
    for setting in reversed(SETTINGS):
        if not setting.secret:
            default = "" if setting.default in {None, (), False} else f"  [default: {setting.default}]"
            flag: dict[str, Any] = {"is_flag": True} if setting.default is False else {"metavar": "VALUE"}
            command = click.option(setting.flag, setting.name, default=None, help=setting.meaning + default, **flag)(
                command
            )
    return click.option(f"--{CONFIG}", metavar="FILE", help="a TOML file of settings, by their names")(command)


@click.command(
    epilog=f"Every setting is also read from {PREFIX}NAME. Secrets have no flag: HUBBUB_ADMIN_TOKEN, HUBBUB_INGEST_KEY."
)
@_options
def serve(**flags: object) -> None:
    """Run the collector until it is told to stop."""
    run(read_settings(flags, os.environ))
