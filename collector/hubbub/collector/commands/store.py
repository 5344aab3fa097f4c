"""`hubbub store check`, `hubbub backup`, `hubbub restore` and `hubbub export`: looking after a store."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from hubbub.collector.archive.checking import any_written, find_archive_faults
from hubbub.collector.archive.checking import repair as repair_archive
from hubbub.collector.archive.place import Place
from hubbub.collector.commands.opening import BY_NAME, open_store, store_at, store_option
from hubbub.collector.errors import ArchiveError
from hubbub.collector.store import Store
from hubbub.collector.store.checking import find_faults
from hubbub.collector.store.copying import back_up, copy
from hubbub.collector.store.exporting import FORMATS
from hubbub.collector.store.exporting import export as write

MIN_COHORT_REPORTS = BY_NAME["min_cohort_reports"]


@click.group()
def store() -> None:
    """Look after the store of a collector."""


@store.command()
@store_option
@click.option("--archive", metavar="ADDRESS", help="hold this archive against the store too")
@click.option(
    "--repair", is_flag=True, help="write files of the archive that are sealed, delete what was left half done"
)
@click.option("--json", "as_json", is_flag=True, help="print the faults as a JSON list")
def check(store: str | None, archive: str | None, repair: bool, as_json: bool) -> None:
    """Look for damage in a store; exits with 1 if there is any. The collector may be running."""
    if repair and archive is None:
        raise click.ClickException("--repair: is for an archive; allowed: with --archive ADDRESS")
    opened = open_store(store)
    faults = list(find_faults(opened))
    if archive is not None:
        faults += _archive_faults(opened, archive, repair)
    if as_json:
        click.echo(msgspec.json.encode(faults))
    else:
        for fault in faults:
            click.echo(fault)
        click.echo(f"{len(faults)} faults" if faults else "no faults")
    sys.exit(1 if faults else 0)


def _archive_faults(opened: Store, address: str, repair: bool) -> list[str]:
    place = Place(address)
    if any_written(opened) and not place.exists():
        raise ArchiveError(f"{address}: there is no archive; allowed: the address that a collector was given")
    if repair:
        for done in repair_archive(opened, place):
            click.echo(f"repaired: {done}", err=True)
    return list(find_archive_faults(opened, place))


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
@click.option(
    "--min-cohort-reports",
    type=click.IntRange(1),
    metavar="N",
    default=MIN_COHORT_REPORTS.default,
    show_default=True,
    envvar=MIN_COHORT_REPORTS.variable,
    help="Reports that a cohort needs in one period to be exported",
)
@store_option
def export(format_: str, out: Path, metric: str | None, min_cohort_reports: int, store: str | None) -> None:
    """Write the tallies of a store to a file: a row for each metric, version, period and cohort."""
    written, withheld = write(open_store(store), format_, out, metric, min_cohort_reports)
    click.echo(f"{out}: {written} rows")
    if withheld.cohorts:
        click.echo(
            f"withheld {_plural(withheld.cohorts, 'cell')} with {_plural(withheld.reports, 'report')}: cohorts with "
            f"fewer than {min_cohort_reports} reports in one period; {MIN_COHORT_REPORTS.flag} changes this"
        )


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
