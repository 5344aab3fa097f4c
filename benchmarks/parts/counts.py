"""Counting beside the peers, unpackbits and what the machine can read, and how it grows: a part of `make bench`.

`python -m benchmarks counting` measures more of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.counting import (
    ALONE,
    BITS,
    COHORTS,
    LIBRARIES,
    READING,
    REPORTS,
    UNPACKED,
    WANTED,
    WANTED_BESIDE_PEERS,
    fastest,
    unpacked,
)
from benchmarks.findings import Findings, Row, Table
from benchmarks.peer_environment import PeerError, Peers, label
from hubbub.collector.count import ENGINES, count_bits

if TYPE_CHECKING:
    from collections.abc import Callable

GROWTH = tuple(10**power for power in range(3, 8) if 10**power <= REPORTS)
PEER_REPORTS, PEER_ROUNDS = 10_000, 5
MIXED, SORTED = "mixed cohorts", "sorted cohorts"
READ = "read"
COHORTS_OF = {"pure-ldp": f"{COHORTS} cohorts"}
"""What a peer counts by; those not here add all reports into one sum."""


def measure() -> Findings:
    """Ours takes turns with reading and unpacking; the peers are measured right after."""
    random = np.random.default_rng(1)
    packed = random.integers(0, 256, (REPORTS, BITS // 8), dtype=np.uint8)
    mixed = random.integers(0, COHORTS, REPORTS, dtype=np.uint32)
    in_order = np.sort(mixed)
    words = packed.reshape(-1).view(np.uint64)
    contestants: dict[str, Callable[[], object]] = {
        f"{READ} {name}": partial(way, words) for name, way in READING.items()
    }
    for engine in ENGINES:
        for kind, cohorts in ((ALONE, None), (SORTED, in_order), (MIXED, mixed)):
            contestants[f"{engine}, {kind}"] = partial(count_bits, packed, BITS, cohorts, engine=engine)
    contestants["unpackbits"] = partial(unpacked, packed[:UNPACKED], BITS)
    rates = {
        name: (UNPACKED if name == "unpackbits" else REPORTS) / seconds
        for name, seconds in fastest(contestants).items()
    }
    reading = max(rate for name, rate in rates.items() if name.startswith(READ))
    return Findings(_rows(rates, reading) + _peers(rates), [_growth(packed, in_order)], {"count_rate": rates[_ours()]})


def _ours(kind: str = ALONE) -> str:
    return f"{ENGINES[0]}, {kind}"


def _rows(rates: dict[str, float], reading: float) -> list[Row]:
    what = f"counting, {BITS} bits, reports/s: %s"
    rows = []
    for engine in ENGINES:
        alone = f"{engine}, {ALONE}"
        beside = f"reading the same bytes once, {reading * BITS / 8 / 1e9:.1f} GB/s"
        rows.append(Row(what % alone, "counting", beside, rates[alone], reading, wanted=WANTED[engine, ALONE]))
        for kind in (SORTED, MIXED):
            name = f"{engine}, {COHORTS} {kind}"
            rate = rates[f"{engine}, {kind}"]
            rows.append(Row(what % name, "counting", alone, rate, rates[alone], wanted=WANTED.get((engine, kind))))
    rows.append(Row(what % _ours(), "counting", "numpy's unpackbits and sum", rates[_ours()], rates["unpackbits"]))
    return rows


def _peers(rates: dict[str, float]) -> list[Row]:
    """Without cohorts, and with mixed ones, as reports arrive; of the peers only pure-ldp counts by cohort."""
    peers = Peers.find()
    theirs: dict[str, float] = {}
    faults: dict[str, str] = {}
    for library in LIBRARIES:
        job = {"reports": PEER_REPORTS, "rounds": PEER_ROUNDS, "library": library}
        try:
            theirs[library] = float(peers.do("counting_rates", job)["rate"])
        except PeerError as error:
            faults[library] = f"failed: {peers.failed.get(library, error)}"
    return [
        Row(
            what=f"counting, {BITS} bits, reports/s: {ENGINES[0]}, {words}",
            by="counting",
            beside=f"{label(library)}, {COHORTS_OF.get(library, ALONE)}",
            ours=rates[_ours(kind)],
            theirs=theirs.get(library),
            wanted=float(WANTED_BESIDE_PEERS),
            fault=faults.get(library, ""),
        )
        for kind, words in ((ALONE, ALONE), (MIXED, f"{COHORTS} {MIXED}"))
        for library in LIBRARIES
    ]


def _growth(
    packed: np.ndarray[tuple[int, int], np.dtype[np.uint8]], cohorts: np.ndarray[tuple[int], np.dtype[np.uint32]]
) -> Table:
    """Reports of sorted cohorts, as archive files have them."""
    rows = []
    for size in GROWTH:
        part = np.sort(np.random.default_rng(size).choice(cohorts, size))
        [seconds] = fastest({"": partial(count_bits, packed[:size], BITS, part)}, rounds=5).values()
        rows.append([f"{size:,}", f"{seconds:.2g}", f"{1e9 * seconds / size:,.1f}"])
    title = f"Reports counted, {BITS} bits, {COHORTS} sorted cohorts, numpy:"
    return Table("growth", title, ["reports", "CPU s", "ns a report"], rows)
