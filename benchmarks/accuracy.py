"""How right the string decoder is: coverage of its intervals and false discoveries.

Over what google/rappor's regression test varies: five distributions of a hundred strings, five sets of parameters,
three sizes of population, three sizes of the candidate list, and a tenth of the true strings missing from it, the
commonest one among them.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks import writing
from hubbub.collector.decode.control import Control
from hubbub.simulations.trials import DISTRIBUTIONS, SETTINGS, Outcome, distribution, trial

TRIALS = 2 if os.environ.get("HUBBUB_BENCH_QUICK") else 30
REPORTS = (10**4, 10**5, 10**6)
CANDIDATES = (100, 1000, 10_000)
PAGE = "docs/comparison.md"


class Cell(NamedTuple):
    setting: int
    distribution: str
    reports: int
    candidates: int
    trials: int
    control: str = "fdr:0.1"
    none_exists: bool = False


def run(cell: Cell) -> Outcome:
    rng = np.random.default_rng([cell.setting, DISTRIBUTIONS.index(cell.distribution), cell.reports, cell.candidates])
    return Outcome.total(
        trial(
            SETTINGS[cell.setting],
            distribution(cell.distribution),
            cell.reports,
            cell.candidates,
            rng,
            control=Control.parse(cell.control),
            none_exists=cell.none_exists,
        )
        for _ in range(cell.trials)
    )


def share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def told(name: str, outcomes: Iterable[Outcome]) -> list[str]:
    total = Outcome.total(outcomes)
    return [
        name,
        str(total.trials),
        f"{(total.reported - total.false) / total.trials:.1f}",
        share(total.false_rate, total.trials),
        share(total.covered, total.true),
        share(total.reported_covered, total.reported),
    ]


def main() -> None:
    cells = [
        Cell(setting, name, reports, candidates, max(TRIALS // 2, 1) if candidates == 10_000 else TRIALS)
        for setting, reports, candidates, name in product(range(len(SETTINGS)), REPORTS, CANDIDATES, DISTRIBUTIONS)
    ]
    nulls = [
        Cell(setting, name, reports, candidates, TRIALS // 2, control, none_exists=True)
        for setting, name, reports, candidates, control in product(
            range(len(SETTINGS)), ("uniform", "zipf1"), REPORTS, CANDIDATES[:2], ("fdr:0.1", "family-wise:0.05")
        )
    ]
    with ProcessPoolExecutor() as pool:
        outcomes = dict(zip(cells + nulls, pool.map(run, cells + nulls), strict=True))
    real = {cell: outcome for cell, outcome in outcomes.items() if not cell.none_exists}
    rows = [
        told(
            f"{SETTINGS[setting]}, n = {reports:,}, {candidates:,} candidates",
            (each for cell, each in real.items() if (cell.setting, cell.reports, cell.candidates) == key),
        )
        for key in product(range(len(SETTINGS)), REPORTS, CANDIDATES)
        for setting, reports, candidates in [key]
    ]
    rows += [told(name, (each for cell, each in real.items() if cell.distribution == name)) for name in DISTRIBUTIONS]
    rows.append(told("all", real.values()))
    header = ["", "trials", "true strings found", "false", "covers, all true strings", "covers, those reported"]
    text = writing.table(header, rows)
    for control in ("fdr:0.1", "family-wise:0.05"):
        total = Outcome.total(each for cell, each in outcomes.items() if cell.none_exists and cell.control == control)
        text += (
            f"\n\nNone of the candidates exists, {control}: {total.any_false} of {total.trials} trials report any "
            f"string ({share(total.any_false, total.trials)}), and {total.alarms} raise an alarm."
        )
    print(text)
    if writing.wanted():
        writing.write_section(PAGE, "accuracy", text)
