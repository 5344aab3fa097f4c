"""`python -m hubbub.simulations.gallery DOCS [NAME ...]`: run experiments as a user would, and write the gallery page.

Every figure goes to DOCS/figures; DOCS/gallery.md is made of the results, so that no number in it is typed by hand.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hubbub.simulations.experiment import Run
from hubbub.simulations.experiments import ATTACKS, NAMES, OWN, PUBLISHED, experiment
from hubbub.simulations.results import check_folder, write
from hubbub.simulations.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

SEED = 1
KEPT = (".svg", ".json")
"""What the page needs; the command writes CSV and PNG too."""

_HEAD = """# Gallery

Every experiment of `hubbub simulate`, as it comes out with seed 1, and the command that made it. The page and its
figures are written by `make gallery`; the data of each figure are in the JSON file beside it. A claim is marked
*unverified* where we only believe we remember it. What is measured has sampling error: the figures show it.
"""


def make(docs: Path, names: Sequence[str], work: Work) -> None:
    """Run them, and write their figures and the page of all that are there."""
    figures = docs / "figures"
    check_folder(figures)
    for name in names:
        found = experiment(name)
        run = Run(name, found.devices, found.trials, SEED, work)
        for path in write(found, run, found.run(run), figures):
            if path.suffix not in KEPT:
                path.unlink()
    (docs / "gallery.md").write_text(page(figures), encoding="utf-8")


def page(figures: Path) -> str:
    """The page, of whatever results there are."""
    parts = [_HEAD]
    for heading, names in (("Published experiments", PUBLISHED), ("Attacks", ATTACKS), ("Your own metric", (OWN,))):
        parts.append(f"## {heading}\n")
        parts += [_section(figures, name) for name in names]
    return "\n".join(parts)


def _section(figures: Path, name: str) -> str:
    result = msgspec.json.decode((figures / f"{name}.json").read_bytes())
    lines = [
        f"### {name}",
        "",
        f"**{result['title']}** {result['setting']}",
        "",
        f"    hubbub simulate {name}",
        "",
        f"![{result['title']}](figures/{name}.svg)",
        "",
        f"{result['caption']} ([data](figures/{name}.json))",
        "",
    ]
    if result["claims"]:
        lines += ["| what | claimed | ours | source |", "|---|---|---|---|"]
        lines += [
            "| " + " | ".join(claim[key].replace("|", "\\|") for key in ("what", "claimed", "ours", "source")) + " |"
            for claim in result["claims"]
        ]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    with Work(os.cpu_count() or 1) as workers:
        make(Path(sys.argv[1]), sys.argv[2:] or NAMES, workers)
