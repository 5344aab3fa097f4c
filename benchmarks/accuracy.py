"""How right the string decoder is: coverage of its intervals and false discoveries, over google/rappor's regression
test: five distributions, five sets of parameters, three sizes of population, three sizes of the candidate list, a tenth
of the true strings missing from it.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from hubbub.collector.decode.control import Control
from hubbub.simulations.trials import DISTRIBUTIONS, SETTINGS, Outcome, distribution, trial

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
TRIALS = 4 if QUICK else 40
REPORTS = (10**4, 10**5, 10**6)
CANDIDATES = (100, 1000, 10_000)


def cell(work: tuple[int, str, int, int, int, str, bool]) -> Outcome:
    setting, name, reports, candidates, trials, control, none_exists = work
    rng = np.random.default_rng([setting, DISTRIBUTIONS.index(name), reports, candidates, none_exists])
    return Outcome.total(
        trial(
            SETTINGS[setting],
            distribution(name),
            reports,
            candidates,
            rng,
            control=Control.parse(control),
            none_exists=none_exists,
        )
        for _ in range(trials)
    )


def share(part: float, whole: float) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def main() -> None:
    works = [
        (setting, name, reports, candidates, TRIALS if candidates < 10_000 else TRIALS // 2, "fdr:0.1", False)
        for setting, reports, candidates, name in product(range(len(SETTINGS)), REPORTS, CANDIDATES, DISTRIBUTIONS)
    ]
    null = [
        (setting, "zipf1", reports, candidates, TRIALS, "fdr:0.1", True)
        for setting, reports, candidates in product(range(len(SETTINGS)), REPORTS, CANDIDATES[:2])
    ]
    with ProcessPoolExecutor() as pool:
        outcomes = dict(zip(works + null, pool.map(cell, works + null, chunksize=1), strict=True))
    print(
        "| parameters | reports | candidates | true found a trial | false rate | covers, all true | covers, reported |"
    )
    print("|---|---|---|---|---|---|---|")
    for setting, reports, candidates in product(range(len(SETTINGS)), REPORTS, CANDIDATES):
        total = Outcome.total(
            outcome
            for work, outcome in outcomes.items()
            if (work[0], work[2], work[3], work[6]) == (setting, reports, candidates, False)
        )
        print(
            f"| {SETTINGS[setting]} | {reports:,} | {candidates:,} "
            f"| {(total.reported - total.false) / total.trials:.1f} | {total.false_rate / total.trials:.3f} "
            f"| {share(total.covered, total.true)} | {share(total.reported_covered, total.reported)} |"
        )
    print("\nby distribution\n")
    for name in DISTRIBUTIONS:
        total = Outcome.total(outcome for work, outcome in outcomes.items() if work[1] == name and not work[6])
        print(
            f"| {name} | {total.false_rate / total.trials:.3f} "
            f"| {share(total.covered, total.true)} | {share(total.reported_covered, total.reported)} |"
        )
    everything = Outcome.total(outcome for work, outcome in outcomes.items() if work[6])
    print(
        f"\nnone of the candidates exists: {everything.any_false} of {everything.trials} trials report any, "
        f"alarm in {everything.alarms}"
    )


if __name__ == "__main__":
    main()
