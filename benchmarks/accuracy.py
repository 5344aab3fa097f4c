"""How right the string decoder is: coverage of its intervals and false discoveries.

Over what google/rappor's regression test varies: five distributions of a hundred strings, five sets of parameters,
three sizes of population, three sizes of the candidate list, and a tenth of the true strings missing from it, the
commonest one among them.
"""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from textwrap import fill
from typing import NamedTuple, Self

import numpy as np

from benchmarks import writing
from hubbub.collector.decode.control import Control
from hubbub.simulations.trials import DISTRIBUTIONS, SETTINGS, Outcome, distribution, trial

TRIALS = 2 if os.environ.get("HUBBUB_BENCH_QUICK") else 30
REPORTS = (10**4, 10**5, 10**6)
CANDIDATES = (100, 1000, 10_000)
PAGE, README = "docs/comparison.md", "README.md"


class Cell(NamedTuple):
    setting: int
    distribution: str
    reports: int
    candidates: int
    trials: int
    control: str = "fdr:0.1"
    none_exists: bool = False

    @property
    def place(self) -> tuple[int, int, int]:
        """What one row of the table is about."""
        return self.setting, self.reports, self.candidates


def run(cell: Cell) -> list[Outcome]:
    """Every trial of a cell, for their spread tells how far its averages can be trusted."""
    rng = np.random.default_rng([cell.setting, DISTRIBUTIONS.index(cell.distribution), cell.reports, cell.candidates])
    return [
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
    ]


class Measured(NamedTuple):
    """A share over some trials, and how far off it may be."""

    share: float
    error: float
    """Half of a 95 % interval."""

    @classmethod
    def of(cls, parts: Sequence[float], wholes: Sequence[float]) -> Self | None:
        """A ratio of sums over trials, None of nothing.

        Strings of one trial share their noise, so trials are what is counted (the usual error of a ratio). Where all
        trials agree that would be 0, which is too sure: then it is that of as many single draws, by Agresti and Coull
        (1998).
        """
        part, whole = np.array(parts, float), np.array(wholes, float)
        total = float(whole.sum())
        if not total:
            return None
        share = float(part.sum()) / total
        of_trials = float(np.sqrt(((part - share * whole) ** 2).sum())) / total
        middle = (total * share + 2) / (total + 4)
        return cls(share, 1.96 * (of_trials or (middle * (1 - middle) / (total + 4)) ** 0.5))

    @property
    def cell(self) -> str:
        return f"{self.share:.1%} ± {100 * self.error:.1f}"


class Summary(NamedTuple):
    """What some trials say, as a row of the table."""

    name: str
    trials: int
    found: float
    """True strings found in a trial."""
    reported: int
    false: Measured | None
    covers: Measured | None
    covers_reported: Measured | None

    @classmethod
    def of(cls, name: str, trials: Sequence[Outcome]) -> Self:
        total = Outcome.total(trials)
        return cls(
            name,
            total.trials,
            (total.reported - total.false) / total.trials,
            total.reported,
            Measured.of([each.false_rate for each in trials], [1] * len(trials)),
            Measured.of([each.covered for each in trials], [each.true for each in trials]),
            Measured.of([each.reported_covered for each in trials], [each.reported for each in trials]),
        )

    @property
    def row(self) -> list[str]:
        shares = [each.cell if each else "-" for each in (self.false, self.covers, self.covers_reported)]
        return [self.name, f"{self.trials:,}", f"{self.found:.1f}", f"{self.reported:,}", *shares]


HEADER = [
    "",
    "trials",
    "true strings found in one",
    "strings reported in all",
    "false",
    "covers, all true strings",
    "covers, those reported",
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
    settings = [
        Summary.of(
            f"{SETTINGS[setting]}, n = {reports:,}, {candidates:,} candidates",
            [each for cell in cells if cell.place == key for each in outcomes[cell]],
        )
        for key in product(range(len(SETTINGS)), REPORTS, CANDIDATES)
        for setting, reports, candidates in [key]
    ]
    every = [
        Summary.of(name, [each for cell in cells if cell.distribution == name for each in outcomes[cell]])
        for name in DISTRIBUTIONS
    ]
    every.append(Summary.of("all", [each for cell in cells for each in outcomes[cell]]))
    text = "Each share has ± 95 %, from the spread of its trials.\n\n"
    text += writing.table(HEADER, [each.row for each in settings + every])
    alarms = []
    for control in ("fdr:0.1", "family-wise:0.05"):
        of_control = [each for cell in nulls if cell.control == control for each in outcomes[cell]]
        total = Outcome.total(of_control)
        text += (
            f"\n\nNone of the candidates exists, {control}: {total.any_false} of {total.trials} trials report any "
            f"string ({total.any_false / total.trials:.1%}), and {total.alarms} raise an alarm."
        )
        alarms.append(total)
    print(text)
    if writing.wanted():
        writing.write_section(PAGE, "accuracy", text)
        writing.write_section(README, "accuracy", promise(settings, every[-1], Outcome.total(alarms)))


def promise(settings: Sequence[Summary], every: Summary, none_exists: Outcome) -> str:
    """What was measured, in the words of the README."""
    false = [each.false.share for each in settings if each.false]
    covers = [each.covers_reported.share for each in settings if each.covers_reported]
    if not every.covers or not every.covers_reported or not every.false:
        raise ValueError("accuracy: no string was reported; allowed: trials in which some are")
    told = (
        f"* Strings, over {every.trials:,} simulated collections of {len(settings)} settings: 95 % intervals held the "
        f"truth in {every.covers.share:.1%} of the cases, those of strings that were found in "
        f"{every.covers_reported.share:.1%}. Of the strings reported {every.false.share:.1%} were false, where 10% was "
        f"allowed. Single settings scatter, those most in which hardly anything is found: from {min(covers):.1%} to "
        f"{max(covers):.1%}, and from {min(false):.1%} to {max(false):.1%} false. Where none of the candidates exists, "
        f"{none_exists.alarms:,} of {none_exists.trials:,} raised an alarm. (`python -m benchmarks accuracy`; "
        "[each setting](docs/comparison.md#how-right-the-decoder-is) with its trials and its ±.)"
    )
    # Like all that is written for people, not by programs: "95 %".
    spaced = re.sub(r"(\d)%", r"\1 %", told)
    return fill(spaced, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
