"""Counting reports beside reading them, unpacking them, and the peers: `python -m benchmarks counting`.

All of ours takes turns in one run, in processor time on one core; the best round of each counts, as the one least
disturbed. The peers are measured in between, in an environment of their own. HUBBUB_BENCH_QUICK=1 takes fewer reports.
"""

from __future__ import annotations

import operator
import os
import time
from functools import partial
from typing import TYPE_CHECKING

import numba
import numpy as np
from bitarray import bitarray

from benchmarks import writing
from benchmarks.peer_environment import PeerError, Peers
from hubbub.collector.count import ENGINES, Counter, Runs, count_bits, find_runs
from hubbub.collector.count.slabs import SLAB_BYTES as LONG_SLAB_BYTES
from hubbub.collector.count.sums import SLAB_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from hubbub.collector.count import Engine

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
PAGE = "docs/decisions/counting.md"
BITS, COHORTS = 128, 64
REPORTS = 2_000_000 if QUICK else 16_000_000
FILE = 1_000_000
"""Reports of a file of the archive."""
UNPACKED = 200_000
"""Unpacking takes eight bytes for each, and its rate does not depend on their number."""
ROUNDS = 5 if QUICK else 12
WIDTHS = (1, 8, 32, 100, 128, 1024, 4096)
FEW = ((50, 10), (200, 64), (1000, 64), (1000, 400), (3000, 400), (10_000, 64))
"""Reports of one commit of the collector, and the cohorts and periods that they are of."""
SLABS, CALLS = (128, 1 << 10, SLAB_BYTES, LONG_SLAB_BYTES), 1000
"""Bytes that one operation of an adder works on, and how often it is done."""
LIBRARIES = ("pure-ldp", "multi-freq-ldpy", "opendp")

ALONE, FILES = "without cohorts", "files,"
"""Files are counted one after the other, as those of an archive are."""

WANTED = {
    ("numpy", ALONE): 0.15,
    ("numba", ALONE): 0.30,
    ("numpy", "mixed cohorts"): 1 / 8,
    ("numba", "mixed cohorts"): 1 / 3,
}
"""Of the rate of reading; of mixed cohorts, of the rate without cohorts."""
WANTED_BESIDE_PEERS = 20

READING = {"sum": np.add.reduce, "largest": np.maximum.reduce, "or of all": np.bitwise_or.reduce}
"""Ways to read every word once. The fastest is taken for what the machine can read with one core."""


def main() -> None:
    """Print the tables, and write them where that was asked for."""
    write = writing.wanted()
    tables = {"counting": many(), "counting-widths": widths(), "counting-few": few(), "counting-calls": calls()}
    for name, text in tables.items():
        print(f"\n{text}")
        if write:
            writing.write_section(PAGE, name, text)


def fastest(contestants: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Processor seconds of each contestant, taking turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for call in contestants.values():
        call()
    for _ in range(rounds):
        for name, call in contestants.items():
            begin = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - begin)
    return best


def unpacked(packed: NDArray[np.uint8], bits: int, cohorts: NDArray[np.integer] | None = None) -> NDArray[np.int64]:
    """Count with a byte for each bit: what hubbub did before."""
    ones = np.unpackbits(packed, axis=1, count=bits, bitorder="little")
    if cohorts is None:
        return np.asarray(np.add.reduce(ones, axis=0, dtype=np.int64))
    counts = np.zeros((int(cohorts.max()) + 1, bits), np.int64)
    order = np.argsort(cohorts, kind="stable")
    present, starts = np.unique(cohorts[order], return_index=True)
    counts[present] = np.add.reduceat(ones[order], starts, axis=0, dtype=np.int64)
    return counts


def many() -> str:
    """Millions of reports of 128 bits."""
    random = np.random.default_rng(1)
    packed = random.integers(0, 256, (REPORTS, BITS // 8), dtype=np.uint8)
    mixed = random.integers(0, COHORTS, REPORTS, dtype=np.uint32)
    in_order = np.sort(mixed)
    words = packed.reshape(-1).view(np.uint64)
    files = [(packed[at : at + FILE], np.sort(mixed[at : at + FILE])) for at in range(0, REPORTS, FILE)]

    def by_file(engine: Engine, *, alone: bool) -> None:
        counter = Counter(BITS, 1 if alone else COHORTS, engine=engine)
        for some, theirs in files:
            counter.add(some, theirs, Runs.one(len(some)) if alone else find_runs(theirs))
        counter.counts()

    contestants: dict[str, Callable[[], object]] = {name: partial(read, words) for name, read in READING.items()}
    for engine in ENGINES:
        contestants[f"{engine}, without cohorts"] = partial(count_bits, packed, BITS, engine=engine)
        contestants[f"{engine}, sorted cohorts"] = partial(count_bits, packed, BITS, in_order, engine=engine)
        contestants[f"{engine}, {FILES} {ALONE}"] = partial(by_file, engine, alone=True)
        contestants[f"{engine}, {FILES} sorted cohorts"] = partial(by_file, engine, alone=False)
        contestants[f"{engine}, mixed cohorts"] = partial(count_bits, packed, BITS, mixed, engine=engine)
    contestants["unpackbits, without cohorts"] = partial(unpacked, packed[:UNPACKED], BITS)
    contestants["unpackbits, mixed cohorts"] = partial(unpacked, packed[:UNPACKED], BITS, mixed[:UNPACKED])
    rates = {
        name: (UNPACKED if name.startswith("unpackbits") else REPORTS) / seconds
        for name, seconds in fastest(contestants).items()
    }
    way = max(READING, key=rates.__getitem__)
    reading, peers = rates[way], _peers()
    rows = [[f"reading ({way})", *_cells(reading, reading), "", ""]]
    for name, rate in rates.items():
        if name not in READING:
            way_of, what = name.split(", ", 1)
            alone = rates[f"{way_of}, {FILES} {ALONE}" if what.startswith(FILES) else f"{way_of}, {ALONE}"]
            rows.append([name, *_cells(rate, reading), f"{rate / alone:.2f}", _wanted(way_of, what)])
    rows += [[name, *_cells(rate, reading), "", ""] if rate else [name, "", "", "", "", ""] for name, rate in peers]
    best = max((rate for _, rate in peers if rate), default=0.0)
    beside = (
        f"\n\nWithout cohorts, numpy counts {rates['numpy, without cohorts'] / best:,.0f} times as fast as the best "
        f"peer, with mixed cohorts\n{rates['numpy, mixed cohorts'] / best:,.0f} times; wanted: {WANTED_BESIDE_PEERS}."
        if best
        else ""
    )
    return (
        f"{REPORTS:,} reports of {BITS} bits, {COHORTS} cohorts, numpy {np.__version__}, numba {numba.__version__}. "
        f"Files have\n{FILE:,} reports and are counted one after the other, as in an archive, beside the same files "
        "without cohorts.\n\n"
        + writing.table(["", "million reports/s", "GB/s", "of reading", "of without cohorts", "wanted at least"], rows)
        + beside
    )


def _cells(rate: float, reading: float) -> list[str]:
    return [f"{rate / 1e6:,.2f}", f"{rate * BITS / 8 / 1e9:.2f}", f"{100 * rate / reading:.2f} %"]


def _wanted(way: str, what: str) -> str:
    share = WANTED.get((way, what))
    if share is None:
        return ""
    return f"{100 * share:g} % of reading" if what == ALONE else f"{share:.3f} of without"


def _peers() -> list[tuple[str, float]]:
    """Reports a second of each peer, 0 with the reason where there is none."""
    try:
        peers = Peers.find()
    except PeerError as error:
        return [(f"peers: not measured, they could not be installed: {error}", 0.0)]
    found = []
    for library in LIBRARIES:
        try:
            told = peers.do("counting_rates", {"library": library, "reports": 10_000, "rounds": 5})
            found.append((library, float(told["rate"])))
        except PeerError as error:
            found.append((f"{library}: failed, {error}", 0.0))
    return found


def widths() -> str:
    """How the rate grows with the size of a report."""
    rows = []
    random = np.random.default_rng(2)
    for bits in WIDTHS:
        packed = random.integers(0, 256, ((REPORTS * 2) // ((bits + 7) // 8 + 7), (bits + 7) // 8), dtype=np.uint8)
        mixed = random.integers(0, COHORTS, len(packed), dtype=np.uint32)
        best = fastest(
            {
                f"{engine} {kind}": partial(count_bits, packed, bits, theirs, engine=engine)
                for engine in ENGINES
                for kind, theirs in (("alone", None), ("mixed", mixed))
            },
            rounds=3,
        )
        rows.append([str(bits), *(f"{len(packed) / seconds / 1e6:,.1f}" for seconds in best.values())])
    header = ["bits", *(f"{engine}{mixed}" for engine in ENGINES for mixed in ("", f", {COHORTS} mixed cohorts"))]
    return "Million reports a second, by the bits of a report:\n\n" + writing.table(header, rows)


def few() -> str:
    """The sizes of one commit, beside what hubbub did before."""
    rows = []
    random = np.random.default_rng(3)
    for number, groups in FEW:
        packed = random.integers(0, 256, (number, BITS // 8), dtype=np.uint8)
        cohorts = random.integers(0, groups, number)
        ways: dict[str, Callable[[], object]] = {
            "now": partial(count_bits, packed, BITS, cohorts),
            "before": partial(unpacked, packed, BITS, cohorts),
        }
        best = fastest(ways, rounds=200)
        shown = [f"{best[name] * 1e6:,.0f}" for name in ("before", "now")]
        rows.append([f"{number:,}", str(groups), *shown, f"{best['now'] / best['before']:.2f}"])
    return "The reports of one commit, in microseconds:\n\n" + writing.table(
        ["reports", "cohorts and periods", "unpackbits, as before", "now", "now / before"], rows
    )


def calls() -> str:
    """One operation of an adder, in place, by the bytes of its operands."""
    rows = []
    for size in SLABS:
        first, second = np.zeros(size, np.uint8), np.ones(size, np.uint8)
        mine, other = bitarray(buffer=first.data), bitarray(buffer=second.data)
        ways: dict[str, Callable[[], object]] = {
            "numpy": partial(_repeat, partial(np.bitwise_xor, first, second, first)),
            "bitarray": partial(_repeat, partial(operator.ixor, mine, other)),
        }
        best = fastest(ways, rounds=20)
        rows.append([f"{size:,}", *(f"{1e6 * seconds / CALLS:.2f}" for seconds in best.values())])
    return "One operation, in microseconds:\n\n" + writing.table(["bytes", "numpy", "bitarray"], rows)


def _repeat(call: Callable[[], object]) -> None:
    for _ in range(CALLS):
        call()
