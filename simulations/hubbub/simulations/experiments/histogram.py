"""Histograms from a few bits of each device: dBitFlip over the number of bits sent, against k-ary response."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector import decode
from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.collector.decode.noise import Noise
from hubbub.simulations import declared, references
from hubbub.simulations.aggregate import simulate_tally
from hubbub.simulations.distributions import counts_of, shares
from hubbub.simulations.drawing import column, last, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import root_of_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.decode.noise import Numbers
    from hubbub.shared.metric import Metric
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

BUCKETS = 32
SENT = (1, 2, 4, 8, 16, 32)
_ENDS = (SENT[0], SENT[-1])
EPSILONS = (0.5, 1.0, 2.0, 4.0)
LINE_EPSILON = 1.0
PUBLISHED, OURS, K_ARY = "dBitFlip", "least variance", "k-ary"
SHIPPED = (PUBLISHED, OURS)


def run(run: Run) -> Result:
    """Measure the error of a bucket's share over the bits sent and epsilon."""
    points = [(way, sent, epsilon, run.devices, run.trials) for way in SHIPPED for epsilon in EPSILONS for sent in SENT]
    points += [(K_ARY, BUCKETS, epsilon, run.devices, run.trials) for epsilon in EPSILONS]
    rows = run.map(measure, points)
    whole, half = (declare(OURS, 1, epsilon, 100).variance for epsilon in (1.0, 0.5))
    claims = [
        Claim(
            "n times the variance of a bucket, 100 buckets, 1 bit sent, epsilon 1: all of epsilon on the bit, or half",
            "Ding, Kulkarni and Yekhanin 2017, as computed: k e^e/(e^e - 1)^2, with e and with e/2",
            "92 against 392",
            f"{whole:.0f} against {half:.0f}",
        ),
        Claim(
            "the error falls as 1/sqrt(d) from 2 bits sent to all: quotient of the errors, epsilon 1",
            "the same, theory",
            f"{math.sqrt(BUCKETS / 2):.2f}",
            f"{_error(rows, PUBLISHED, 2) / _error(rows, PUBLISHED, BUCKETS):.2f}",
        ),
    ]
    return Result(rows, _figure(rows, run.devices), claims)


def declare(way: str, sent: int, epsilon: float, buckets: int = BUCKETS) -> Metric:
    """With dBitFlip's symmetric bits, or with those of least variance."""
    privacy = {"epsilon": epsilon} if way == OURS else {"epsilon": epsilon, "gamma": 0.0}
    return declared.histogram(buckets, sent, privacy)


def measure(point: tuple[str, int, float, int, int], rng: np.random.Generator) -> Row:
    """Draw histograms, decode them, and measure how far a bucket's share is off."""
    way, sent, epsilon, devices, trials = point
    counts = counts_of(shares("gauss", BUCKETS), devices)
    truth = counts / devices
    if way == K_ARY:
        found = references.k_ary_shares(counts, epsilon, trials, rng)
        expected = math.sqrt(float(references.k_ary_variance(truth, epsilon).mean()) / devices)
    else:
        metric = declare(way, sent, epsilon)
        found = np.array([_decoded(metric, counts, rng) for _ in range(trials)])
        expected = expected_error(metric, sent, truth, devices)
    size = root_of_mean(np.square(found - truth).mean(axis=1))
    return {
        "way": way,
        "sent": sent,
        "epsilon": epsilon,
        "devices": devices,
        "measured": size.value,
        "low": size.low,
        "high": size.high,
        "theory": expected,
    }


def expected_error(metric: Metric, sent: int, truth: Numbers, devices: int) -> float:
    """Return the standard error of a bucket's share.

    Each bucket is seen by sent/buckets of the devices, drawn without regard to what they hold. That two buckets of one
    device are never both set is left out: it is small beside the noise.
    """
    part = sent / len(truth)
    noise = Noise.of(metric.response).variance_of_noise(truth)
    alone = (noise + truth * (1 - truth) * (1 - part)) / (devices * part)
    return math.sqrt(float(alone.mean()))


def _decoded(metric: Metric, counts: NDArray[np.int64], rng: np.random.Generator) -> list[float]:
    held = {bucket + 0.5: int(count) for bucket, count in enumerate(counts)}
    return [row.share or 0.0 for row in decode(metric, simulate_tally(metric, held, rng)).rows]


def _error(rows: Rows, way: str, sent: int, epsilon: float = LINE_EPSILON) -> float:
    return last(rows, "measured", way=way, sent=sent, epsilon=epsilon)


def _figure(rows: Rows, devices: int) -> Figure:
    at_line, best = where(rows, epsilon=LINE_EPSILON), where(rows, sent=BUCKETS)
    over_sent = [series(way, where(at_line, way=way), "sent", look="points") for way in SHIPPED]
    over_sent.append(_level(where(at_line, way=K_ARY)[0]))
    over_sent += [theory_line(f"{way}, theory", where(at_line, way=way), "sent") for way in SHIPPED]
    over_sent.append(Series(f"{K_ARY}, theory", _ENDS, 2 * column(where(at_line, way=K_ARY), "theory"), look="theory"))
    one, single = where(rows, way=OURS, sent=1), f"1 of {BUCKETS} bits"
    over_epsilon = [series(way, where(best, way=way), "epsilon", look="points") for way in (*SHIPPED, K_ARY)]
    over_epsilon.append(series(single, one, "epsilon", look="points"))
    over_epsilon += [theory_line(f"{way}, theory", where(best, way=way), "epsilon") for way in (*SHIPPED, K_ARY)]
    over_epsilon.append(theory_line(f"{single}, theory", one, "epsilon"))
    one_bit, two_bits, all_bits = (per_cent(_error(rows, PUBLISHED, sent), 2) for sent in (1, 2, BUCKETS))
    ours, k_ary = (per_cent(_error(rows, way, BUCKETS), 2) for way in (OURS, K_ARY))
    ahead = [
        epsilon for epsilon in EPSILONS if _error(rows, K_ARY, BUCKETS, epsilon) < _error(rows, OURS, BUCKETS, epsilon)
    ]
    turn = (
        f"k-ary response is the better one from epsilon {ahead[0]:g} on" if ahead else "k-ary response is never better"
    )
    caption = (
        f"At epsilon {LINE_EPSILON:g}, the share of one of {BUCKETS} buckets is off by {one_bit} if a device sends 1 "
        f"bit by dBitFlip, by {two_bits} if it sends 2 (two can differ, and share epsilon) and by {all_bits} if it "
        f"sends all {BUCKETS}; by {ours} if it sends all with the response of least variance, and by {k_ary} with "
        f"k-ary response. With {BUCKETS} buckets {turn}, of the epsilons tried."
    )
    error = Axis("error of a bucket's share", log=True, percent=True)
    return Figure(
        "Histograms from a few bits",
        caption,
        [
            Panel(f"epsilon {LINE_EPSILON:g}, {devices:,} devices", Axis("bits sent, d", log=True), error, over_sent),
            Panel(
                f"all {BUCKETS} bits sent, or one, {devices:,} devices", Axis("epsilon", log=True), error, over_epsilon
            ),
        ],
    )


def _level(row: Row) -> Series:
    """Draw one measurement across the panel: k-ary response has no number of bits."""
    y, low, high = ([column([row], key)[0]] * 2 for key in ("measured", "low", "high"))
    return Series(K_ARY, _ENDS, y, low, high, look="band")


EXPERIMENT = Experiment(
    name="histogram",
    title="How many bits should a device send for a histogram?",
    setting=(
        f"{BUCKETS} buckets, numbers spread like a Gaussian curve, reported once: dBitFlip with d = 1 to all bits "
        "(Ding, Kulkarni and Yekhanin 2017), the response of least variance that hubbub solves for, and k-ary "
        "randomised response (Kairouz, Oh and Viswanath 2016)."
    ),
    devices=100_000,
    trials=100,
    run=run,
)
