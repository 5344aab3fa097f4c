"""Tracking: whether permanent bits tell devices apart, so that reports of two times can be linked.

The worst case: all devices are in one cohort and hold the same value, which the attacker knows, so that nothing but
their permanent noise tells them apart. He has the reports of every device from some days, under a name, and reports
from as many later days without one, and gives each the name of the likeliest device.

Pairs of windows are compared by the log likelihood ratio of "one device" against "two devices", a sum over the bits:

    ln [r a a' + (1 - r) b b'] - ln [r a + (1 - r) b] - ln [r a' + (1 - r) b']

with r the chance that the permanent bit is 1, and a, b how likely the ones of a window are if it is 1, or 0. Its mean
over pairs of one device is the mutual information I of two windows. By Fano's inequality no attacker links more than
(I + 1)/log2(n) of n devices, with I in bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector.charts import Axis, Figure, Panel
from hubbub.collector.decode.noise import Noise
from hubbub.shared.encode import Bloom
from hubbub.shared.response import Response
from hubbub.simulations.attackers import log_binomial, log_memoised, remember, send
from hubbub.simulations.drawing import column, last, number, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import average

if TYPE_CHECKING:
    from hubbub.collector.decode.noise import Numbers
    from hubbub.simulations.attackers import Counts
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

DAYS = (1, 2, 4, 7, 15, 30)
BITS = (32, 64, 128)
ONE_HASH = Bloom(128, 1, 64).contrasts
TWO_HASHES = Bloom(128, 2, 64).contrasts
RAPPOR = "RAPPOR f=.5 p=.5 q=.75"
ONCE = "no fresh noise"
CLOSE, DEFAULT = "hubbub 1 / 2", "hubbub 1 / 4"
COHORTS = 64
WEEK = 7

RESPONSES = {
    RAPPOR: Response.rappor(0.5, 0.5, 0.75),
    CLOSE: Response.least_variance(1, 2, ONE_HASH),
    DEFAULT: Response.least_variance(1, 4, ONE_HASH),
    "hubbub 1 / 8": Response.least_variance(1, 8, ONE_HASH),
    ONCE: Response.one_time(1, ONE_HASH),
}
"""Ours by the epsilon of a report and of a lifetime; `no fresh noise` is a one-time answer that is sent every day."""

EPSILONS = {
    name: tuple(each.epsilon(TWO_HASHES if name == RAPPOR else ONE_HASH, reports) for reports in (1, np.inf))
    for name, each in RESPONSES.items()
}


@dataclass(frozen=True)
class Point:
    """Devices with one response, watched for some days twice."""

    response: str
    bits: int
    days: int
    devices: int
    trials: int

    @property
    def hashes(self) -> int:
        """How many of the bits the value sets."""
        return 2 if self.response == RAPPOR else 1


def run(run: Run) -> Result:
    """Link the devices for every response, filter and number of days."""
    alike = max(run.devices // COHORTS, 2)
    points = [
        Point(response, bits, days, alike, run.trials) for response in RESPONSES for bits in BITS for days in DAYS
    ]
    rows = run.map(track, points)
    return Result(rows, _figure(rows), _claims(rows))


def track(point: Point, rng: np.random.Generator) -> Row:
    """Watch all devices twice, and name those of the second time."""
    noise = Noise.of(RESPONSES[point.response])
    linked, scores = (
        np.array(column) for column in zip(*(_trial(point, noise, rng) for _ in range(point.trials)), strict=True)
    )
    share, low, high = average(linked)
    shared = information(noise, point.days, point.bits, point.hashes)
    report, lifetime = EPSILONS[point.response]
    return {
        "response": point.response,
        "epsilon_report": report,
        "epsilon_lifetime": lifetime,
        "bits": point.bits,
        "days": point.days,
        "devices": point.devices,
        "linked": share,
        "low": max(low, 0.0),
        "high": min(high, 1.0),
        "chance": 1 / point.devices,
        "information_bits": shared,
        "measured_information_bits": float(scores.mean()),
        "measured_information_error": float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else 0.0,
        "fano_bound": min((shared + 1) / np.log2(max(point.devices, 2)), 1.0),
    }


def ratios(noise: Noise, days: int, permanent: float) -> Numbers:
    """The log likelihood ratio of one device against two, for every number of ones of a bit in both windows."""
    ones = np.arange(days + 1)
    alone = log_memoised(ones, days, noise, permanent)
    together = np.logaddexp(
        np.log(permanent) + np.add.outer(*(2 * [log_binomial(ones, days, noise.p2)])),
        np.log1p(-permanent) + np.add.outer(*(2 * [log_binomial(ones, days, noise.q2)])),
    )
    found: Numbers = together - alone[:, None] - alone
    return found


def information(noise: Noise, days: int, bits: int, hashes: int) -> float:
    """The mutual information of two windows of one device, in bits: exact, since the bits of a report are independent.

    A value whose hashes collide sets fewer bits; the difference is nothing beside the others, and left out.
    """
    ones = np.arange(days + 1)
    orders = special.comb(days, ones)
    total = 0.0
    for many, permanent in ((hashes, noise.p1), (bits - hashes, noise.q1)):
        ratio = ratios(noise, days, permanent)
        alone = log_memoised(ones, days, noise, permanent)
        both = np.exp(ratio + alone[:, None] + alone) * np.outer(orders, orders)
        total += many * float((both * ratio).sum())
    return float(total / np.log(2))


def _trial(point: Point, noise: Noise, rng: np.random.Generator) -> tuple[float, float]:
    """The share of devices that are named rightly, and the mean score of the right pairs, in bits."""
    encoded = np.zeros((point.devices, point.bits), bool)
    encoded[:, : point.hashes] = True
    remembered = remember(encoded, noise, rng)
    before, after = (send(remembered, point.days, noise, rng) for _ in range(2))
    scores = np.zeros((point.devices, point.devices))
    for some, permanent in ((slice(point.hashes), noise.p1), (slice(point.hashes, None), noise.q1)):
        scores += _scores(before[:, some], after[:, some], ratios(noise, point.days, permanent))
    right = np.diagonal(scores)
    # Devices that look alike are told apart by chance.
    named = (scores + 1e-6 * rng.random(scores.shape)).argmax(axis=0)
    return float((named == np.arange(point.devices)).mean()), float(right.mean() / np.log(2))


def _scores(before: Counts, after: Counts, ratio: Numbers) -> Numbers:
    """Score all pairs: the table of ratios has a low rank, so that the sum over the bits is a product of matrices."""
    left, sizes, right = np.linalg.svd(ratio)
    rank = max(int((sizes > 1e-10 * sizes[0]).sum()), 1)
    known = (left * sizes)[:, :rank][before].reshape(len(before), -1)
    unknown = right.T[:, :rank][after].reshape(len(after), -1)
    product: Numbers = known @ unknown.T
    return product


def _figure(rows: Rows) -> Figure:
    alike = f"{rows[0]['devices']:,}"
    linked = Axis(f"devices linked, of {alike} alike", percent=True, low=0, high=1.02)
    fresh = sorted((row for row in rows if row["response"] != ONCE), key=lambda row: number(row, "information_bits"))
    panels = [
        Panel(
            f"{BITS[-1]} bits",
            Axis("days that the attacker watches, twice", log=True),
            linked,
            [series(name, where(rows, response=name, bits=BITS[-1]), "days", "linked") for name in RESPONSES],
        ),
        Panel(
            f"Twice {WEEK} days",
            Axis("bits of a report", names=[str(bits) for bits in BITS]),
            linked,
            [
                replace(series(name, where(rows, response=name, days=WEEK), "bits", "linked"), x=range(len(BITS)))
                for name in RESPONSES
            ],
        ),
        Panel(
            "What counts: shared information",
            Axis("bits of information that both times share", log=True),
            linked,
            [
                series("all with fresh noise", fresh, "information_bits", "linked", "points"),
                theory_line("bound (Fano)", fresh, "information_bits", "fano_bound"),
            ],
        ),
    ]
    chance = per_cent(last(rows, "chance"), 1)
    caption = (
        f"{alike} devices of one cohort that hold the same value: blind guessing links {chance}. Of reports with "
        f"{BITS[-1]} bits, one day links {_linked(rows, DEFAULT, 1)} at report 1, lifetime 4 ({DEFAULT}) and "
        f"{_linked(rows, RAPPOR, 1)} with RAPPOR's parameters; {DAYS[-1]} days, each time, link "
        f"{_linked(rows, DEFAULT, DAYS[-1], 0)} and {_linked(rows, RAPPOR, DAYS[-1], 0)}. Without fresh noise one "
        f"report is enough ({_linked(rows, ONCE, 1, 0)}), and a lifetime epsilon close to that of a report leaves "
        f"little fresh noise: report 1, lifetime 2 links {_linked(rows, CLOSE, 1, 0)} by single reports. hubbub marks "
        "no report with a device, so that its collector has single reports only; whoever sees addresses may have more."
    )
    return Figure("Linking devices by their permanent bits", caption, panels)


def _linked(rows: Rows, response: str, days: int, digits: int = 1) -> str:
    return per_cent(last(rows, "linked", response=response, bits=BITS[-1], days=days), digits)


def _claims(rows: Rows) -> list[Claim]:
    above = max(np.subtract(column(rows, "linked"), column(rows, "fano_bound")))
    exact, measured = (sum(column(rows, name)) for name in ("information_bits", "measured_information_bits"))
    return [
        Claim(
            f"tracking by permanent bits behind fresh noise (f=.5, p=.5, q=.75, {BITS[-1]} bits)",
            "Erlingsson, Pihur, Korolova 2014, on why there is an instantaneous response",
            "made difficult",
            ", ".join(f"{_linked(rows, RAPPOR, days)} linked by 2 x {days}" for days in (1, WEEK, DAYS[-1])),
            verified=False,
        ),
        Claim(
            "devices linked above the bound of shared information, in the worst of all settings",
            "Fano's inequality: at most (I + 1)/log2(n)",
            "none",
            f"{per_cent(max(above, 0), 1)}",
        ),
        Claim(
            "shared information, all settings added up: measured against exact",
            "the mean log likelihood ratio of true pairs is the mutual information",
            f"{exact:.1f} bits",
            f"{measured:.1f} bits",
        ),
    ]


EXPERIMENT = Experiment(
    name="tracking-attack",
    title="Do permanent bits become a name tag?",
    setting=(
        f"`devices` in {COHORTS} cohorts, all with the same value, which the attacker knows. He watches each of one "
        "cohort under a name for some days, then for as many days without, and names the likeliest."
    ),
    devices=64_000,
    trials=5,
    run=run,
)
