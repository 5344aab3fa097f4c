"""Decoding: from a tally to estimates, one function for each kind.

It knows nothing of HTTP, draws no random numbers, and gives the same output for the same input, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.decode import diagnostics
from hubbub.collector.decode.bits import category, flag
from hubbub.collector.decode.control import DEFAULT_CONTROL, Control
from hubbub.collector.decode.design import bloom_design
from hubbub.collector.decode.estimates import Diagnostic, Estimates
from hubbub.collector.decode.histogram import cumulative, has_values, histogram, histogram_mean, quantiles
from hubbub.collector.decode.interval import check_confidence
from hubbub.collector.decode.mean import mean
from hubbub.collector.decode.noise import Noise
from hubbub.collector.decode.strings import decode_strings, equations_of
from hubbub.shared.encode import Bit, Bloom, Bucket, OneHot, Rounding
from hubbub.shared.errors import ParameterError, ValueRefusedError
from hubbub.shared.text import canonical_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from hubbub.collector.tally import Tally
    from hubbub.shared.metric import Metric

__all__ = ["DEFAULT_CONFIDENCE", "DEFAULT_CONTROL", "Control", "Estimates", "decode"]

DEFAULT_CONFIDENCE = 0.95
_DAYS = {"day": 1, "week": 7}


def decode(
    metric: Metric,
    tally: Tally,
    *,
    candidates: Iterable[str] | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    control: Control | str = DEFAULT_CONTROL,
    strict: bool = False,
    periods: int | None = None,
    ones: NDArray[np.int64] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Estimates:
    """Estimate what a tally says about a metric.

    `candidates` are the strings to ask about, `strict` selects among them on half the cohorts and infers on the other.
    `periods` is the number of reports that one device may have in the tally; without it, that of the periods that the
    tally covers. `ones` counts reports by their number of ones, where single reports were kept.
    """
    if isinstance(control, str):
        control = Control.parse(control)
    check_confidence(confidence)
    check(metric, tally)
    asked = _distinct(metric, candidates)
    periods = _periods(metric, tally) if periods is None else periods
    if periods < 1:
        raise ParameterError(f"periods = {periods}; allowed: at least 1")
    known = {
        "metric": metric.name,
        "version": metric.version,
        "kind": metric.kind,
        "start": tally.start,
        "end": tally.end,
        "reports": tally.reports,
        "periods": periods,
        "devices": -(-tally.reports // periods),
        "confidence": confidence,
        "control": None if metric.kind == "mean" else str(control),
    }
    if not tally.reports:
        return Estimates(**known, diagnostics=(diagnostics.few_reports(0),))  # type: ignore[arg-type]
    noise = Noise.of(metric.response, periods)
    looks = look_at(noise, tally.n, tally.counts)
    if ones is not None:
        looks.append(diagnostics.ones_per_report(ones, *diagnostics.ones_laws(metric.encoding, noise), periods))
    answer = _decode(metric, noise, tally, asked, confidence, control, strict, looks, progress)
    return Estimates(**known, **answer, diagnostics=tuple(looks))  # type: ignore[arg-type]


def _decode(
    metric: Metric,
    noise: Noise,
    tally: Tally,
    asked: list[str],
    confidence: float,
    control: Control,
    strict: bool,
    looks: list[Diagnostic],
    progress: Callable[[str], None],
) -> dict[str, object]:
    step = noise.periods / (noise.slope * tally.reports)  # how far one bit of one device moves a share
    match metric.encoding:
        case Bit():
            return {"rows": (flag(noise, tally, confidence, control),)}
        case OneHot(categories=names):
            shares = category(noise, tally, confidence)
            looks += diagnostics.of_shares(shares, step, confidence)
            rows = shares.rows(names, float(tally.reports), control)
            return {"rows": tuple(rows), "no_value": shares.no_value(confidence)}
        case Rounding() as encoding:
            return {"mean": mean(noise, tally, encoding, confidence)}
        case Bucket() as encoding:
            rows, buckets = histogram(noise, tally, encoding, confidence, control)
            if buckets is None:
                return {"rows": tuple(rows)}
            looks += diagnostics.of_shares(buckets, encoding.buckets * step, confidence)
            answer = {"rows": tuple(rows), "no_value": buckets.no_value(confidence)}
            if not has_values(buckets, confidence):
                return answer
            return answer | {
                "cumulative": tuple(cumulative(buckets, encoding, confidence)),
                "quantiles": tuple(quantiles(buckets, encoding, confidence)),
                "mean": histogram_mean(buckets, encoding, confidence),
            }
        case Bloom() as encoding:
            progress(f"hashing {len(asked):,} candidates")
            design = bloom_design(encoding, asked)
            equations = equations_of(design, noise, tally.n, tally.counts, has_null=True)
            decoded = decode_strings(
                design, equations, asked, tally.reports, confidence, control, strict=strict, progress=progress
            )
            looks += decoded.diagnostics(equations)
            return {
                "rows": tuple(decoded.rows),
                "other": decoded.other,
                "no_value": decoded.no_value,
                "method": "least squares" if decoded.fixed else "selection",
            }
        case encoding:  # pragma: no cover  (there are five)
            raise TypeError(type(encoding).__name__)


def look_at(noise: Noise, reports: NDArray[np.int64], counts: NDArray[np.int64]) -> list[Diagnostic]:
    """Look at what the counts alone can tell, whatever is asked of them."""
    return [
        diagnostics.few_reports(int(reports.sum())),
        diagnostics.cohort_balance(reports, noise),
        diagnostics.impossible_bits(noise, reports, counts),
    ]


def check(metric: Metric, tally: Tally) -> None:
    """Refuse a tally that is not one of this metric, or that no reports can have made."""
    if (tally.metric, tally.version) != (metric.name, metric.version):
        raise ParameterError(
            f"tally: is of {tally.metric} version {tally.version}; allowed: {metric.name} version {metric.version}"
        )
    shape = (metric.encoding.cohorts, metric.size)
    if tally.n.shape != shape[:1] or tally.counts.shape != shape:
        raise ParameterError(
            f"tally: has counts of shape {tally.counts.shape}; allowed: {shape}, a row for each cohort, a column for "
            "each bit"
        )
    check_counts(tally.n, tally.counts, "tally")


def check_counts(reports: NDArray[np.int64], counts: NDArray[np.int64], name: str) -> None:
    """Refuse counts that no reports can have made."""
    if (reports < 0).any() or (counts < 0).any():
        raise ParameterError(f"{name}: holds a negative count; allowed: 0 and above")
    wrong = np.argwhere(counts > reports[:, None])
    if len(wrong):
        cohort, bit = wrong[0].tolist()
        raise ParameterError(
            f"{name}: cohort {cohort} has bit {bit} set {counts[cohort, bit]} times in {reports[cohort]} reports; "
            "allowed: at most once in each"
        )


def _distinct(metric: Metric, candidates: Iterable[str] | None) -> list[str]:
    """List candidates once each, in the order they came; two spellings of one text are one."""
    if metric.kind != "string":
        if candidates is not None:
            raise ParameterError(f'candidates: metric "{metric.name}" is of kind {metric.kind}; only strings have any')
        return []
    if candidates is None or isinstance(candidates, str):
        raise ParameterError(f'candidates: metric "{metric.name}" needs a list of strings to ask about')
    kept: dict[bytes, str] = {}
    for number, candidate in enumerate(candidates, 1):
        try:
            kept.setdefault(canonical_text(candidate), candidate)
        except ValueRefusedError as error:
            raise ParameterError(f"candidates: number {number} {error}") from None
    if not kept:
        raise ParameterError("candidates: the list is empty; allowed: at least one string")
    return list(kept.values())


def _periods(metric: Metric, tally: Tally) -> int:
    """How many reports one device may have in a tally, by the days it covers."""
    if metric.every == "once" or tally.start is None or tally.end is None:
        return 1
    return (tally.end - tally.start).days // _DAYS[metric.every] + 1
