"""The `hubbub` command: a group of whatever commands the installed packages register.

Packages announce theirs through the entry-point group `hubbub.commands`. A command is imported only when it is used;
one whose extra is not installed says in one line what to install.
"""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points, version

import click

from hubbub.shared.errors import HubbubError

GROUP = "hubbub.commands"
_EXTRA = "collector"


class Commands(click.Group):
    """Commands found by their entry points."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name them in alphabetical order."""
        return sorted(entry.name for entry in entry_points(group=GROUP))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one, or stand in for it if a library that it needs is not there."""
        entry = next(iter(entry_points(group=GROUP, name=cmd_name)), None)
        if entry is None:
            return None
        try:
            command = entry.load()
        except ModuleNotFoundError as error:
            return _missing(entry, error)
        if not isinstance(command, click.Command):
            raise TypeError(f"entry point {entry.value} is not a click command")
        return command


def _missing(entry: EntryPoint, error: ModuleNotFoundError) -> click.Command:
    if error.name is None or error.name.partition(".")[0] == "hubbub":
        raise error
    message = f'{entry.name} needs {error.name}, which is not installed: pip install "hubbub[{_EXTRA}]"'

    @click.command(entry.name, help=f"(not installed) {message}", add_help_option=False)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def stand_in(arguments: tuple[str, ...]) -> None:  # noqa: ARG001
        raise click.ClickException(message)

    stand_in.context_settings["ignore_unknown_options"] = True
    return stand_in


@click.command(cls=Commands)
@click.version_option(version("hubbub"), prog_name="hubbub")
def hubbub() -> None:
    """Hear the crowd, never the person: telemetry with local differential privacy."""


def main() -> None:
    """Run the command line; our own errors are shown as one message, never as a traceback."""
    try:
        hubbub()
    except HubbubError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
