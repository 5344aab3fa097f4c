"""The life of an archive's files in the store: open, sealed, written, and gone. Each step is one small transaction.

open --(enough in it, or enough time)--> sealed --(it is at its place)--> written --(its period is purged)--> gone

Anybody may take any step, also twice or at the same time: the content of a sealed file is the same whoever reads it.
Until a file is written its parts are what counts; afterwards they are rubbish, and deleted a few at a time, so that
reports wait for none of it for long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, func, select, update

from hubbub.collector.store.backend import reaching, writing
from hubbub.collector.store.copying import reading
from hubbub.collector.store.parts import COHORT_BYTES
from hubbub.collector.store.schema import archive_file, archive_part, metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

    from sqlalchemy import Connection, Engine

    from hubbub.collector.store.parts import State

STEP = 500
"""Parts that are read, or deleted, at once."""


class Kept(NamedTuple):
    """A file of the archive, as the store knows it."""

    name: str
    metric: str
    version: int
    period: date
    state: State
    reports: int
    """How many are in it; 0 until it is written."""
    digest: bytes | None


class Shape(NamedTuple):
    """What the store knows of a version of a metric."""

    bits: int
    cohorts: int
    fingerprint: str


def files(connection: Connection, *states: State, before: date | None = None) -> list[Kept]:
    """List files in some states, in order; with `before`, only those of periods that began before a day."""
    query = select(archive_file).where(archive_file.c.state.in_(states))
    if before is not None:
        query = query.where(archive_file.c.period < before)
    order = (archive_file.c.metric, archive_file.c.version, archive_file.c.period, archive_file.c.name)
    return [Kept(*row) for row in connection.execute(query.order_by(*order))]


def shape_of(connection: Connection, name: str, version: int) -> Shape | None:
    """Look up what a version of a metric means."""
    query = select(metric.c.bits, metric.c.cohorts, metric.c.fingerprint)
    row = connection.execute(query.where(metric.c.name == name, metric.c.version == version)).one_or_none()
    return None if row is None else Shape(*row)


def parts_of(connection: Connection, name: str) -> Iterator[bytes]:
    """Read the parts of a file, in no order that means anything."""
    query = select(archive_part.c.reports).where(archive_part.c.file == name)
    yield from map(bytes, connection.scalars(query.execution_options(yield_per=STEP)))


def row_bytes(bits: int) -> int:
    """How many bytes a report takes in a part."""
    return COHORT_BYTES + (bits + 7) // 8


def seal(engine: Engine, name: str) -> None:
    """Fix the content of a file: all who add to it have committed, and whoever comes later opens another."""
    with writing(engine) as connection:
        connection.execute(
            update(archive_file)
            .where(archive_file.c.name == name, archive_file.c.state == "open")
            .values(state="sealed")
        )


def seal_due(engine: Engine, least: int, is_over: Callable[[Kept], bool]) -> None:
    """Seal files with at least so many reports, and all whose period is over."""
    with reaching(), engine.connect() as connection:
        found = files(connection, "open")
        query = select(archive_part.c.file, func.sum(archive_part.c.n)).group_by(archive_part.c.file)
        held = {row[0]: int(row[1]) for row in connection.execute(query)}
    for file in found:
        if held.get(file.name, 0) >= least or is_over(file):
            seal(engine, file.name)


def sealed(engine: Engine) -> list[Kept]:
    """List files that are to be written."""
    with reaching(), engine.connect() as connection:
        return files(connection, "sealed")


def content(engine: Engine, kept: Kept) -> tuple[Shape, bytes] | None:
    """Read what a sealed file is made of, of one moment; None if somebody else has written it meanwhile."""
    with reading(engine) as connection:
        query = select(archive_file.c.state).where(archive_file.c.name == kept.name)
        shape = shape_of(connection, kept.metric, kept.version)
        if shape is None or connection.scalar(query) != "sealed":
            return None
        return shape, b"".join(parts_of(connection, kept.name))


def mark_written(engine: Engine, name: str, reports: int, digest: bytes) -> bool:
    """Note that a file is at its place; False if the store does not know the file any more."""
    with writing(engine) as connection:
        connection.execute(
            update(archive_file)
            .where(archive_file.c.name == name, archive_file.c.state == "sealed")
            .values(state="written", reports=reports, digest=digest)
        )
        return connection.scalar(select(archive_file.c.state).where(archive_file.c.name == name)) is not None


def drop_parts(engine: Engine, name: str, step: int = STEP) -> None:
    """Delete the parts of a file that does not need them any more."""
    query = select(archive_part.c.part).where(archive_part.c.file == name).limit(step)
    while True:
        with writing(engine) as connection:
            found = connection.scalars(query).all()
            if found:
                gone = archive_part.c.part.in_(found)
                connection.execute(delete(archive_part).where(archive_part.c.file == name, gone))
        if len(found) < step:
            return


def left_over(engine: Engine) -> list[str]:
    """Name files that are written, or gone, and still have parts: whoever was to delete them was ended."""
    needed = select(archive_file.c.name).where(archive_file.c.state != "written")
    with reaching(), engine.connect() as connection:
        return list(
            connection.scalars(select(archive_part.c.file).where(archive_part.c.file.not_in(needed)).distinct())
        )


def waiting(engine: Engine) -> int:
    """Count the parts that wait for their file."""
    with reaching(), engine.connect() as connection:
        return connection.scalars(select(func.count()).select_from(archive_part)).one()


def forget(engine: Engine, kept: Kept) -> bool:
    """Strike a file off, and then its parts; not if it has gone a step further since it was looked at."""
    with writing(engine) as connection:
        same = (archive_file.c.name == kept.name, archive_file.c.state == kept.state)
        if not connection.execute(delete(archive_file).where(*same)).rowcount:
            return False
    drop_parts(engine, kept.name)
    return True
