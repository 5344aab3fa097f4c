"""One file of an archive: reports of one metric, version and period, sorted.

Sorted by cohort and bits: nothing of the order of arrival is left, and each cohort is counted in one go.
The bits are noise and do not compress; they are stored as they are.
"""

from __future__ import annotations

import io
import secrets
from contextlib import contextmanager
from datetime import date  # noqa: TC003  (msgspec reads the annotations)
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct

from hubbub.collector.archive.libraries import library
from hubbub.collector.archive.place import ENDING, in_one_line
from hubbub.collector.count import find_runs
from hubbub.collector.errors import ArchiveError
from hubbub.shared.wire import MAX_BITS, MAX_COHORTS, MAX_NAME, MAX_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from hubbub.collector.archive.place import Place
    from hubbub.collector.count import Runs
    from hubbub.shared.metric import Metric

FORMAT: Literal[1] = 1
KEY = b"hubbub"
"""Where the head is, in the metadata of the Parquet schema."""

GROUP_REPORTS = 1_000_000
GROUP_BYTES = 64 << 20
"""A row group is at most so many reports, and so many bytes: one of a file far away is in memory as a whole."""

READ_BYTES = 64 << 10
"""A file of this machine is read by so much at a time, or by a page of Parquet, which is more: it is still in the cache
when its checksum is taken. A whole row group would not be."""

PART_BYTES = 4 << 20
"""Reports are read in parts of so much: a part is still in the cache when it is counted, and others have room there."""


class FileHead(Struct, frozen=True, forbid_unknown_fields=True):
    """What a file says about itself."""

    metric: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    version: Annotated[int, Meta(ge=1, le=MAX_VERSION)]
    period: date
    bits: Annotated[int, Meta(ge=1, le=MAX_BITS)]
    """How many bits a report has."""
    cohorts: Annotated[int, Meta(ge=1, le=MAX_COHORTS)]
    fingerprint: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    """That of the metric when the reports were accepted."""
    reports: Annotated[int, Meta(ge=1)]
    format: Literal[1] = FORMAT

    @classmethod
    def of(cls, metric: Metric, period: date, reports: int) -> FileHead:
        """Describe reports of a metric and period."""
        return cls(
            metric.name, metric.version, period, metric.size, metric.encoding.cohorts, metric.fingerprint, reports
        )

    @property
    def width(self) -> int:
        """How many bytes the bits are packed into."""
        return (self.bits + 7) // 8

    @property
    def folder(self) -> str:
        """Where files like this one are."""
        return f"metric={self.metric}/version={self.version}/period={self.period}"


class Reports(NamedTuple):
    """Some reports: the cohort of each, and its packed bits, a row each."""

    cohorts: NDArray[np.uint32]
    packed: NDArray[np.uint8]


class Group(NamedTuple):
    """A part of a file that is read at once."""

    name: str
    number: int
    reports: int


def new_name(head: FileHead) -> str:
    """Name a new file; the name says nothing but what is in it."""
    return f"{head.folder}/{secrets.token_hex(8)}{ENDING}"


def folders_of(path: str) -> list[str]:
    """What the folders that a file is in say of it: `metric=NAME`, `version=NUMBER`, `period=DAY`, or less."""
    return [part for part in path.split("/")[-4:-1] if part.partition("=")[0] in {"metric", "version", "period"}]


def sort_reports(cohorts: NDArray[np.integer], packed: NDArray[np.uint8]) -> Reports:
    """Put reports in the order of their cohorts and bits, byte by byte."""
    rows = np.concatenate([cohorts.astype(">u4").view(np.uint8).reshape(-1, 4), packed], axis=1)
    order = np.argsort(rows.view(f"S{rows.shape[1]}").ravel())
    return Reports(cohorts[order].astype(np.uint32), packed[order])


def write_file(place: Place, name: str, head: FileHead, cohorts: NDArray[np.integer], packed: NDArray[np.uint8]) -> int:
    """Write reports, in whatever order they are given, to a file, and tell its size."""
    content = encode_file(place.path(name), head, cohorts, packed)
    place.write(name, content)
    return len(content)


def encode_file(
    name: str, head: FileHead, cohorts: NDArray[np.integer], packed: NDArray[np.uint8], group: int = GROUP_REPORTS
) -> bytes:
    """Spell a file."""
    _check_reports(name, head, cohorts, packed)
    if len(packed) != head.reports:
        raise _refused(name, f"has {len(packed)} reports", f"{head.reports}, as announced")
    arrow, parquet = library("pyarrow"), library("pyarrow.parquet")
    ordered = sort_reports(cohorts, packed)
    bits = arrow.FixedSizeBinaryArray.from_buffers(
        arrow.binary(head.width), head.reports, [None, arrow.py_buffer(np.ascontiguousarray(ordered.packed))]
    )
    schema = _schema(head.width).with_metadata({KEY: msgspec.json.encode(head)})
    table = arrow.Table.from_arrays([arrow.array(ordered.cohorts), bits], schema=schema)
    written = io.BytesIO()
    parquet.write_table(
        table,
        written,
        row_group_size=max(min(group, GROUP_BYTES // head.width), 1),
        use_dictionary=["cohort"],  # sorted, so it takes next to nothing
        column_encoding={"bits": "PLAIN"},
        compression="NONE",
        write_statistics=["cohort"],
        write_page_checksum=True,
    )
    return written.getvalue()


def read_head(place: Place, name: str) -> FileHead:
    """Read what a file says about itself, and see whether it is as long as it says."""
    with _opened(place, name) as (head, _):
        return head


def groups_of(place: Place, name: str) -> tuple[FileHead, list[Group]]:
    """List the parts of a file that can be read one by one."""
    with _opened(place, name) as (head, file):
        rows = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
        return head, [Group(name, index, count) for index, count in enumerate(rows)]


def read_groups(place: Place, name: str, indices: list[int] | None = None) -> Iterator[Reports]:
    """Read the row groups with the given numbers, or all, a part at a time."""
    return (reports for reports, _ in read_runs(place, name, indices))


def read_runs(place: Place, name: str, indices: list[int] | None = None) -> Iterator[tuple[Reports, Runs | None]]:
    """Read them with the runs of each part, which were found when it was checked; none if not in order."""
    with _opened(place, name) as (head, file), _reading(place, name):
        step = max(PART_BYTES // head.width, 1)
        for index in range(file.metadata.num_row_groups) if indices is None else indices:
            for part in file.iter_batches(step, row_groups=[index], use_threads=False):
                cohorts, bits = part.columns
                start = bits.offset * head.width
                flat = np.frombuffer(bits.buffers()[1], np.uint8, len(bits) * head.width, start)
                reports = Reports(cohorts.to_numpy(), flat.reshape(len(bits), head.width))
                yield reports, _check_reports(place.path(name), head, *reports)


def read_reports(place: Place, name: str) -> Reports:
    """Read a whole file."""
    parts = list(read_groups(place, name))
    return Reports(np.concatenate([part.cohorts for part in parts]), np.concatenate([part.packed for part in parts]))


@contextmanager
def _opened(place: Place, name: str) -> Iterator[tuple[FileHead, Any]]:
    """Open a file, and refuse it unless it is one of ours, whole and where it belongs."""
    parquet = library("pyarrow.parquet")
    path = place.path(name)
    with place.open(name) as source:
        with _reading(place, name):
            # What is far away is asked for ahead, by threads; here they would only be in the way of other workers.
            far, near = (False, READ_BYTES) if place.local else (True, 0)
            file = parquet.ParquetFile(source, page_checksum_verification=True, pre_buffer=far, buffer_size=near)
            schema, rows = file.schema_arrow, file.metadata.num_rows
        head = _head(path, schema.metadata)
        if not schema.equals(_schema(head.width)):
            raise _refused(path, "has other columns", f"cohort (uint32) and bits ({head.width} bytes), never null")
        if rows != head.reports:
            raise _refused(path, f"has {rows} reports", f"{head.reports}, as announced in its head")
        if not set(folders_of(path)) <= set(head.folder.split("/")):
            raise _refused(path, f"holds reports of {head.folder}", "a file in the folder that its content names")
        yield head, file


def _head(path: str, metadata: dict[bytes, bytes] | None) -> FileHead:
    text = (metadata or {}).get(KEY)
    if text is None:
        raise _refused(path, "is not of hubbub", "a Parquet file that a collector has written")
    try:
        return msgspec.json.decode(text, type=FileHead)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _refused(path, f"has a head that cannot be read ({error})", f"one of format {FORMAT}") from None


@contextmanager
def _reading(place: Place, name: str) -> Iterator[None]:
    arrow = library("pyarrow")
    try:
        yield
    except ArchiveError:
        raise
    except (place.faults, arrow.ArrowException) as error:
        raise _refused(place.path(name), f"cannot be read ({in_one_line(error)})", "a whole Parquet file") from None


@cache
def _schema(width: int) -> Any:
    arrow = library("pyarrow")
    columns = [("cohort", arrow.uint32()), ("bits", arrow.binary(width))]
    return arrow.schema([arrow.field(name, kind, nullable=False) for name, kind in columns])


def _check_reports(path: str, head: FileHead, cohorts: NDArray[np.integer], packed: NDArray[np.uint8]) -> Runs | None:
    if packed.shape != (len(cohorts), head.width):
        allowed = f"{head.width} bytes for each of {len(cohorts)} cohorts"
        raise _refused(path, f"has bits of shape {packed.shape}", allowed)
    runs = find_runs(cohorts)
    if runs is None:
        lowest, highest = int(cohorts.min()), int(cohorts.max())
    else:
        lowest, highest = 0, runs.groups - 1  # none is below 0, and no other look is needed
    if lowest < 0 or highest >= head.cohorts:
        raise _refused(path, f"has a report of cohort {highest}", f"0 to {head.cohorts - 1}")
    spare = head.width * 8 - head.bits
    if spare and (packed[:, -1] >> (8 - spare)).any():
        raise _refused(path, "has a report with bits past the last one", f"{head.bits} bits, and zeros after them")
    return runs


def _refused(path: str, fault: str, allowed: str) -> ArchiveError:
    return ArchiveError(f"{path}: {fault}; allowed: {allowed}")
