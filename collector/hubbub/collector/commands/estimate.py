"""`hubbub estimate`: decode a metric from a store, or from a tally that was counted elsewhere."""

from __future__ import annotations

import os
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hubbub.collector.candidates import TEXT, spooling, unpack
from hubbub.collector.charts import draw
from hubbub.collector.commands.opening import BY_NAME, open_store, store_option
from hubbub.collector.commands.options import chosen_control, decoding_options, showing_progress
from hubbub.collector.decode import Estimates, decode
from hubbub.collector.pictures import of_estimates
from hubbub.collector.store.candidates import get_chunks
from hubbub.collector.tally import Tally
from hubbub.shared.errors import ParameterError
from hubbub.shared.files import check_folder, replace_file
from hubbub.shared.registry import Registry
from hubbub.shared.table import figure, show_table

if TYPE_CHECKING:
    from datetime import date, datetime

    from hubbub.collector.charts import Form
    from hubbub.collector.store import Store
    from hubbub.shared.metric import Metric

_REGISTRY = BY_NAME["registry"]
_DAY = click.DateTime(["%Y-%m-%d"])


@click.command()
@click.argument("metric")
@store_option
@click.option("--tally", type=click.Path(path_type=Path), metavar="FILE", help="a tally as JSON, instead of a store")
@click.option("--registry", metavar="FILE", help=f"{_REGISTRY.meaning}, also as {_REGISTRY.variable}")
@click.option("--start", type=_DAY, help="the first period to add up")
@click.option("--end", type=_DAY, help="the last one, itself included")
@click.option(
    "--candidates", type=click.Path(path_type=Path), help="string: those to ask about, one a line, not the stored ones"
)
@decoding_options
@click.option("--strict", is_flag=True, help="string: find on half the cohorts, and estimate on the other half")
@click.option("--all", "everything", is_flag=True, help="string: all candidates, not only those found")
@click.option("--json", "as_json", is_flag=True, help="print everything as one JSON object")
@click.option("--csv", "as_csv", is_flag=True, help="print the rows as CSV")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="draw a picture, too: .svg or .png")
def estimate(
    metric: str,
    store: str | None,
    tally: Path | None,
    registry: str | None,
    start: datetime | None,
    end: datetime | None,
    candidates: Path | None,
    confidence: float,
    fdr: float,
    family_wise: float | None,
    strict: bool,
    everything: bool,
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
) -> None:
    """Tell what the reports of METRIC in a store, or in a tally, say about the crowd. The collector may be running."""
    control = chosen_control(fdr, family_wise)
    if as_json and as_csv:
        raise click.ClickException("--json and --csv: are both given; allowed: one of them")
    first, last = (None if day is None else day.date() for day in (start, end))
    if first is not None and last is not None and first > last:
        raise click.ClickException("--start: is after --end; allowed: up to it")
    form = None if plot is None else _form(plot)
    asked = _metric(registry, metric)
    with showing_progress() as progress:
        progress("reading")
        if tally is None:
            found, listed, periods = _from_store(store, asked, candidates, first, last)
        elif store or first or last:
            raise click.ClickException("--tally: is given with --store, --start or --end; allowed: alone")
        else:
            found, listed, periods = _read_tally(tally, asked), _listed(asked, candidates), None
        estimates = decode(
            asked,
            found,
            candidates=listed,
            confidence=confidence,
            control=control,
            strict=strict,
            periods=periods,
            progress=progress,
        )
    if plot is not None and form is not None:
        _plot(estimates, plot, form)
    _show(estimates, everything=everything, as_json=as_json, as_csv=as_csv)


def _form(plot: Path) -> Form:
    """Find out before the work in which form to draw, and whether the picture can be written there."""
    forms: dict[str, Form] = {".svg": "svg", ".png": "png"}
    form = forms.get(plot.suffix.lower())
    if form is None:
        raise click.ClickException(f"--plot: {plot} has another ending; allowed: {', '.join(forms)}")
    try:
        check_folder(plot.parent)
    except OSError as error:
        raise _unwritable(plot, error) from None
    return form


def _plot(estimates: Estimates, plot: Path, form: Form) -> None:
    try:
        replace_file(plot, draw(of_estimates(estimates), form))
    except OSError as error:
        raise _unwritable(plot, error) from None


def _unwritable(plot: Path, error: OSError) -> click.ClickException:
    return click.ClickException(
        f"--plot: {plot} cannot be written: {error.strerror}; allowed: a file in a folder that you may write to"
    )


def _metric(registry: str | None, name: str) -> Metric:
    file = registry or os.environ.get(_REGISTRY.variable)
    if not file:
        raise click.ClickException(
            f"--registry: is missing; allowed: a TOML file of metrics, also as {_REGISTRY.variable}"
        )
    return Registry.load(file)[name]


def _from_store(
    address: str | None, metric: Metric, candidates: Path | None, first: date | None, last: date | None
) -> tuple[Tally, list[str] | None, int | None]:
    with closing(open_store(address)) as store:
        store.check(metric)
        found = store.tally(metric, first, last)
        return found, _candidates(store, metric, candidates), max(store.periods(metric, first, last), 1)


def _read_tally(file: Path, metric: Metric) -> Tally:
    try:
        return Tally.parse(file.read_bytes(), metric)
    except OSError as error:
        raise ParameterError(f"{file}: cannot be read: {error.strerror}; allowed: the JSON of a tally") from None


def _listed(metric: Metric, file: Path | None) -> list[str] | None:
    """The candidates of a file: a tally comes with none."""
    if file is None and metric.kind == "string":
        raise click.ClickException(f'--candidates: is missing, and metric "{metric.name}" needs it; allowed: a file')
    return None if file is None else _read_candidates(file)


def _candidates(store: Store, metric: Metric, file: Path | None) -> list[str] | None:
    """The candidates of a file, or else those that the store holds; None for a metric that has none."""
    if file is not None:
        return _read_candidates(file)
    if metric.kind != "string":
        return None
    found = get_chunks(store.engine, metric.name)
    if found is None:
        raise ParameterError(
            f'candidates: metric "{metric.name}" has none in the store; allowed: --candidates FILE, or a list '
            f"uploaded to the collector by PUT /v1/metrics/{metric.name}/candidates"
        )
    return list(chain.from_iterable(unpack(found[1])))


def _read_candidates(file: Path) -> list[str]:
    try:
        with file.open("rb") as stream, spooling(stream, TEXT) as spooled:
            return list(chain.from_iterable(unpack(spooled.chunks())))
    except OSError as error:
        fault = f"cannot be read: {error.strerror}; allowed: a file of candidates, one a line"
    except ParameterError as error:
        fault = str(error)
    raise ParameterError(f"{file}: {fault}")


def _show(estimates: Estimates, *, everything: bool, as_json: bool, as_csv: bool) -> None:
    shown = estimates
    if estimates.kind == "string" and not everything:
        shown = msgspec.structs.replace(estimates, rows=estimates.detected)
    if as_json:
        click.echo(msgspec.json.encode(shown.to_dict()))
    elif as_csv:
        click.echo(shown.to_csv().encode(), nl=False)
    else:
        click.echo(str(estimates))  # which tells the alarms too
        if everything and estimates.kind == "string":
            _show_all(estimates)
        return
    for sentence in estimates.alarms:
        click.echo(f"! {sentence}", err=True)


def _show_all(estimates: Estimates) -> None:
    """Show what is known of each candidate, as if it alone had been asked about."""
    rows = [
        [" | ".join((row.value, *row.also)), *map(figure, (row.count, row.share, row.low, row.high, row.p_value))]
        for row in estimates.rows
    ]
    show_table("every candidate", ["candidate", "count", "share", "low", "high", "p-value"], rows)
