"""`hubbub store check`, `hubbub backup`, `hubbub restore` and `hubbub export`: looking after a store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hubbub.collector.settings import SETTINGS
from hubbub.collector.store import Store
from hubbub.collector.store.checking import find_faults
from hubbub.collector.store.copying import back_up, copy
from hubbub.collector.store.exporting import FORMATS
from hubbub.collector.store.exporting import export as write

if TYPE_CHECKING:
    from collections.abc import Callable

_STORE = next(setting for setting in SETTINGS if setting.name == "store")


def _store_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--store", metavar="ADDRESS", help=f"{_STORE.meaning}  [default: {_STORE.default}]")(command)


def _open(address: str | None) -> Store:
    """Open a store as `hubbub serve` would find it; a file that is not there is not made by asking about it."""
    store = Store(address or os.environ.get(_STORE.variable) or _STORE.default)
    url = store.engine.url
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise click.ClickException(f"store: {url.database} is not there")
    return store


@click.group()
def store() -> None:
    """Look after the store of a collector."""


@store.command()
@_store_option
@click.option("--json", "as_json", is_flag=True, help="print the faults as a JSON list")
def check(store: str | None, as_json: bool) -> None:
    """Look for damage in a store; exits with 1 if there is any. The collector may be running."""
    faults = list(find_faults(_open(store)))
    if as_json:
        click.echo(msgspec.json.encode(faults))
    else:
        for fault in faults:
            click.echo(fault)
        click.echo(f"{len(faults)} faults" if faults else "no faults")
    sys.exit(1 if faults else 0)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_store_option
def backup(file: Path, store: str | None) -> None:
    """Write all that is in a store at one moment to a new SQLite FILE. The collector may be running."""
    click.echo(f"{file}: {back_up(_open(store), file)} rows")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@_store_option
def restore(file: Path, store: str | None) -> None:
    """Copy a backup FILE into an empty store."""
    target = Store(store or os.environ.get(_STORE.variable) or _STORE.default)
    click.echo(f"{target.address}: {copy(Store(f'sqlite:///{file}'), target)} rows")


@click.command()
@click.option("--format", "format_", type=click.Choice(FORMATS), required=True, help="how to spell the tallies")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="the file to write")
@click.option("--metric", help="only this metric")
@_store_option
def export(format_: str, out: Path, metric: str | None, store: str | None) -> None:
    """Write the tallies of a store to a file: a row for each metric, version, period and cohort."""
    click.echo(f"{out}: {write(_open(store), format_, out, metric)} rows")
