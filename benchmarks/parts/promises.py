"""What the peers do not do, measured: no memory, seeded randomness, bits that never flip: a part of `make bench`."""

from __future__ import annotations

import random
from math import exp, sqrt
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.findings import Findings, Table
from benchmarks.parts.clients import REGISTRY, VALUES
from benchmarks.peer_environment import PEERS, PeerError, Peers, label
from benchmarks.peers import RAPPOR
from benchmarks.sized import QUICK
from hubbub.client import privatize
from hubbub.collector import Tally
from hubbub.shared import Registry, Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hubbub.shared import Metric

Z = 1.96
REPORTS = 100
"""Reports that are drawn twice from one seed."""

DEVICES, CALLS = (40, 300) if QUICK else (200, 300)
MORE_DEVICES = 400 if QUICK else 10_000
"""Devices of our own, with a flag: what is guessed of it is so near to what may be that few devices tell nothing."""
CATEGORY_DEVICES = 200 if QUICK else 2_000
ATTACKED = {
    "pure-ldp": "category",
    "multi-freq-ldpy": "repeated",
    "opendp": "category",
    "diffprivlib": "flag",
}
"""The job in which each peer is asked for many reports of one value: categories, where it has them."""

RAPPOR_OF = ("pure-ldp",)
"""Who has a RAPPOR client; opendp has its response alone."""

FLAG = """
[metrics.flag]
description = "a flag, daily, epsilon 1 and 2"
kind = "flag"
every = "day"
privacy = { report = 1.0, lifetime = 2.0 }
"""
HEADER = [
    "",
    "same seed, same reports",
    f"value guessed from {CALLS} reports",
    "of a flag",
    "true bits sent as 0, f = 1/2",
]


def measure() -> Findings:
    """One line for each library."""
    registry = Registry.parse(REGISTRY)
    peers = Peers.find()
    ours = [
        "hubbub",
        _yes(_seeded(registry)),
        _guesses(_guessed(registry["repeated"], [f"v{value}" for value in range(100)], CATEGORY_DEVICES)),
        _guesses(_guessed(Registry.parse(FLAG)["flag"], [False, True], MORE_DEVICES)),
        _share(_cleared(registry)),
    ]
    rows = [ours, *([label(library), *_told(peers, library)] for library in PEERS)]
    title = (
        f"*Same seed*: the generators of Python, numpy and numba are put to one state twice; did {REPORTS} reports "
        "come out the same twice? Whoever knows or guesses the state then knows the noise. *Value guessed*: one device "
        f"reports the same value {CALLS} times, 100 categories, epsilon 1 a report, and the commonest answer is the "
        f"guess; with ± 95 % and the number of devices. hubbub's lifetime epsilon is 2, and nobody else has one that "
        f"holds; it lets the value of a flag be guessed in {_share(exp(2) / (1 + exp(2)))} of the cases at the most. "
        "diffprivlib has no categories. *True bits sent as 0* should be 25 %; where a bit is never sent as 0, no "
        "epsilon holds."
    )
    return Findings(tables=[Table("peers", title, HEADER, rows)])


def _told(peers: Peers, library: str) -> list[str]:
    kind = ATTACKED[library]

    def seeded() -> str:
        told = peers.do("seeded", {"library": library, "reports": REPORTS, "seed": 1})
        return _yes(any(told.values()))

    def guessed() -> str:
        job = {"library": library, "kind": kind, "devices": DEVICES, "calls": CALLS}
        return _guesses((peers.do("averaging", job)["share"], DEVICES))

    def cleared() -> str:
        if library not in RAPPOR_OF:
            return "no RAPPOR client"
        told = peers.do("pure_rappor", RAPPOR | {"devices": 5_000, "watched": 0})
        return _share(told["cleared"] / told["true_bits"])

    guess = _or_why(peers, library, guessed)
    by_kind = ["", guess] if kind == "flag" else [guess, ""]
    return [_or_why(peers, library, seeded), *by_kind, _or_why(peers, library, cleared)]


def _or_why(peers: Peers, library: str, ask: Callable[[], str]) -> str:
    try:
        return ask()
    except PeerError as error:
        return f"failed: {peers.failed.get(library, error)}"


def _seeded(registry: Registry) -> bool:
    """Whether a seed has any say in what new devices report."""
    drawn = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)
        drawn.append(
            [
                privatize(registry[name], value, Secret.generate()).bits
                for name, value in VALUES.items()
                for _ in range(REPORTS // len(VALUES))
            ]
        )
    return drawn[0] == drawn[1]


def _guessed(metric: Metric, values: Sequence[str | bool], devices: int) -> tuple[float, int]:
    """Of which share of devices the value is guessed: the bit that came most often; of a flag, if it mostly did."""
    hits = 0
    for device in range(devices):
        value, secret = device % len(values), Secret.generate()
        tally = Tally.of(metric, (privatize(metric, values[value], secret) for _ in range(CALLS)))
        ones = tally.counts.sum(axis=0)
        hits += int(ones[0] > CALLS / 2 if len(ones) == 1 else ones.argmax()) == value
    return hits / devices, devices


def _cleared(registry: Registry) -> float:
    metric = registry["string"]
    true_bits = cleared = 0
    for number in range(5_000):
        report = privatize(metric, f"v{number % 100}", Secret.generate())
        encoded = metric.encode(f"v{number % 100}", report.cohort, 0)
        true_bits += encoded.bit_count()
        cleared += (encoded & ~int.from_bytes(report.bits, "little")).bit_count()
    return cleared / true_bits


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _guesses(found: tuple[float, int]) -> str:
    """A share with half the width of Wilson's interval, which is not 0 where all or none were guessed."""
    share, devices = found
    spread = share * (1 - share) / devices + (Z / devices / 2) ** 2
    return f"{_share(share)} ± {100 * Z * sqrt(spread) / (1 + Z**2 / devices):.1f}, {devices:,} devices"


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"
