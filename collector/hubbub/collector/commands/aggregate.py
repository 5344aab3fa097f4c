"""`hubbub aggregate`: count an archive, here or on a Dask cluster."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hubbub.collector.archive.adding import check_store
from hubbub.collector.archive.aggregate import Aggregate, useful_workers
from hubbub.collector.archive.aggregate import aggregate as count
from hubbub.collector.archive.choice import Choice, unchanged
from hubbub.collector.archive.diagnose import can_tell, check_meaning, ones_per_report, repeated_reports
from hubbub.collector.archive.place import Place
from hubbub.collector.archive.repeats import count_repeats
from hubbub.collector.commands.opening import BY_NAME, open_store
from hubbub.collector.count import ENGINES as COUNTERS
from hubbub.collector.work import Workers, own_cluster
from hubbub.shared.files import check_folder, replace_file
from hubbub.shared.registry import Registry
from hubbub.shared.table import show_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date, datetime

    from hubbub.collector.archive.place import Listed
    from hubbub.collector.count import Engine
    from hubbub.collector.decode.estimates import Diagnostic
    from hubbub.shared.metric import Metric

ENGINES = ("local", "dask")
_REGISTRY = BY_NAME["registry"]
_DAY = click.DateTime(["%Y-%m-%d"])


@click.command()
@click.argument("archive")
@click.option("--metric", help="only this metric")
@click.option("--version", type=click.IntRange(1), help="only this version of it")
@click.option("--start", type=_DAY, help="the first period to count")
@click.option("--end", type=_DAY, help="the last one, itself included")
@click.option("--engine", type=click.Choice(ENGINES), default=ENGINES[0], show_default=True, help="who counts")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="dask: its scheduler, as tcp://HOST:8786; by default a cluster is started here",
)
@click.option("--workers", type=click.IntRange(1), help="processes of this machine; by default one a core")
@click.option(
    "--counter",
    type=click.Choice(COUNTERS),
    default=COUNTERS[0],
    show_default=True,
    help='what adds the bits up; numba, of "hubbub[fast]", is faster on large archives',
)
@click.option("--diagnose", is_flag=True, help="look at single reports, too: their ones, and whether some are repeated")
@click.option("--registry", metavar="FILE", help=f"diagnose: {_REGISTRY.meaning}, also as {_REGISTRY.variable}")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="write one tally as JSON")
@click.option("--store", metavar="ADDRESS", help="add a tally for each period to this store; twice counts twice")
@click.option("--json", "as_json", is_flag=True, help="print everything as one JSON object")
def aggregate(
    archive: str,
    metric: str | None,
    version: int | None,
    start: datetime | None,
    end: datetime | None,
    engine: str,
    scheduler: str | None,
    workers: int | None,
    counter: Engine,
    diagnose: bool,
    registry: str | None,
    out: Path | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Count the reports of one metric in an ARCHIVE: a folder, a folder in it, a file, or an address of fsspec."""
    first, last = (None if day is None else day.date() for day in (start, end))
    _check_options(engine, scheduler, workers, out, store, first, last)
    if store is not None:
        open_store(store).close()
    choice = Choice(metric, version, first, last)
    metrics = _registry(registry) if diagnose else None
    place = Place(archive)
    if not place.exists():
        raise click.ClickException(f"archive {archive}: is not there; allowed: a folder or a file that is")
    with unchanged(place, choice) as files, _workers(place, files, engine, scheduler, workers) as hands:
        counted = count(
            place,
            choice,
            hands,
            files,
            by_period=store is not None,
            ones=diagnose,
            engine=counter,
            label="counting reports",
        )
        looks = [] if metrics is None else _look(place, hands, counted, metrics)
    added = None if store is None else _add(store, counted)
    if out is not None:
        _write(out, counted.tally().json())
    _show(counted, looks, out, added, as_json=as_json)


def _check_options(
    engine: str,
    scheduler: str | None,
    workers: int | None,
    out: Path | None,
    store: str | None,
    first: date | None,
    last: date | None,
) -> None:
    """Refuse before the work what could not be done after it."""
    if scheduler is not None and engine != "dask":
        raise click.ClickException("--scheduler: is for --engine dask; allowed: both, or neither")
    if scheduler is not None and workers is not None:
        raise click.ClickException("--workers: is not for a --scheduler; allowed: as many as the cluster has")
    if out is not None and store is not None:
        raise click.ClickException("--out and --store: are both given; allowed: one of them")
    if first is not None and last is not None and first > last:
        raise click.ClickException("--start: is after --end; allowed: up to it")
    if out is not None:
        try:
            check_folder(out.parent)
        except OSError as error:
            raise _unwritable(out, error) from None


@contextmanager
def _workers(
    place: Place, files: Sequence[Listed], engine: str, scheduler: str | None, workers: int | None
) -> Iterator[Workers]:
    wanted = workers or os.cpu_count() or 1
    with ExitStack() as opened:
        if engine == "dask":
            if not place.reachable:
                raise click.ClickException(
                    f"archive {place.address}: is in the memory of this process; allowed: --engine local"
                )
            hands = Workers(scheduler=scheduler or opened.enter_context(own_cluster(wanted)))
        else:
            hands = Workers(useful_workers(files, wanted) if place.reachable else 1)
        yield opened.enter_context(hands)


def _registry(file: str | None) -> Registry:
    found = file or os.environ.get(_REGISTRY.variable)
    if not found:
        raise click.ClickException(
            f"--registry: is missing, and --diagnose needs it; allowed: a TOML file, also as {_REGISTRY.variable}"
        )
    return Registry.load(found)


def _look(place: Place, workers: Workers, counted: Aggregate, metrics: Registry) -> list[Diagnostic]:
    metric: Metric = metrics[counted.head.metric]
    check_meaning(metric, counted.head)
    repeats = dict.fromkeys(counted.n, 0)
    if can_tell(metric, counted.n):
        repeats = count_repeats(place, workers, counted.files, "comparing reports")
    return [ones_per_report(metric, counted.ones), repeated_reports(metric, counted.n, repeats)]


def _add(address: str, counted: Aggregate) -> int:
    with closing(open_store(address)) as store:
        check_store(store, counted.head, [file.name for file in counted.files])
        return store.add(counted.tallies())


def _write(out: Path, content: bytes) -> None:
    try:
        replace_file(out, content)
    except OSError as error:
        raise _unwritable(out, error) from None


def _unwritable(out: Path, error: OSError) -> click.ClickException:
    return click.ClickException(
        f"--out: {out} cannot be written: {error.strerror}; allowed: a file in a folder that you may write to"
    )


def _show(counted: Aggregate, looks: list[Diagnostic], out: Path | None, added: int | None, *, as_json: bool) -> None:
    head, reports = counted.head, counted.reports
    if as_json:
        told: dict[str, object] = {
            "metric": head.metric,
            "version": head.version,
            "files": len(counted.files),
            "reports": sum(reports.values()),
            "periods": [{"period": period, "reports": n} for period, n in reports.items()],
            "diagnostics": looks,
        }
        if out is None and added is None:
            told["tally"] = counted.tally().document()
        click.echo(msgspec.json.encode(told))
    else:
        rows = [[str(period), f"{n:,}"] for period, n in reports.items()]
        rows.append(["all", f"{sum(reports.values()):,}"])
        title = f"{head.metric} version {head.version}, {len(counted.files)} files"
        show_table(title, ["period", "reports"], rows)
        for look in looks:
            click.echo(f"{'!' if look.alarm else ' '} {look.name}: {look.sentence}")
        if out is not None:
            click.echo(f"written to {out}")
        if added is not None:
            click.echo(f"added {added:,} reports to the store")
    for look in looks:
        if look.alarm and as_json:
            click.echo(f"! {look.sentence}", err=True)
