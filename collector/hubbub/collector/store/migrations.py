"""Numbered steps from one schema to the next.

A step that was released never changes; a test pins each one's digest. A step only adds: replicas of the release before
go on writing beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import insert, inspect, select, text

from hubbub.collector.errors import StoreRefusedError
from hubbub.collector.store.schema import migration

if TYPE_CHECKING:
    from sqlalchemy import Connection

MIGRATIONS: dict[int, str] = {
    1: """
        CREATE TABLE metric (
            name TEXT NOT NULL, version INTEGER NOT NULL,
            fingerprint TEXT NOT NULL, bits INTEGER NOT NULL, cohorts INTEGER NOT NULL,
            PRIMARY KEY (name, version)
        );
        CREATE TABLE tally (
            metric TEXT NOT NULL, version INTEGER NOT NULL, period DATE NOT NULL, cohort INTEGER NOT NULL,
            shard INTEGER NOT NULL, n BIGINT NOT NULL, counts {bytes} NOT NULL,
            PRIMARY KEY (metric, version, period, cohort, shard)
        );
        CREATE TABLE batch (id {bytes} NOT NULL PRIMARY KEY, period DATE NOT NULL) {no_rowid};
        CREATE TABLE horizon (day DATE NOT NULL PRIMARY KEY);
        INSERT INTO horizon VALUES ('0001-01-01');
        CREATE TABLE candidate_list (
            metric TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, strings INTEGER NOT NULL
        );
        CREATE TABLE candidate_chunk (
            metric TEXT NOT NULL, position INTEGER NOT NULL, strings {bytes} NOT NULL,
            PRIMARY KEY (metric, position)
        )
    """,
    2: """
        CREATE TABLE archive_file (
            name TEXT NOT NULL PRIMARY KEY, metric TEXT NOT NULL, version INTEGER NOT NULL, period DATE NOT NULL,
            state TEXT NOT NULL, reports BIGINT NOT NULL, digest {bytes}
        );
        CREATE INDEX archive_file_by_state ON archive_file (state, metric, version, period);
        CREATE TABLE archive_part (
            file TEXT NOT NULL, part {bytes} NOT NULL, n INTEGER NOT NULL, reports {bytes} NOT NULL,
            PRIMARY KEY (file, part)
        ) {no_rowid}
    """,
}
"""Statements by number, with what SQLite and PostgreSQL spell differently in braces."""

SPELLING: dict[str, dict[str, str]] = {
    "sqlite": {"bytes": "BLOB", "no_rowid": "WITHOUT ROWID"},
    "postgresql": {"bytes": "BYTEA", "no_rowid": ""},
}


def migrate(connection: Connection) -> None:
    """Bring a store up to date, inside the caller's transaction, which keeps others from doing so meanwhile."""
    tables = inspect(connection).get_table_names()
    if migration.name not in tables:
        if tables and connection.dialect.name == "sqlite":  # on PostgreSQL, others may live beside us
            raise StoreRefusedError(
                "store: the file belongs to another program, or is the state of a client; "
                "allowed: a new file, or one that a collector has served"
            )
        connection.execute(text("CREATE TABLE migration (number INTEGER NOT NULL PRIMARY KEY)"))
    for number in sorted(set(MIGRATIONS) - _done(connection)):
        script = MIGRATIONS[number].format(**SPELLING[connection.dialect.name])
        for statement in script.split(";"):
            connection.execute(text(statement))
        connection.execute(insert(migration).values(number=number))


def check_version(connection: Connection) -> None:
    """Refuse a store that is not one of ours, or is not up to date; nothing is changed."""
    if not inspect(connection).has_table(migration.name):
        raise StoreRefusedError("store: there is nothing of hubbub in it; allowed: one that a collector has served")
    if set(MIGRATIONS) - _done(connection):
        raise StoreRefusedError("store: is of an older hubbub; allowed: one that this version has served")


def _done(connection: Connection) -> set[int]:
    done = set(connection.scalars(select(migration.c.number)))
    unknown = sorted(done - set(MIGRATIONS))
    if unknown:
        raise StoreRefusedError(
            f"store: has the schema of a newer hubbub (migration {unknown[-1]}); "
            f"allowed: up to {max(MIGRATIONS)}; install a newer hubbub"
        )
    return done
