"""The tables, as queries see them. `migrations` creates them; a test holds the two against each other."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Date, Integer, LargeBinary, MetaData, Table, Text

metadata = MetaData()

migration = Table(
    "migration",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
)
"""The migrations that this store has been through."""

metric = Table(
    "metric",
    metadata,
    Column("name", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("bits", Integer, nullable=False),
    Column("cohorts", Integer, nullable=False),
)
"""What each version of a metric meant when its first report could arrive. Rows are never changed."""

tally = Table(
    "tally",
    metadata,
    Column("metric", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("period", Date, primary_key=True),
    Column("cohort", Integer, primary_key=True),
    Column("shard", Integer, primary_key=True),
    Column("n", BigInteger, nullable=False),
    Column("counts", LargeBinary, nullable=False),
)
"""How many reports, and how often each bit was set (64-bit integers, little-endian). Each writer has a shard."""

batch = Table(
    "batch",
    metadata,
    Column("id", LargeBinary, primary_key=True),
    Column("period", Date, nullable=False),
)
"""The ids of batches that were counted, with the last day of their latest period: purged when that day is refused."""

horizon = Table(
    "horizon",
    metadata,
    Column("day", Date, primary_key=True),
)
"""One row: reports of periods that ended before this day are refused for ever, because batch ids may be gone."""

candidate_list = Table(
    "candidate_list",
    metadata,
    Column("metric", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("strings", Integer, nullable=False),
)
"""How many candidates a metric has; the revision grows with every change, deletion included."""

candidate_chunk = Table(
    "candidate_chunk",
    metadata,
    Column("metric", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("strings", LargeBinary, nullable=False),
)
"""Some thousand candidates at a time: a JSON array, compressed by zlib."""

archive_file = Table(
    "archive_file",
    metadata,
    Column("name", Text, primary_key=True),
    Column("metric", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("period", Date, nullable=False),
    Column("state", Text, nullable=False),
    Column("reports", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=True),
)
"""The files of an archive: open (it grows), sealed (its content is fixed) or written (it is at its place)."""

archive_part = Table(
    "archive_part",
    metadata,
    Column("file", Text, primary_key=True),
    Column("part", LargeBinary, primary_key=True),
    Column("n", Integer, nullable=False),
    Column("reports", LargeBinary, nullable=False),
)
"""The reports of one commit that belong to a file, sorted: of each its cohort (two bytes, big-endian) and its bits."""
