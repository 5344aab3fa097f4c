"""The averaging attack: somebody collects more and more reports of one device, and guesses what is behind them.

The devices run the client that apps embed, each with a secret of its own. Beside them are devices with the same noise
that remember nothing and draw it anew for every report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from hubbub.client import privatize
from hubbub.collector.count import count_bits
from hubbub.collector.decode.noise import Noise
from hubbub.shared.secret import Secret
from hubbub.simulations.attackers import codes, evidence, send_forgetful
from hubbub.simulations.experiments.averaging_attack import guess, guess_bound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hubbub.shared.metric import Metric
    from hubbub.simulations.attackers import Counts

REPORTS = (3, 30, 1000)
DEVICES = 200
METRIC = "theme"


class Guesses(Struct, frozen=True):
    """How often the attacker is right after so many reports of a device."""

    reports: int
    guessed: float
    """Of devices that remember their noise, as hubbub's do."""
    without_memory: float
    """Of devices that draw it anew."""
    bound: float
    """What no attack on hubbub's reports can beat, by their epsilon."""


class Attack(Struct, frozen=True):
    """The attack on one metric, all of whose values are equally likely beforehand."""

    metric: str
    devices: int
    blind: float
    """How often somebody is right who has seen no report."""
    guesses: tuple[Guesses, ...]


def attack(metric: Metric, values: Sequence[str], seed: int, progress: Callable[[], object]) -> Attack:
    """Guess the value of every device, after some reports and after many; `progress` is called for each device."""
    rng = np.random.default_rng([seed, len(values)])
    table = codes(metric, values)
    held = rng.integers(len(values), size=DEVICES)
    cohorts, remembered = _listen(metric, [values[number] for number in held], progress)
    noise = Noise.of(metric.response)
    guesses = []
    for reports, ones in zip(REPORTS, remembered, strict=True):
        forgotten = send_forgetful(table[cohorts, held], reports, noise, rng)
        hubbubs, others = (
            float((guess(evidence(reports, noise, memoised=memoised)[counts], table, cohorts, rng) == held).mean())
            for counts, memoised in ((ones, True), (forgotten, False))
        )
        guesses.append(Guesses(reports, hubbubs, others, guess_bound(metric.epsilon(reports), len(values))))
    return Attack(metric.name, DEVICES, 1 / len(values), tuple(guesses))


def _listen(metric: Metric, values: Sequence[str], progress: Callable[[], object]) -> tuple[Counts, list[Counts]]:
    """Count how often each bit of each device was set, after each number of reports."""
    cohorts = np.empty(len(values), np.int64)
    sums = [np.empty((len(values), metric.size), np.int64) for _ in REPORTS]
    for device, value in enumerate(values):
        secret = Secret.generate()
        reports = [privatize(metric, value, secret) for _ in range(REPORTS[-1])]
        packed = np.frombuffer(b"".join(report.bits for report in reports), np.uint8).reshape(len(reports), -1)
        cohorts[device] = reports[0].cohort
        for some, number in zip(sums, REPORTS, strict=True):
            some[device] = count_bits(packed[:number], metric.size)
        progress()
    return cohorts, sums
