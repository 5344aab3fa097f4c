"""Reports that were sent more than once: how many of a period equal another one of their cohort, bit by bit."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.archive.file import read_groups
from hubbub.collector.progress import showing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date

    from hubbub.collector.archive.aggregate import File
    from hubbub.collector.archive.file import Reports
    from hubbub.collector.archive.place import Place
    from hubbub.collector.work import Workers

HELD_BYTES = 256 << 20
"""How much of a period a worker compares at once: of a larger one, each worker looks at a share of the reports."""


class Share(NamedTuple):
    """Those reports of a period that have a number, modulo the number of shares: equal ones have the same."""

    period: date
    names: list[str]
    number: int
    shares: int


def count_repeats(place: Place, workers: Workers, files: Iterable[File], label: str = "") -> dict[date, int]:
    """Count the reports of each period that repeat an earlier one."""
    periods: dict[date, list[File]] = defaultdict(list)
    for file in files:
        periods[file.head.period].append(file)
    todo = [share for period, some in periods.items() for share in _shares(period, some)]
    found = dict.fromkeys(periods, 0)
    with showing(len(todo), label) as advance:
        for share, repeats in zip(todo, workers.map(repeats_in, [place] * len(todo), todo), strict=True):
            found[share.period] += repeats
            advance()
    return found


def _shares(period: date, files: Sequence[File]) -> list[Share]:
    held = sum(file.head.reports * (file.head.width + 4) for file in files)
    shares = held // HELD_BYTES + 1
    return [Share(period, [file.name for file in files], number, shares) for number in range(shares)]


def repeats_in(place: Place, share: Share) -> int:
    """Count the reports of a share that repeat an earlier one; this is what every worker does."""
    kept = [_rows(reports, share.number, share.shares) for name in share.names for reports in read_groups(place, name)]
    rows = np.concatenate(kept)
    rows.sort(kind="stable")  # files are sorted, so this merges them
    return int(np.count_nonzero(rows[1:] == rows[:-1]))


def _rows(reports: Reports, number: int, shares: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bytes_]]:
    """Spell each report as one string of bytes: its cohort, then its bits."""
    cohorts, packed = reports
    if shares > 1:
        mine = (packed.sum(axis=1, dtype=np.int64) + cohorts) % shares == number
        cohorts, packed = cohorts[mine], packed[mine]
    rows = np.concatenate([cohorts.astype(">u4").view(np.uint8).reshape(-1, 4), packed], axis=1)
    return rows.view(f"S{rows.shape[1]}").ravel()
