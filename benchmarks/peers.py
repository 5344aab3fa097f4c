"""hubbub beside pure-ldp and multi-freq-ldpy, on the same jobs in the same run: `python -m benchmarks peers`.

They live in an environment of their own: see `peer_environment.py`. A peer that cannot be installed, or fails, is
reported as such. HUBBUB_BENCH_QUICK=1 makes everything smaller.
"""

from __future__ import annotations

import os
import statistics
import sys
from typing import Any

import numpy as np

from benchmarks import writing
from benchmarks.decoding import PAGE, Job
from benchmarks.peer_environment import PeerError, Peers, label
from hubbub.client import privatize
from hubbub.collector import Tally, decode
from hubbub.shared import Registry
from hubbub.shared.secret import Secret

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
RUNS = 3 if QUICK else 20
DEVICES = 10_000 if QUICK else 100_000
VALUES = 100
HELD_VALUES = 50
"""The other half of the values nobody holds: their estimates should be 0 on average."""

EPSILON, LIFETIME = 1.0, 2.0
WATCHED, CALLS = (50, 300) if QUICK else (500, 300)
"""Devices whose reports of one value are added up, and how many of each."""

RAPPOR = {"f": 0.5, "bits": 128, "cohorts": 8, "hashes": 2, "candidates": 100, "watched": 200}
RAPPOR["devices"] = 20_000 if QUICK else 100_000
"""As many cohorts as pure-ldp takes by itself."""

ONE_TIME = "{ f = 0.5 }"
DECODED = (
    Job(100, bits=32, cohorts=64, hashes=1, privacy=ONE_TIME),
    Job(1_000, bits=32, cohorts=64, hashes=1, privacy=ONE_TIME),
    Job(10_000, bits=128, cohorts=64, hashes=2, privacy=ONE_TIME),
)[: 2 if QUICK else 3]

PURE, MULTI, OURS = label("pure-ldp"), label("multi-freq-ldpy"), "hubbub"


def main() -> None:
    """Print the tables, and write them where that was asked for."""
    write = writing.wanted()
    peers = Peers.find()
    tables = {}
    for name, measure in (
        ("peers-category", categories),
        ("peers-rappor", rappor),
        ("peers-decode", decoding),
        ("peers-intervals", intervals),
    ):
        tables[name] = measure(peers)
        print(f"\n{tables[name]}")
    if write:
        for name, text in tables.items():
            writing.write_section(PAGE, name, text)


def categories(peers: Peers) -> str:
    """Frequency of categories, and what many reports of one device give away."""
    weights = 1 / np.arange(1, HELD_VALUES + 1)
    shares = np.concatenate([weights / weights.sum(), np.zeros(VALUES - HELD_VALUES)])
    held = np.floor(shares * DEVICES).astype(int)
    held[0] += DEVICES - held.sum()
    job = {"held": held.tolist(), "epsilon": EPSILON, "report": EPSILON, "lifetime": LIFETIME, "runs": RUNS}
    job |= {"devices": 0, "calls": 0}
    once, again = _registry("once", f"{{ epsilon = {EPSILON} }}"), _registry("day", "{ report = 1.0, lifetime = 2.0 }")
    truth = held / DEVICES
    rows = [*_ours(once, f"{OURS}, `once`", held)]
    rows += _theirs(
        peers, "pure_category", job, truth, {"plain": f"{PURE}, OUE", "projected": f"{PURE}, OUE, projected"}
    )
    rows += _theirs(peers, "multi_category", job, truth, {"plain": f"{MULTI}, OUE"})
    rows += _ours(again, f"{OURS}, report 1, lifetime 2", held)
    rows += _theirs(peers, "multi_longitudinal", job, truth, {"plain": f"{MULTI}, L-OSUE"})
    title = (
        f"{VALUES} categories, {VALUES - HELD_VALUES} of them held by nobody, epsilon {EPSILON:g}, {DEVICES:,} devices,"
        f" {RUNS} runs, the libraries' own\nclients. All numbers are shares in units of 10^-3, with their standard "
        "error over the runs; coverage is that of the\n95 % intervals.\n\n"
    )
    header = ["", "root mean square error", "mean estimate where nobody is", "error of the largest", "coverage"]
    return f"{title}{writing.table(header, rows)}\n\n{_averaging(peers, job)}"


def _registry(every: str, privacy: str) -> str:
    names = ", ".join(f'"v{value}"' for value in range(VALUES))
    return (
        f'[metrics.m]\ndescription = "m"\nkind = "category"\nevery = "{every}"\ncategories = [{names}]\n'
        f"privacy = {privacy}\n"
    )


def _ours(registry: str, label: str, held: Any) -> list[list[str]]:
    """Every device with a secret of its own, through the client's own function."""
    metric = Registry.parse(registry)["m"]
    truth = held / held.sum()
    unbiased, consistent, inside = [], [], []
    for _ in range(RUNS):
        reports = (
            privatize(metric, f"v{value}", Secret.generate())
            for value, number in enumerate(held)
            for _ in range(number)
        )
        rows = decode(metric, Tally.of(metric, reports)).rows
        unbiased.append([row.share for row in rows])
        consistent.append([row.consistent for row in rows])
        inside.append([row.low <= true <= row.high for row, true in zip(rows, truth, strict=True)])
    covered = _per_cent(float(np.mean(inside)))
    return [
        [f"{label}: `share`", *_errors(unbiased, truth), covered],
        [f"{label}: `consistent`", *_errors(consistent, truth), ""],
    ]


def _theirs(peers: Peers, name: str, job: dict[str, Any], truth: Any, labels: dict[str, str]) -> list[list[str]]:
    try:
        told = peers.do(name, job)
    except PeerError as error:
        return [[f"{label}: failed, {error}", "", "", "", ""] for label in labels.values()]
    return [[label, *_errors(told[key], truth), "no intervals"] for key, label in labels.items()]


def _errors(estimates: Any, truth: Any) -> list[str]:
    errors = 1000 * (np.array(estimates, float) - truth)
    squares = np.sqrt((errors**2).mean(axis=1))
    return [_mean(squares), _mean(errors[:, truth == 0].mean(axis=1), sign="+"), _mean(errors[:, 0], sign="+")]


def _mean(numbers: Any, sign: str = "") -> str:
    error = float(np.std(numbers, ddof=1)) / len(numbers) ** 0.5
    return f"{float(np.mean(numbers)):{sign}.2f} ± {error:.2f}"


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _averaging(peers: Peers, job: dict[str, Any]) -> str:
    """Add up many reports of one device, and guess the value whose bit was set most often."""
    metric = Registry.parse(_registry("day", "{ report = 1.0, lifetime = 2.0 }"))["m"]
    hits = 0
    for device in range(WATCHED):
        value, secret = device % VALUES, Secret.generate()
        tally = Tally.of(metric, (privatize(metric, f"v{value}", secret) for _ in range(CALLS)))
        hits += int(tally.counts.sum(axis=0).argmax()) == value
    try:
        told = peers.do("multi_longitudinal", job | {"runs": 0, "devices": WATCHED, "calls": CALLS})
        theirs = _per_cent(told["hits"] / WATCHED)
    except PeerError as error:
        theirs = f"failed, {error}"
    header = ["report 1, lifetime 2", "values guessed right"]
    rows = [[OURS, _per_cent(hits / WATCHED)], [f"{MULTI}, L-OSUE", theirs]]
    return (
        f"{CALLS} reports of the same value by one device, added up; the guess is the bit set most often; {WATCHED} "
        f"devices:\n\n{writing.table(header, rows)}"
    )


def rappor(peers: Peers) -> str:
    """One-time RAPPOR through the libraries' own clients."""
    shape = f"bits = {RAPPOR['bits']}\nhashes = {RAPPOR['hashes']}\ncohorts = {RAPPOR['cohorts']}\n"
    metric = Registry.parse(
        f'[metrics.m]\ndescription = "m"\nkind = "string"\nevery = "once"\n{shape}privacy = {{ f = {RAPPOR["f"]} }}\n'
    )["m"]
    candidates = [f"v{value}" for value in range(int(RAPPOR["candidates"]))]
    true_bits, cleared, reports = 0, 0, []
    for device in range(int(RAPPOR["devices"])):
        value = candidates[device % len(candidates)]
        reports.append(privatize(metric, value, Secret.generate()))
        encoded = metric.encode(value, reports[-1].cohort, 0)
        true_bits += encoded.bit_count()
        cleared += (encoded & ~int.from_bytes(reports[-1].bits, "little")).bit_count()
    rows = decode(metric, Tally.of(metric, reports), candidates=candidates).rows
    total = sum(row.share or 0.0 for row in rows)
    header = ["", "true bits", "sent as 0", "should be", "estimates sum to", "one candidate left after"]
    should = _per_cent(RAPPOR["f"] / 2)
    lines = [[OURS, f"{true_bits:,}", f"{cleared:,} ({_per_cent(cleared / true_bits)})", should, f"{total:.2f} n", "-"]]
    text = ""
    try:
        told = peers.do("pure_rappor", RAPPOR)
    except PeerError as error:
        lines.append([f"{PURE}: failed, {error}", "", "", "", "", ""])
    else:
        sent = f"{told['cleared']:,} ({_per_cent(told['cleared'] / told['true_bits'])})"
        after = f"{statistics.median(told['singled_out_after']):g} reports"
        default, plain = (f"{each:.2f} n" for each in told["sums"])
        lines.append([f"{PURE}, as it comes", f"{told['true_bits']:,}", sent, should, default, after])
        lines.append([f"{PURE}, `reg_const=0`", "", "", "", plain, ""])
        text = (
            f"\n\nAsked for the f of epsilon 1, {PURE} answers {told['f_for_1']:g}; asked for the epsilon of that f "
            f"with {RAPPOR['hashes']} hashes,\n{told['epsilon_of_that_f']:.2f}."
        )
    title = (
        f"One-time RAPPOR, f = {RAPPOR['f']:g}, {RAPPOR['bits']} bits, {RAPPOR['hashes']} hashes, {RAPPOR['cohorts']} "
        f"cohorts, {RAPPOR['candidates']} candidates held equally often by\n{RAPPOR['devices']:,} devices, n reports."
    )
    return f"{title}\n\n{writing.table(header, lines)}{text}"


def decoding(peers: Peers) -> str:
    """Time to decode, and what comes out."""
    rows = []
    for job in DECODED:
        shape = [f"{job.candidates:,}", str(job.bits), str(job.cohorts), str(job.hashes)]
        rows.append([OURS, *shape, *_decoded(job.run())])
        work = {
            "f": 0.5,
            "bits": job.bits,
            "cohorts": job.cohorts,
            "hashes": job.hashes,
            "candidates": job.candidates,
            "strings": job.strings,
            "reports": job.reports,
            "seeds": 1,
            "rounds": job.rounds,
        }
        try:
            rows.append([PURE, *shape, *_decoded(peers.do("pure_decode", work))])
        except PeerError as error:
            rows.append([f"{PURE}: failed, {error}", *shape, "", "", "", "", ""])
    header = ["", "candidates", "bits", "cohorts", "hashes", "CPU s", "found", "absent", "share of the first", "truth"]
    return (
        f"One-time RAPPOR, f = 0.5, {DECODED[0].reports:,} reports by devices that hold {DECODED[0].strings} strings, "
        "the second half as often as the\nfirst; the counts are drawn from what a right client sends. pure-ldp has no "
        "test: what it estimates above 0 counts\nas found.\n\n" + writing.table(header, rows)
    )


def _decoded(told: dict[str, Any]) -> list[str]:
    shares = [_per_cent(told[key]) for key in ("first", "first_true")]
    return [f"{told['seconds']:.2f}", f"{told['found']:,}", f"{told['absent']:,}", *shares]


def intervals(peers: Peers) -> str:
    """Who tells how sure an estimate is."""
    rows = [[OURS, "every row", "`standard_error` of every row"]]
    for name, package in ((PURE, "pure_ldp"), (MULTI, "multi_freq_ldpy")):
        try:
            told = peers.do("intervals", {"package": package})
        except PeerError as error:
            rows.append([f"{name}: failed, {error}", "", ""])
            continue
        rows.append(
            [name, *(", ".join(f"`{each}`" for each in told[key]) or "none" for key in ("intervals", "variances"))]
        )
    return (
        "Functions and parameters whose name speaks of an interval or a confidence, or begins with var:\n\n"
        + writing.table(["", "intervals", "variances"], rows)
    )


if __name__ == "__main__":
    sys.exit("run `python -m benchmarks peers`")
