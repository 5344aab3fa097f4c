"""Counting an archive again: the same function in this process, on all cores, or on a Dask cluster.

Whoever counts, the tally is the same: counts are integers, and they add.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from hubbub.collector.archive.file import groups_of, read_runs
from hubbub.collector.count import Counter
from hubbub.collector.errors import ArchiveError
from hubbub.collector.progress import showing
from hubbub.collector.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from numpy.typing import NDArray

    from hubbub.collector.archive.choice import Choice
    from hubbub.collector.archive.file import FileHead, Group
    from hubbub.collector.archive.place import Listed, Place
    from hubbub.collector.count import Engine
    from hubbub.collector.work import Workers

Key = TypeVar("Key")

POINT_REPORTS = 16_000_000
"""About how many reports a worker counts at a time, at most: a quarter of a second, and lost if the worker is."""

ALONE_REPORTS = 64_000_000
"""And this process, when it works alone: a second, until the progress bar moves. What is left to do at the end of a
point, for each cohort, is then done less often."""

LAST_REPORTS = 2_000_000
"""And at least: many times what a task costs, in Dask and at its end, and little to wait for."""

LOOKED_AT_HERE = 1000
"""Up to so many files of this machine, this process reads the heads itself: asking workers would take longer."""

LOOKED_AT = 8
"""Of how many files a worker reads the heads at a time."""

WORTHWHILE_BYTES = 256 << 20
"""A process takes a second to start, and counts so much in half of it."""


class File(NamedTuple):
    """A file of an archive, and the row groups that it can be read by."""

    name: str
    head: FileHead
    groups: list[Group]


class Piece(NamedTuple):
    """Neighbouring row groups of a file."""

    name: str
    head: FileHead
    numbers: list[int]


class How(NamedTuple):
    """What is to be counted, and by what."""

    by_period: bool = False
    """Whether periods are kept apart."""
    ones: bool = False
    """Whether reports are counted by their number of ones, too."""
    engine: Engine = "numpy"


class Counted(NamedTuple):
    """What was counted of some pieces."""

    n: dict[date, NDArray[np.int64]]
    """Reports of each period and cohort."""
    ones: dict[date, NDArray[np.int64]]
    """Reports of each period by their number of ones; of no period where nobody asked for that."""
    counts: dict[date | None, NDArray[np.int64]]
    """Ones of each cohort and bit, by period, or of all periods together under none."""


class Aggregate:
    """An archive, or what was asked for of it, counted."""

    def __init__(self, files: Sequence[File]) -> None:
        self.files = files
        self.head = files[0].head  # they agree in all that gives a report its meaning
        self.n: dict[date, NDArray[np.int64]] = {}
        """Reports of each period and cohort."""
        self.ones: dict[date, NDArray[np.int64]] = {}
        """Reports of each period by their number of ones."""
        self._counts: dict[date | None, NDArray[np.int64]] = {}

    def add(self, counted: Counted) -> None:
        """Add what was counted of some pieces."""
        _add(self.n, counted.n)
        _add(self.ones, counted.ones)
        _add(self._counts, counted.counts)

    @property
    def reports(self) -> dict[date, int]:
        """How many there are of each period."""
        return {period: int(n.sum()) for period, n in sorted(self.n.items())}

    def tally(self) -> Tally:
        """Sum over all periods."""
        n, counts = sum(self.n.values()), sum(self._counts.values())
        return self._tally(np.asarray(n), np.asarray(counts), min(self.n), max(self.n))

    def tallies(self) -> list[Tally]:
        """Give a tally for each period, where they were counted apart."""
        return [self._tally(self.n[day], counts, day, day) for day, counts in self._counts.items() if day is not None]

    def _tally(self, n: NDArray[np.int64], counts: NDArray[np.int64], start: date, end: date) -> Tally:
        return Tally(self.head.metric, self.head.version, n, counts, start, end)


def aggregate(
    place: Place,
    choice: Choice,
    workers: Workers,
    files: Sequence[Listed],
    *,
    by_period: bool = False,
    ones: bool = False,
    engine: Engine = "numpy",
    label: str = "",
) -> Aggregate:
    """Count those of the files that are chosen; `by_period` keeps the periods apart, which takes memory for each.

    The engine is that of `count_bits`, and has to be installed where the workers are.
    """
    chosen = _chosen(place, choice, workers, files)
    _check_alike(place, chosen)
    total = Aggregate(chosen)
    most = ALONE_REPORTS if workers.alone else POINT_REPORTS
    points = list(_points(chosen, workers.number, most))
    how = How(by_period, ones, engine)
    with showing(sum(file.head.reports for file in chosen), label) as advance:
        for counted in workers.map(count, [place] * len(points), points, [how] * len(points)):
            total.add(counted)
            advance(sum(int(n.sum()) for n in counted.n.values()))
    return total


def useful_workers(files: Sequence[Listed], wanted: int) -> int:
    """How many processes it is worth to start."""
    return max(min(wanted, sum(file.size for file in files) // WORTHWHILE_BYTES), 1)


def look_at(place: Place, names: Sequence[str]) -> list[File]:
    """Read the heads of some files."""
    return [File(name, *groups_of(place, name)) for name in names]


def count(place: Place, pieces: Sequence[Piece], how: How) -> Counted:
    """Count some pieces of files; this is what every worker does."""
    found = Counted({}, {}, {})
    for period, some in groupby(pieces, lambda piece: piece.head.period if how.by_period else None):
        _add(found.counts, {period: _count_together(place, list(some), how, found)})
    return found


def _count_together(place: Place, pieces: Sequence[Piece], how: How, found: Counted) -> NDArray[np.int64]:
    """Count the ones of pieces whose periods are not kept apart; of each period, what else was found is added."""
    first = pieces[0].head
    counter = Counter(first.bits, first.cohorts, engine=how.engine)
    for name, head, numbers in pieces:
        for (cohorts, packed), runs in read_runs(place, name, numbers):
            counter.add(packed, cohorts, runs)
            n = np.bincount(cohorts, minlength=head.cohorts) if runs is None else runs.by_cohort(head.cohorts)
            _add(found.n, {head.period: n})
            if how.ones:
                _add(found.ones, {head.period: count_ones(packed, head.bits)})
    return counter.counts()


def count_ones(packed: NDArray[np.uint8], bits: int) -> NDArray[np.int64]:
    """Count reports by their number of ones."""
    words = packed.view(np.uint64) if packed.shape[1] % 8 == 0 else packed
    return np.bincount(np.bitwise_count(words).sum(axis=1, dtype=np.int64), minlength=bits + 1)


def _add(totals: dict[Key, NDArray[np.int64]], more: dict[Key, NDArray[np.int64]]) -> None:
    for key, numbers in more.items():
        totals[key] = totals[key] + numbers if key in totals else numbers


def _chosen(place: Place, choice: Choice, workers: Workers, files: Sequence[Listed]) -> list[File]:
    names = [file.name for file in files]
    slices = [names[start : start + LOOKED_AT] for start in range(0, len(names), LOOKED_AT)]
    ask = map if place.local and len(names) <= LOOKED_AT_HERE else workers.map
    looked = [file for some in ask(look_at, [place] * len(slices), slices) for file in some]
    chosen = [file for file in looked if choice.holds(file.head)]
    if not chosen:
        raise ArchiveError(f"archive {place.path('')}: holds no reports of {choice}; allowed: an archive with some")
    return chosen


def _check_alike(place: Place, files: Sequence[File]) -> None:
    """Refuse files that cannot be added up to one tally."""
    kinds = {(file.head.metric, file.head.version): file for file in files}
    if len(kinds) > 1:
        told = ", ".join(
            f"{name} version {version} ({place.path(file.name)})" for (name, version), file in sorted(kinds.items())
        )
        raise ArchiveError(
            f"archive {place.path('')}: holds several: {told}; allowed: one metric and version, chosen by --metric and "
            "--version"
        )
    first = files[0]
    for name, head, _ in files:
        if (head.fingerprint, head.bits, head.cohorts) != (
            first.head.fingerprint,
            first.head.bits,
            first.head.cohorts,
        ):
            raise ArchiveError(
                f"{place.path(name)}: {head.metric} version {head.version} has another meaning than in "
                f"{place.path(first.name)}; allowed: one meaning for each version"
            )


def _points(files: Sequence[File], workers: int, most: int) -> Iterator[list[Piece]]:
    """Cut the files into points of work of at most so many reports: small files together, big ones by row groups.

    Each worker gets its share of what is left, so that there are few points, and all end at about the same time
    (Polychronopoulos and Kuck 1987: guided self-scheduling).
    """
    point: list[Piece] = []
    reports, left = 0, sum(file.head.reports for file in files)
    for name, head, groups in files:
        for group in groups:
            share = min(max(left // workers, LAST_REPORTS), most)
            if point and reports + group.reports > share:
                yield point
                left -= reports
                point, reports = [], 0
            if point and point[-1].name == name:
                point[-1].numbers.append(group.number)
            else:
                point.append(Piece(name, head, [group.number]))
            reports += group.reports
    if point:
        yield point
