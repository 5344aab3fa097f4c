"""Decoding what google/rappor's clients have sent, by the parameters, counts and map of its own files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL, diagnostics, look_at
from hubbub.collector.decode.design import design
from hubbub.collector.decode.estimates import Diagnostic, Estimates
from hubbub.collector.decode.interval import check_confidence
from hubbub.collector.decode.noise import Noise
from hubbub.collector.decode.strings import decode_strings, equations_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hubbub.collector.decode.control import Control
    from hubbub.collector.decode.google_files import Counts, Map, Parameters

_ONE_BIT = Diagnostic(
    "bits", 1.0, None, None, True, "there is one bit, which every string sets: no report can tell strings apart"
)


def decode_rappor(
    parameters: Parameters,
    counts: Counts,
    map_: Map,
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    control: Control = DEFAULT_CONTROL,
    progress: Callable[[str], None] = lambda _: None,
) -> Estimates:
    """Estimate which strings of a map are there, and how common each is."""
    check_confidence(confidence)
    reports = int(counts.reports.sum())
    known: dict[str, Any] = {
        "metric": "rappor",
        "version": 1,
        "kind": "string",
        "start": None,
        "end": None,
        "reports": reports,
        "periods": 1,
        "devices": reports,
        "confidence": confidence,
        "control": str(control),
    }
    if not reports:
        return Estimates(**known, diagnostics=(diagnostics.few_reports(0),))
    noise = Noise.rappor(parameters.f, parameters.p, parameters.q)
    looks = look_at(noise, counts.reports, counts.bits)
    if parameters.k == 1:
        return Estimates(**known, diagnostics=(*looks, _ONE_BIT))
    made = design(map_.rows, parameters.m, parameters.k, parameters.h)
    equations = equations_of(made, noise, counts.reports, counts.bits, has_null=False)
    decoded = decode_strings(made, equations, map_.strings, reports, confidence, control, progress=progress)
    return Estimates(
        **known,
        rows=tuple(decoded.rows),
        method="least squares" if decoded.fixed else "selection",
        other=decoded.other,
        diagnostics=(*looks, *decoded.diagnostics(equations)),
    )
