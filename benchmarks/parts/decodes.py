"""Decoding beside pure-ldp and beside the limits that were set, and how it grows: a part of `make bench`."""

from __future__ import annotations

from benchmarks.decoding import BY_CANDIDATES, CASES, MOST
from benchmarks.findings import LIMIT, Findings, Row, Table
from benchmarks.peer_environment import PeerError, Peers, label
from benchmarks.peers import DECODED
from benchmarks.sized import QUICK


def measure() -> Findings:
    """CPU seconds and errors beside the peer, seconds beside the limits, and growth with the candidates."""
    peers, beside = Peers.find(), label("pure-ldp")
    rows = []
    for job in DECODED[:1] if QUICK else DECODED:
        ours = job.run()
        shape = f"{job.candidates:,} candidates, {job.bits} bits, {job.cohorts} cohorts, {job.hashes} hash"
        shape += "es" if job.hashes > 1 else ""
        seconds = f"decode, CPU s: {shape}"
        error = f"decode, error of the commonest share, %: {shape}"
        work = {
            "f": 0.5,
            "bits": job.bits,
            "cohorts": job.cohorts,
            "hashes": job.hashes,
            "candidates": job.candidates,
            "strings": job.strings,
            "reports": job.reports,
            "seed": 1,
            "rounds": job.rounds,
        }
        try:
            theirs = peers.do("pure_decode", work)
        except PeerError as failure:
            fault = f"failed: {peers.failed.get('pure-ldp', failure)}"
            rows.append(Row(seconds, "peers", beside, ours["seconds"], better="less", fault=fault))
            continue
        rows.append(Row(seconds, "peers", beside, ours["seconds"], theirs["seconds"], better="less"))
        rows.append(Row(error, "peers", beside, _error(ours), _error(theirs), better="less"))
    figures = {}
    for job in CASES:
        if job.candidates <= MOST and job.wanted is not None:
            took = job.run()["seconds"]
            what = f"decode, CPU s: {job.candidates:,} candidates, {job.bits} bits, {job.cohorts} cohorts"
            rows.append(Row(what, "decode", LIMIT, took, job.wanted, better="less", wanted=1))
            figures[f"decode_{job.candidates}"] = took
    return Findings(rows, [_growth()], figures)


def _error(told: dict[str, float]) -> float:
    """How far the estimate of the commonest string is off, in per cent of all."""
    return 100 * abs(told["first"] - told["first_true"])


def _growth() -> Table:
    rows = []
    for job in BY_CANDIDATES:
        if job.candidates <= MOST:
            told = job.run()
            cost = [f"{told['seconds']:.2f}", f"{1e6 * told['seconds'] / job.candidates:,.1f}"]
            rows.append([f"{job.candidates:,}", *cost, f"{told['peak'] / 1e6:,.0f}"])
    title = "Candidates decoded, 128 bits, 32 cohorts, 1,000,000 reports:"
    return Table("growth", title, ["candidates", "CPU s", "µs a candidate", "MB"], rows)
