"""Keeping the strings that an analyst asks about, for each metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from hubbub.collector.store.backend import reaching, writing
from hubbub.collector.store.schema import candidate_chunk, candidate_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Engine

Revision = tuple[int, int]
"""The number of a list, and how many strings are on it."""


def put_chunks(engine: Engine, metric: str, chunks: Iterable[bytes], strings: int) -> int:
    """Replace the list of a metric by another one, in one transaction, and tell its revision."""
    with writing(engine) as connection:
        # Raised first: the row is then locked, and two who replace the list take turns.
        rows = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(candidate_list)
        raised = rows.values(metric=metric, revision=1, strings=strings).on_conflict_do_update(
            index_elements=[candidate_list.c.metric],
            set_={"revision": candidate_list.c.revision + 1, "strings": strings},
        )
        revision: int = connection.scalars(raised.returning(candidate_list.c.revision)).one()
        connection.execute(delete(candidate_chunk).where(candidate_chunk.c.metric == metric))
        for position, chunk in enumerate(chunks):
            connection.execute(insert(candidate_chunk).values(metric=metric, position=position, strings=chunk))
    return revision


def get_revision(engine: Engine, metric: str) -> Revision | None:
    """Tell revision and length of the list of a metric; None if it has none, or has none any more."""
    query = select(candidate_list.c.revision, candidate_list.c.strings).where(
        candidate_list.c.metric == metric, candidate_list.c.strings > 0
    )
    with reaching(), engine.connect() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else (row.revision, row.strings)


def get_chunks(engine: Engine, metric: str) -> tuple[Revision, list[bytes]] | None:
    """Read the whole list of a metric, still compressed."""
    query = (
        select(candidate_list.c.revision, candidate_list.c.strings, candidate_chunk.c.strings)
        .join_from(candidate_list, candidate_chunk, candidate_list.c.metric == candidate_chunk.c.metric)
        .where(candidate_list.c.metric == metric)
        .order_by(candidate_chunk.c.position)
    )
    with reaching(), engine.connect() as connection:
        rows = connection.execute(query).all()  # one query, so that revision and strings are of one moment
    return ((rows[0][0], rows[0][1]), [bytes(row[2]) for row in rows]) if rows else None
