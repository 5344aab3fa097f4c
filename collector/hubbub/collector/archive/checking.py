"""Holding an archive against its store: every file, and every count.

At any moment the written files and the parts that wait are what the tally was counted from. All that the store says is
read as it is at one moment; a file that is written never changes, so a collector may be running meanwhile.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import select

from hubbub.collector.archive.content import digest_of, head_of, path_of, unpack
from hubbub.collector.archive.file import read_groups, read_head, write_file
from hubbub.collector.archive.keeping import write_sealed
from hubbub.collector.count import count_bits
from hubbub.collector.errors import ArchiveError
from hubbub.collector.store.copying import reading
from hubbub.collector.store.files import drop_parts, files, left_over, parts_of, row_bytes, sealed, shape_of
from hubbub.collector.store.migrations import check_version
from hubbub.collector.store.schema import tally
from hubbub.collector.store.shard import COUNTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from hubbub.collector.archive.file import Reports
    from hubbub.collector.archive.place import Place
    from hubbub.collector.store import Store
    from hubbub.collector.store.files import Kept, Shape

LESS = "the archive was turned on later, tallies were added otherwise, or a file is gone"
MORE = "the store was restored from an older backup, or has lost tallies"
OTHER = "the store or a file was changed"


class _Counted:
    """Reports and ones of each cohort, from wherever they come."""

    def __init__(self, shape: Shape) -> None:
        self.n: NDArray[np.int64] = np.zeros(shape.cohorts, np.int64)
        self.ones: NDArray[np.int64] = np.zeros((shape.cohorts, shape.bits), np.int64)

    def add(self, reports: Reports) -> None:
        cohorts = reports.cohorts.astype(np.int64)
        counts = count_bits(reports.packed, self.ones.shape[1], cohorts)
        self.ones[: len(counts)] += counts
        self.n[: len(counts)] += np.bincount(cohorts)


def any_written(store: Store) -> bool:
    """Whether there has to be something at the archive's place."""
    with reading(store.engine) as connection:
        check_version(connection)
        return bool(files(connection, "written"))


def repair(store: Store, place: Place) -> Iterator[str]:
    """Write what is sealed, and delete what was left half done; tell each thing that was done."""
    for kept in sealed(store.engine):
        if write_sealed(store.engine, place, kept):
            yield f"{place.path(path_of(kept))}: written"
    yield from _rewrite(store, place)
    for name in left_over(store.engine):
        drop_parts(store.engine, name)
        yield f"file {name}: its parts were not needed any more, and are deleted"
    for leftover in place.unfinished():
        place.delete(leftover.name)
        yield f"{place.path(leftover.name)}: was never finished, and is deleted"


def find_archive_faults(store: Store, place: Place) -> Iterator[str]:
    """Tell everything in which an archive differs from what the store says; nothing, if all is well."""
    with reading(store.engine) as connection:
        check_version(connection)
        kept = files(connection, "open", "sealed", "written")
        yield from _strangers(place, kept)
        yield from _compare(connection, place, kept)


def _strangers(place: Place, kept: list[Kept]) -> Iterator[str]:
    """Name files that nobody has written, as far as the store knows."""
    states = {path_of(each): each.state for each in kept}
    for listed in place.files():
        state = states.get(listed.name)
        if state is None:
            yield f"{place.path(listed.name)}: this store does not know it; it is not counted"
        elif state == "open":
            yield f"{place.path(listed.name)}: is of a later time than this store, and will be replaced"
    for leftover in place.unfinished():
        yield f"{place.path(leftover.name)}: was never finished, or is being written; --repair deletes it"


def _compare(connection: Connection, place: Place, kept: list[Kept]) -> Iterator[str]:
    """Hold files and parts against the tally, one metric, version and period at a time."""
    by_key = {key: list(group) for key, group in groupby(kept, lambda each: each[1:4])}
    columns = (tally.c.metric, tally.c.version, tally.c.period)
    counted = {tuple(row) for row in connection.execute(select(*columns).distinct())}
    for key in sorted(by_key.keys() | counted):
        some = by_key.get(key, [])
        label = f"{key[0]} version {key[1]}, {key[2]}"
        shape = shape_of(connection, key[0], key[1])
        if shape is None:
            yield f"{label}: its metric is not known"
            continue
        archived = _Counted(shape)
        for each in some:
            yield from _file(connection, place, each, shape, archived)
        yield from _differences(label, archived, _tally(connection, key, shape))


def _file(connection: Connection, place: Place, kept: Kept, shape: Shape, archived: _Counted) -> Iterator[str]:
    """Count a file, or what waits for it, and name what is wrong with it."""
    path = place.path(path_of(kept))
    if kept.state != "written":
        if kept.state == "sealed":
            yield f"{path}: is sealed, and not written yet; --repair writes it"
        for part in parts_of(connection, kept.name):
            if len(part) % row_bytes(shape.bits):
                yield f"{path}: a part of it that waits in the store is damaged"
            else:
                archived.add(unpack(part, (shape.bits + 7) // 8))
        return
    fault = _fault(place, kept, shape, archived)
    if fault is not None:
        whole = _from_parts(connection, kept, shape) is not None
        yield f"{fault}; " + ("--repair writes it again" if whole else "it cannot be made again from this store")


def _fault(place: Place, kept: Kept, shape: Shape, archived: _Counted | None) -> str | None:
    """Read a written file; count it, or tell what is wrong with it."""
    name = path_of(kept)
    found = _Counted(shape)
    try:
        head = read_head(place, name)
        if head != head_of(kept, shape, kept.reports):
            return f"{place.path(name)}: is not the file that was written: its head is another"
        digest = digest_of(_counting(read_groups(place, name), found))
    except ArchiveError as error:
        return str(error)
    if digest != kept.digest:
        return f"{place.path(name)}: is not the file that was written: its content is another"
    if archived is not None:
        archived.n += found.n
        archived.ones += found.ones
    return None


def _counting(groups: Iterator[Reports], into: _Counted) -> Iterator[Reports]:
    for group in groups:
        into.add(group)
        yield group


def _tally(connection: Connection, key: tuple[object, ...], shape: Shape) -> _Counted:
    query = select(tally.c.cohort, tally.c.n, tally.c.counts).where(
        tally.c.metric == key[0], tally.c.version == key[1], tally.c.period == key[2]
    )
    total = _Counted(shape)
    for cohort, n, counts in connection.execute(query):
        if cohort < shape.cohorts and len(counts) == shape.bits * COUNTS.itemsize:  # else `find_faults` tells of it
            total.n[cohort] += n
            total.ones[cohort] += np.frombuffer(counts, COUNTS)
    return total


def _differences(label: str, archived: _Counted, counted: _Counted) -> Iterator[str]:
    differ = (archived.n != counted.n) | (archived.ones != counted.ones).any(axis=1)
    for cohort in np.flatnonzero(differ).tolist():
        here, there = int(archived.n[cohort]), int(counted.n[cohort])
        bits = np.flatnonzero(archived.ones[cohort] != counted.ones[cohort])
        why = LESS if here < there else MORE if here > there else OTHER
        yield (
            f"{label}, cohort {cohort}: {here} reports in the archive, {there} in the tally; "
            f"{len(bits)} bits were set another number of times: {why}"
        )


def _from_parts(connection: Connection, kept: Kept, shape: Shape) -> Reports | None:
    """Put a written file together once more, if none of its parts is gone."""
    rows = b"".join(parts_of(connection, kept.name))
    if not rows or len(rows) != kept.reports * row_bytes(shape.bits):
        return None
    reports = unpack(rows, (shape.bits + 7) // 8)
    return reports if digest_of([reports]) == kept.digest else None


def _rewrite(store: Store, place: Place) -> Iterator[str]:
    """Write files again that are gone or damaged, while their parts are still there."""
    with reading(store.engine) as connection:
        waiting = set(left_over(store.engine))
        for kept in files(connection, "written"):
            shape = shape_of(connection, kept.metric, kept.version) if kept.name in waiting else None
            if shape is None or _fault(place, kept, shape, None) is None:
                continue
            reports = _from_parts(connection, kept, shape)
            if reports is not None:
                write_file(place, path_of(kept), head_of(kept, shape, kept.reports), *reports)
                yield f"{place.path(path_of(kept))}: written again"
