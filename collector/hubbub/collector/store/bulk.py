"""Storing many rows by one statement each: ids of batches, tallies of a shard, and parts of an archive.

Row by row, the driver would let go of the interpreter's lock and ask for it again each time, and wait for it behind
the requests that are being read meanwhile; and SQLAlchemy's own handling of a row takes longer than storing it. So the
rows travel together: as one JSON array, and beside it all their bytes in a row.
"""

from __future__ import annotations

import os
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from hubbub.collector.store.backend import execute_plainly

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from sqlalchemy import Connection

IdRow = tuple[bytes, "date"]
"""The id of a batch, and the day until which it has to be remembered."""

TallyRow = tuple[str, int, "date", int, int, bytes]
"""Metric, version, period, cohort, number of reports, counts."""

PartRow = tuple[str, int, bytes]
"""File, number of reports, reports."""

PART_BYTES = 8
"""What a part is called: random, so that it tells nothing of the order in which parts came."""

_TALLY = """
    INSERT INTO tally (metric, version, period, cohort, n, counts, shard) {rows}
    ON CONFLICT (metric, version, period, cohort, shard) DO UPDATE SET n = excluded.n, counts = excluded.counts
"""

# WHERE true: without it SQLite takes ON CONFLICT for the condition of a join.
_PUT_IDS = {
    "sqlite": """
        INSERT INTO batch (id, period)
        SELECT substr(?, 1 + 16 * each.key, 16), each.value FROM json_each(?) AS each WHERE true
        ON CONFLICT DO NOTHING
    """,
    "postgresql": """
        INSERT INTO batch (id, period)
        SELECT substring(%b::bytea FROM 16 * place::integer - 15 FOR 16), day::date
        FROM json_array_elements_text(%s::json) WITH ORDINALITY AS each (day, place)
        ON CONFLICT DO NOTHING
    """,
}
_PUT_TALLIES = {
    "sqlite": _TALLY.format(
        rows="""
            SELECT
                json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
                json_extract(value, '$[3]'), json_extract(value, '$[4]'),
                substr(?, json_extract(value, '$[5]'), json_extract(value, '$[6]')), ?
            FROM json_each(?) WHERE true
        """
    ),
    "postgresql": _TALLY.format(
        rows="""
            SELECT
                value->>0, (value->>1)::integer, (value->>2)::date, (value->>3)::integer, (value->>4)::bigint,
                substring(%b::bytea FROM (value->>5)::integer FOR (value->>6)::integer), %s
            FROM json_array_elements(%s::json)
        """
    ),
}
_PUT_PARTS = {
    "sqlite": """
        INSERT INTO archive_part (file, part, n, reports)
        SELECT
            json_extract(value, '$[0]'), substr(?, 1 + 8 * key, 8), json_extract(value, '$[1]'),
            substr(?, json_extract(value, '$[2]'), json_extract(value, '$[3]'))
        FROM json_each(?)
    """,
    "postgresql": """
        INSERT INTO archive_part (file, part, n, reports)
        SELECT
            value->>0, substring(%b::bytea FROM 8 * place::integer - 7 FOR 8), (value->>1)::integer,
            substring(%b::bytea FROM (value->>2)::integer FOR (value->>3)::integer)
        FROM json_array_elements(%s::json) WITH ORDINALITY AS each (value, place)
    """,
}


def put_ids(connection: Connection, rows: Sequence[IdRow]) -> int:
    """Store ids of batches, and tell how many of them were not there before."""
    ids = b"".join([identity for identity, _ in rows])
    days = msgspec.json.encode([day for _, day in rows]).decode()
    return int(execute_plainly(connection, _PUT_IDS[connection.dialect.name], (ids, days)).rowcount)


def put_tallies(connection: Connection, shard: int, rows: Sequence[TallyRow]) -> None:
    """Write rows of a shard, in place of those that are there."""
    starts = accumulate((len(row[-1]) for row in rows), initial=1)
    told = [(*row[:-1], start, len(row[-1])) for row, start in zip(rows, starts, strict=False)]
    counts = b"".join([row[-1] for row in rows])
    parameters = (counts, shard, msgspec.json.encode(told).decode())
    execute_plainly(connection, _PUT_TALLIES[connection.dialect.name], parameters)


def put_parts(connection: Connection, rows: Sequence[PartRow]) -> None:
    """Store reports for an archive, each row under a new random name."""
    starts = accumulate((len(row[-1]) for row in rows), initial=1)
    told = [(*row[:-1], start, len(row[-1])) for row, start in zip(rows, starts, strict=False)]
    names = os.urandom(PART_BYTES * len(rows))
    parameters = (names, b"".join([row[-1] for row in rows]), msgspec.json.encode(told).decode())
    execute_plainly(connection, _PUT_PARTS[connection.dialect.name], parameters)
