"""Letting go: ids of batches that can no longer be counted, and tallies older than the operator keeps."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select, tuple_, update

from hubbub.collector.store.backend import lock_horizon, reaching, writing
from hubbub.collector.store.files import drop_parts, files
from hubbub.collector.store.schema import batch, horizon, tally

if TYPE_CHECKING:
    from datetime import date

    from sqlalchemy import Engine

STEP = 500
"""Rows that are deleted in one transaction: reports wait for none of them for long."""


def purge_batches(engine: Engine, before: date, step: int = STEP) -> int:
    """Forget the ids of batches whose latest period ended before a day, and refuse such periods from now on.

    First the horizon moves, and only then ids go: whoever commits a batch later sees the horizon, whatever its own
    clock or its settings say, so that nothing is counted a second time. The horizon moves no further than the ids that
    are purged make necessary, so that a clock that is wrong by years does not close the store for years.
    """
    with writing(engine) as connection:
        lock_horizon(connection, to_move_it=True)
        latest = connection.scalar(select(func.max(batch.c.period)).where(batch.c.period < before))
        if latest is None:
            return 0
        moved = latest + timedelta(days=1)
        connection.execute(update(horizon).where(horizon.c.day < moved).values(day=moved))
    return _delete_ids(engine, moved, step)


def _delete_ids(engine: Engine, before: date, step: int) -> int:
    """Walk over all ids in their order: an index of days would cost every batch as much as the id itself."""
    purged, last = 0, b""
    while True:
        with writing(engine) as connection:
            rows = connection.execute(select(batch).where(batch.c.id > last).order_by(batch.c.id).limit(step)).all()
            old = [row.id for row in rows if row.period < before]
            if old:
                connection.execute(delete(batch).where(batch.c.id.in_(old)))
        purged += len(old)
        if len(rows) < step:
            return purged
        last = rows[-1].id


def purge_tallies(engine: Engine, before: date, step: int = STEP) -> int:
    """Delete tallies of periods that began before a day."""
    key = tuple_(*tally.primary_key)
    purged = 0
    while True:
        with writing(engine) as connection:
            keys = connection.execute(select(*tally.primary_key).where(tally.c.period < before).limit(step)).all()
            if keys:
                connection.execute(delete(tally).where(key.in_([tuple(each) for each in keys])))
        purged += len(keys)
        if len(keys) < step:
            return purged


def purge_parts(engine: Engine, before: date, step: int = STEP) -> None:
    """Delete what waits for an archive, of periods that began before a day: also where no archive is kept any more."""
    with reaching(), engine.connect() as connection:
        old = files(connection, "open", "sealed", "written", before=before)
    for kept in old:
        drop_parts(engine, kept.name, step)
