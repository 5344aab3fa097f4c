"""Parts of an archive: the reports of a commit wait in the store, in the very transaction that counts them.

So a report is in the archive if and only if it is in the tally. A part belongs to a file. Files that are open grow; all
writers of a store share them, so that one that was killed leaves nothing behind that nobody goes on with.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec
from sqlalchemy import func, insert, select

from hubbub.collector.store.bulk import put_parts
from hubbub.collector.store.schema import archive_file, archive_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import date

    from sqlalchemy import Connection

    from hubbub.collector.store.bulk import PartRow
    from hubbub.shared.wire import Report

    Key = tuple[str, int, date]
    """Metric, version and period."""

State = Literal["open", "sealed", "written"]

MOST_PARTS = 20_000
MOST_BYTES = 128 << 20
"""A file is full at so many parts or bytes, if not at its number of reports before: it is put together in memory."""

COHORT_BYTES = 2
NAME_BYTES = 8

# PostgreSQL: nobody seals a file between this and the end of the transaction. SQLite: there is no other writer.
_STILL_OPEN = {
    "sqlite": "SELECT name FROM archive_file WHERE state = 'open' AND name IN (SELECT value FROM json_each(?))",
    "postgresql": """
        SELECT name FROM archive_file
        WHERE state = 'open' AND name IN (SELECT json_array_elements_text(%s::json)) FOR SHARE OF archive_file
    """,
}


@dataclass(slots=True)
class _Open:
    """A file that a writer adds to, and how much was in it when it last looked, with what it has added since."""

    name: str
    reports: int = 0
    parts: int = 0
    size: int = 0


class Parts:
    """What one writer puts into the archive. Like its shard, it must not be used any more after an error."""

    def __init__(self, most_reports: int, full: Callable[[str], None]) -> None:
        self._most_reports = most_reports
        self._full = full
        """Told of a file that has enough in it; whoever is told seals it, outside of the writer's transaction."""
        self._open: dict[Key, _Open] = {}

    def put(self, connection: Connection, reports: Iterable[Report]) -> None:
        """Store reports, in the caller's transaction."""
        by_key: dict[Key, list[bytes]] = defaultdict(list)
        for report in reports:
            by_key[report.metric, report.version, report.period].append(pack(report))
        if not by_key:
            return
        self._forget_sealed(connection, by_key)
        rows: list[PartRow] = []
        for key in sorted(by_key):
            packed = by_key[key]
            packed.sort()
            file = self._open.get(key) or self._find_or_open(connection, key)
            content = b"".join(packed)
            rows.append((file.name, len(packed), content))
            file.reports += len(packed)
            file.parts += 1
            file.size += len(content)
        put_parts(connection, rows)

    def committed(self) -> None:
        """Tell of files that are full, after the transaction: before, nobody else could seal them."""
        for file in self._open.values():
            if file.reports >= self._most_reports or file.parts >= MOST_PARTS or file.size >= MOST_BYTES:
                self._full(file.name)

    def forget(self) -> None:
        """Look for open files anew: a transaction that may have opened some was undone."""
        self._open.clear()

    def _forget_sealed(self, connection: Connection, keys: Iterable[Key]) -> None:
        known = {self._open[key].name: key for key in keys if key in self._open}
        if known:
            asked = msgspec.json.encode(list(known)).decode()
            still = set(connection.exec_driver_sql(_STILL_OPEN[connection.dialect.name], (asked,)).scalars())
            for name in known.keys() - still:
                del self._open[known[name]]

    def _find_or_open(self, connection: Connection, key: Key) -> _Open:
        """Go on with a file that is open, whoever opened it, or open one."""
        metric, version, period = key
        query = select(archive_file.c.name).where(
            archive_file.c.state == "open",
            archive_file.c.metric == metric,
            archive_file.c.version == version,
            archive_file.c.period == period,
        )
        name = connection.scalars(query.limit(1).with_for_update(read=True)).one_or_none()
        if name is not None:
            file = _Open(name, *_held(connection, name))
        else:
            file = _Open(secrets.token_hex(NAME_BYTES))
            row = {"name": file.name, "metric": metric, "version": version, "period": period}
            connection.execute(insert(archive_file).values(**row, state="open", reports=0))
        self._open[key] = file
        return file


def pack(report: Report) -> bytes:
    """Spell a report so that bytes are in the order of cohorts, then of bits."""
    return report.cohort.to_bytes(COHORT_BYTES, "big") + report.bits


def _held(connection: Connection, name: str) -> Sequence[int]:
    """Tell how many reports, parts and bytes wait for a file."""
    query = select(
        func.coalesce(func.sum(archive_part.c.n), 0),
        func.count(),
        func.coalesce(func.sum(func.length(archive_part.c.reports)), 0),
    ).where(archive_part.c.file == name)
    return [int(number) for number in connection.execute(query).one()]
