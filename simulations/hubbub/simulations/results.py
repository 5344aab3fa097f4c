"""Results on disk: data as CSV and JSON, the figure as SVG and PNG; each file is there as a whole or not at all."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import msgspec

from hubbub.collector.charts import draw
from hubbub.shared import files
from hubbub.simulations.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path

    from hubbub.simulations.experiment import Cell, Claim, Experiment, Result, Run


def check_folder(folder: Path) -> None:
    """Find out before the work whether its results can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files.check_folder(folder)
    except OSError as error:
        raise _unwritable(folder, error) from None


def write(experiment: Experiment, run: Run, result: Result, folder: Path) -> list[Path]:
    """Write all four files, and tell their names; everything is drawn before the first is touched."""
    contents = {
        "csv": to_csv(result).encode(),
        "json": msgspec.json.format(to_json(experiment, run, result), indent=2) + b"\n",
        "svg": draw(result.figure, "svg"),
        "png": draw(result.figure, "png"),
    }
    paths = [folder / f"{experiment.name}.{form}" for form in contents]
    try:
        for path, content in zip(paths, contents.values(), strict=True):
            files.replace_file(path, content)
    except OSError as error:
        raise _unwritable(folder, error) from None
    return paths


def to_csv(result: Result) -> str:
    """One line a point, under a head."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(result.rows[0])
    lines.writerows(row.values() for row in result.rows)
    return text.getvalue()


def to_json(experiment: Experiment, run: Run, result: Result) -> bytes:
    """Everything: setting, seed, claims and data."""
    return msgspec.json.encode(
        {
            "experiment": experiment.name,
            "title": experiment.title,
            "setting": experiment.setting,
            "devices": run.devices,
            "trials": run.trials,
            "seed": run.seed,
            "caption": result.figure.caption,
            "claims": [_claim(claim) for claim in result.claims],
            "rows": result.rows,
        },
        enc_hook=_plain,
    )


def _claim(claim: Claim) -> dict[str, Cell]:
    return {
        "what": claim.what,
        "source": claim.source if claim.verified else f"{claim.source} (unverified)",
        "claimed": claim.claimed,
        "ours": claim.ours,
        "verified": claim.verified,
    }


def _plain(number: object) -> object:
    """Numbers of numpy, which msgspec does not know."""
    return number.item()  # type: ignore[attr-defined]


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"out {folder}: cannot be written to: {error.strerror}; allowed: a folder that you may write to")
