"""Decoding beside pure-ldp and beside the limits that were set, and how it grows: a part of `make bench`."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.decoding import BY_CANDIDATES, CASES, MOST
from benchmarks.findings import LIMIT, Findings, Row, Table
from benchmarks.peer_environment import PeerError, Peers, label
from benchmarks.peers import DECODED
from benchmarks.sized import QUICK

SEEDS = 2 if QUICK else 5
"""Populations whose errors are taken together: those of a single one, or of a single string, are luck."""


def measure() -> Findings:
    """CPU seconds and errors beside the peer, seconds beside the limits, and growth with the candidates."""
    peers, beside = Peers.find(), label("pure-ldp")
    rows = []
    for job in (replace(each, seeds=SEEDS) for each in (DECODED[:1] if QUICK else DECODED)):
        ours = job.run()
        shape = f"{job.candidates:,} candidates, {job.bits} bits, {job.cohorts} cohorts, {job.hashes} hash"
        shape += "es" if job.hashes > 1 else ""
        seconds = f"decode, CPU s: {shape}"
        error = f"decode, root mean square error of {job.strings} shares, %, {SEEDS} seeds: {shape}"
        work = {
            "f": 0.5,
            "bits": job.bits,
            "cohorts": job.cohorts,
            "hashes": job.hashes,
            "candidates": job.candidates,
            "strings": job.strings,
            "reports": job.reports,
            "seeds": job.seeds,
            "rounds": job.rounds,
        }
        try:
            theirs = peers.do("pure_decode", work)
        except PeerError as failure:
            fault = f"failed: {peers.failed.get('pure-ldp', failure)}"
            rows.append(Row(seconds, "decodes", beside, ours["seconds"], better="less", fault=fault))
            continue
        rows.append(Row(seconds, "decodes", beside, ours["seconds"], theirs["seconds"], better="less"))
        rows.append(Row(error, "decodes", beside, 100 * ours["error"], 100 * theirs["error"], better="less"))
    figures: dict[str, float] = {}
    for job in CASES:
        if job.candidates <= MOST and job.wanted is not None:
            told = job.run()
            what = f"decode, CPU s: {job.candidates:,} candidates, {job.bits} bits, {job.cohorts} cohorts"
            rows.append(Row(what, "decode", LIMIT, told["seconds"], job.wanted, better="less", wanted=1))
            figures |= {f"decode_{job.candidates}": told["seconds"], f"decode_{job.candidates}_bytes": told["peak"]}
    return Findings(rows, [_growth()], figures)


def _growth() -> Table:
    rows = []
    for job in BY_CANDIDATES:
        if job.candidates <= MOST:
            told = job.run()
            cost = [f"{told['seconds']:.2f}", f"{1e6 * told['seconds'] / job.candidates:,.1f}"]
            rows.append([f"{job.candidates:,}", *cost, f"{told['peak'] / 1e6:,.0f}"])
    title = "Candidates decoded, 128 bits, 32 cohorts, 1,000,000 reports:"
    return Table("growth", title, ["candidates", "CPU s", "µs a candidate", "MB"], rows)
