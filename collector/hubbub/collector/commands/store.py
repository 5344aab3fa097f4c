"""`hubbub store check`, `hubbub backup`, `hubbub restore` and `hubbub export`: looking after a store."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from hubbub.collector.commands.opening import open_store, store_at, store_option
from hubbub.collector.store import Store
from hubbub.collector.store.checking import find_faults
from hubbub.collector.store.copying import back_up, copy
from hubbub.collector.store.exporting import FORMATS
from hubbub.collector.store.exporting import export as write


@click.group()
def store() -> None:
    """Look after the store of a collector."""


@store.command()
@store_option
@click.option("--json", "as_json", is_flag=True, help="print the faults as a JSON list")
def check(store: str | None, as_json: bool) -> None:
    """Look for damage in a store; exits with 1 if there is any. The collector may be running."""
    faults = list(find_faults(open_store(store)))
    if as_json:
        click.echo(msgspec.json.encode(faults))
    else:
        for fault in faults:
            click.echo(fault)
        click.echo(f"{len(faults)} faults" if faults else "no faults")
    sys.exit(1 if faults else 0)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@store_option
def backup(file: Path, store: str | None) -> None:
    """Write all that is in a store at one moment to a new SQLite FILE. The collector may be running."""
    click.echo(f"{file}: {back_up(open_store(store), file)} rows")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@store_option
def restore(file: Path, store: str | None) -> None:
    """Copy a backup FILE into an empty store."""
    target = store_at(store)
    click.echo(f"{target.address}: {copy(Store(f'sqlite:///{file}'), target)} rows")


@click.command()
@click.option("--format", "format_", type=click.Choice(FORMATS), required=True, help="how to spell the tallies")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="the file to write")
@click.option("--metric", help="only this metric")
@store_option
def export(format_: str, out: Path, metric: str | None, store: str | None) -> None:
    """Write the tallies of a store to a file: a row for each metric, version, period and cohort."""
    click.echo(f"{out}: {write(open_store(store), format_, out, metric)} rows")
