"""`hubbub decode-rappor`: decode google/rappor's own files."""

from __future__ import annotations

import csv
import io
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hubbub.collector.commands.options import chosen_control, decoding_options, showing_progress
from hubbub.collector.decode.google import decode_rappor as decode
from hubbub.collector.decode.google_files import read_counts, read_map, read_parameters

if TYPE_CHECKING:
    from hubbub.collector.decode.estimates import Estimates, Row

COLUMNS = (
    "string",
    "estimate",
    "std_error",
    "proportion",
    "prop_std_error",
    "prop_low_95",
    "prop_high_95",
    "p_value",
)

_FILE = click.Path(path_type=Path)


@click.command("decode-rappor")
@click.option("--params", "parameters", type=_FILE, required=True, help="k, h, m, p, q and f, with a header")
@click.option("--counts", type=_FILE, required=True, help="a line for each cohort: reports, then the count of each bit")
@click.option("--map", "map_", type=_FILE, required=True, help="a line for each string, then the bits that it sets")
@decoding_options
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="the CSV file to write")
@click.option("--json", "as_json", is_flag=True, help="print everything as one JSON object")
def decode_rappor(
    parameters: Path,
    counts: Path,
    map_: Path,
    confidence: float,
    fdr: float,
    family_wise: float | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Decode google/rappor's own files: which strings of a map are there, and how common each is."""
    control = chosen_control(fdr, family_wise)
    with showing_progress() as progress:
        progress("reading")
        known = read_parameters(parameters)
        counted = read_counts(counts, known)
        asked = read_map(map_, known)
        start = time.perf_counter()
        estimates = decode(known, counted, asked, confidence=confidence, control=control, progress=progress)
        seconds = time.perf_counter() - start
    found = strings(estimates)
    if out is not None:
        _replace(out, _csv(found))
        click.echo(
            f"{out}: {len(found)} of {len(asked.strings)} strings found in {estimates.reports} reports", err=True
        )
    if as_json:
        click.echo(msgspec.json.encode(_document(estimates, found, seconds)))
    elif out is None and sys.stdout.isatty():
        click.echo(str(estimates))
        return  # which tells the alarms too
    elif out is None:
        click.echo(_csv(found), nl=False)
    for sentence in estimates.alarms:
        click.echo(f"! {sentence}", err=True)


def strings(estimates: Estimates) -> list[dict[str, Any]]:
    """What was found, the largest first, by the names of the columns."""
    found = sorted(estimates.detected, key=lambda row: -(row.consistent or 0.0))
    return [dict(zip(COLUMNS, _cells(row, estimates.reports), strict=True)) for row in found]


def _cells(row: Row, reports: int) -> list[Any]:
    share, error = row.consistent or 0.0, row.found_error
    return [
        " | ".join((row.value, *row.also)),
        share * reports,
        None if error is None else error * reports,
        share,
        error,
        row.found_low,
        row.found_high,
        row.p_value,
    ]


def _csv(found: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue().encode()


def _document(estimates: Estimates, found: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    other = estimates.other
    misfit = next((look.value for look in estimates.diagnostics if look.name == "misfit"), None)
    return msgspec.structs.replace(estimates, rows=estimates.detected).to_dict() | {
        "other": None if other is None else other.estimate,
        "other_low": None if other is None else other.low,
        "other_high": None if other is None else other.high,
        "misfit": misfit,
        "seconds": seconds,
        "strings": found,
    }


def _replace(path: Path, content: bytes) -> None:
    """Write a file under another name until it is whole; what is not a file, as /dev/stdout, is written to."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            unfinished.write_bytes(content)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise click.ClickException(
            f"{path}: cannot be written: {error.strerror}; allowed: a file in a folder that can be written to"
        ) from None
