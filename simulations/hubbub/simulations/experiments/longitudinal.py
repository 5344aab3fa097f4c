"""What more days of the same devices tell: the noise of the day averages out, the remembered noise does not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.charts import Axis, Figure, Panel
from hubbub.collector.decode.noise import Noise
from hubbub.simulations import declared
from hubbub.simulations.drawing import column, last, number, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import root_mean_square

if TYPE_CHECKING:
    from hubbub.collector.decode.noise import Numbers
    from hubbub.shared.metric import Metric
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Run

DAYS = (1, 3, 10, 30, 100, 300, 1000)
FOR_EVER = 10**12
"""Days after which only the floor is left."""
RAPPOR, OURS, ONE_BIT, FRESH = "RAPPOR", "least variance", "one-bit mean", "fresh noise"
EPSILON, GAMMA, NUMBER = 1.0, 0.2, 0.3
"""Of the one-bit mean, and the number that its devices hold, as a part of the range."""
WAYS = (RAPPOR, OURS, ONE_BIT, FRESH)


def run(run: Run) -> Result:
    """Measure the error over days."""
    rows = run.map(measure, [(way, days, run.devices, run.trials) for way in WAYS for days in DAYS])
    variances = {way: column(where(rows, way=way), "variance") for way in WAYS}
    claims = [
        Claim(
            "RAPPOR, h = 2, f = 1/2, p = 1/2, q = 3/4: n times the variance of a rare string's share after 1 day, 30 "
            "days, for ever",
            "computed from the definition of Erlingsson, Pihur and Korolova 2014",
            "7.875, 0.625, 0.375",
            f"{variances[RAPPOR][0]:.3f}, {variances[RAPPOR][DAYS.index(30)]:.3f}, "
            f"{variances[RAPPOR][-1]:.3f} after {DAYS[-1]} days",
        ),
        Claim(
            "the same after 1 day, with one hash and the response of least variance at the same two epsilons",
            "computed; that of optimal unary encoding (Wang et al. 2017)",
            "3.151",
            f"{variances[OURS][0]:.3f}",
        ),
    ]
    return Result(rows, _figure(rows, run.devices), claims)


def metric_of(way: str) -> Metric:
    """A metric that is reported every day; that of least variance promises what RAPPOR's parameters do.

    It has one hash, which gets all of both epsilons, where RAPPOR's two get half each.
    """
    if way == ONE_BIT:
        return declared.mean({"epsilon": EPSILON, "gamma": GAMMA})
    classic = declared.string(declared.RAPPOR)
    if way == RAPPOR:
        return classic
    return declared.string({"report": classic.epsilon(), "lifetime": classic.epsilon(math.inf)}, hashes=1)


def measure(point: tuple[str, int, int, int], rng: np.random.Generator) -> Row:
    """Draw what the same devices send over so many days, and measure how far off its average is."""
    way, days, devices, trials = point
    metric = metric_of(way)
    share, bits = _holding(metric, devices)
    remembered = way != FRESH
    noise = Noise.of(metric.response, days if remembered else 1)
    size = root_mean_square(estimates(noise, bits, share, days, trials, rng, remembered=remembered) - share)
    floor = _error(Noise.of(metric.response, FOR_EVER), bits, share) if remembered else 0.0
    return {
        "way": way,
        "days": days,
        "devices": devices,
        "measured": size.value,
        "low": size.low,
        "high": size.high,
        "theory": _error(noise, bits if remembered else bits * days, share),
        "floor": floor,
        "variance": size.value**2 * devices,
        "epsilon": metric.epsilon(days) if remembered else days * metric.epsilon(),
    }


def estimates(
    noise: Noise, bits: int, share: float, days: int, trials: int, rng: np.random.Generator, *, remembered: bool
) -> Numbers:
    """Estimate a share from all reports of all days, once for each trial.

    The devices whose remembered bit is 1 send, over all their days together, a binomial number of ones, and so do the
    others: no device has to be drawn by itself. Rounding offsets are kept as well, so bits are set once for all days.
    """
    reports = bits * days
    if not remembered:
        ones = rng.binomial(reports, noise.lie + noise.slope * share, trials)
    else:
        held = rng.binomial(bits, share, trials)
        kept = rng.binomial(held, noise.p1) + rng.binomial(bits - held, noise.q1)
        ones = rng.binomial(kept * days, noise.p2) + rng.binomial((bits - kept) * days, noise.q2)
    return noise.debias(ones.astype(np.float64), np.full(trials, float(reports)))


def _holding(metric: Metric, devices: int) -> tuple[float, int]:
    """The share that is estimated, and how many bits tell of it: a rare string has all its bits clear elsewhere."""
    return (NUMBER, devices) if metric.kind == "mean" else (0.0, devices * metric.encoding.hashes)


def _error(noise: Noise, bits: int, share: float) -> float:
    return math.sqrt(float(noise.variance(np.array(share))) / bits)


def _figure(rows: Rows, devices: int) -> Figure:
    errors = [series(way, where(rows, way=way), "days", look="points") for way in WAYS]
    errors += [theory_line(f"{way}, theory", where(rows, way=way), "days") for way in WAYS]
    spent = [series(way, where(rows, way=way), "days", "epsilon", bars=None) for way in WAYS]
    near = [row["days"] for row in where(rows, way=RAPPOR) if number(row, "theory") < 1.1 * number(row, "floor")]
    first = last(rows, "measured", way=OURS, days=DAYS[0])
    ours, floor, ours_epsilon = (last(rows, key, way=OURS) for key in ("measured", "floor", "epsilon"))
    fresh, fresh_epsilon = (last(rows, key, way=FRESH) for key in ("measured", "epsilon"))
    caption = (
        "More days help until the remembered noise is all that is left: with RAPPOR's parameters the error is within a "
        f"tenth of its floor after {near[0]} days (theory). With one hash and the response of least variance it goes "
        f"from {per_cent(first, 2)} to {per_cent(ours, 2)} in {DAYS[-1]:,} days; its floor is {per_cent(floor, 2)}. "
        f"Noise of the same size, but fresh every day, would go on to {per_cent(fresh, 3)}, at an epsilon of "
        f"{fresh_epsilon:,.0f} for each device instead of {ours_epsilon:.2f}."
    )
    return Figure(
        "More days of the same devices",
        caption,
        [
            Panel(
                f"error, {devices:,} devices",
                Axis("days", log=True),
                Axis("error (share, or part of the range)", log=True, percent=True),
                errors,
            ),
            Panel("what it costs each device", Axis("days", log=True), Axis("epsilon of all reports", log=True), spent),
        ],
    )


EXPERIMENT = Experiment(
    name="longitudinal",
    title="How much do more days of the same devices tell?",
    setting=(
        "Devices whose value stays report every day: a rare string with RAPPOR's parameters (h = 2, f = 1/2, p = 1/2, "
        "q = 3/4), with one hash and the response of least variance at the same two epsilons, and that response "
        "drawn afresh every day; and one-bit mean with epsilon 1 and gamma 0.2."
    ),
    devices=10_000,
    trials=20_000,
    run=run,
)
