"""A file of an archive gives back what was put into it, and is refused, by name and reason, if it is anything else."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.archives import DAYS, REGISTRY, draw, put
from hubbub.collector.archive import file as filing
from hubbub.collector.archive.file import (
    KEY,
    FileHead,
    Reports,
    encode_file,
    groups_of,
    new_name,
    read_groups,
    read_head,
    read_reports,
    read_runs,
    sort_reports,
    write_file,
)
from hubbub.collector.archive.place import Listed, Place
from hubbub.collector.errors import ArchiveError
from hubbub.shared import Metric

METRIC = REGISTRY["homepage"]
ODD = REGISTRY["startup_ms"]  # four bits: half of its byte has to be zero


def drawn(metric: Metric = METRIC, reports: int = 100) -> Reports:
    return draw(metric, reports, np.random.default_rng(3))


def table(head: FileHead, cohorts: object, bits: list[bytes], **changed: Any) -> pa.Table:
    """A table as a file holds it, or nearly so."""
    fields = [pa.field("cohort", pa.uint32(), nullable=False), pa.field("bits", pa.binary(head.width), nullable=False)]
    schema = pa.schema(changed.get("fields", fields), {KEY: changed.get("text", msgspec.json.encode(head))})
    columns = [pa.array(cohorts, schema.field(0).type), pa.array(bits, schema.field(1).type)]
    return pa.Table.from_arrays(columns, schema=schema)


@pytest.mark.parametrize("metric", [REGISTRY[name] for name in ("homepage", "theme", "startup_ms", "language")])
def test_what_is_written_is_read_and_nothing_of_its_order(metric: Metric, place: Place) -> None:
    reports = drawn(metric)
    head = FileHead.of(metric, DAYS[0], 100)
    name = new_name(head)
    assert place.files() == []
    size = write_file(place, name, head, *reports)
    assert place.files() == [Listed(name, size)]
    assert place.unfinished() == []
    assert read_head(place, name) == head
    assert name.startswith(f"metric={metric.name}/version={metric.version}/period=2026-11-16/")
    found = read_reports(place, name)
    order = sorted(range(100), key=lambda row: (reports.cohorts[row], reports.packed[row].tobytes()))
    assert found.cohorts.tolist() == reports.cohorts[order].tolist()
    assert found.packed.tolist() == reports.packed[order].tolist()
    again = np.random.default_rng(4).permutation(100)
    shuffled = encode_file(name, head, reports.cohorts[again], reports.packed[again])
    assert shuffled == place.read(name)


def test_parts_of_a_file_are_read_one_by_one(place: Place) -> None:
    reports = sort_reports(*drawn())
    name = put(place.address, METRIC, DAYS[0], reports, group=40)
    head, groups = groups_of(place, name)
    assert [(group.name, group.number, group.reports) for group in groups] == [
        (name, 0, 40),
        (name, 1, 40),
        (name, 2, 20),
    ]
    [last] = read_groups(place, name, [2])
    assert last.packed.tolist() == reports.packed[80:].tolist()
    assert len(read_reports(place, name).packed) == head.reports == 100


def test_a_file_that_is_not_there_is_told_the_same_everywhere(place: Place) -> None:
    for ask in (lambda: read_head(place, "a.parquet"), lambda: place.read("a.parquet")):
        with pytest.raises(ArchiveError, match=r"archive/a\.parquet: No such file or directory; allowed: "):
            ask()


def test_a_row_group_is_read_in_parts_with_the_runs_of_each(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = sort_reports(*drawn())
    name = put(place.address, METRIC, DAYS[0], reports, group=40)
    monkeypatch.setattr(filing, "PART_BYTES", 15 * 16 + 7)
    parts = list(read_runs(place, name))
    assert [len(part.packed) for part, _ in parts] == [15, 15, 10, 15, 15, 10, 15, 5]
    assert np.concatenate([part.cohorts for part, _ in parts]).tolist() == reports.cohorts.tolist()
    assert np.concatenate([part.packed for part, _ in parts]).tolist() == reports.packed.tolist()
    for part, runs in parts:
        assert runs is not None
        assert np.repeat(runs.cohorts, runs.sizes).tolist() == part.cohorts.tolist()
    monkeypatch.setattr(filing, "PART_BYTES", 1)  # less than a report has
    assert [len(part.packed) for part in read_groups(place, name, [2])] == [1] * 20


def test_a_row_group_of_a_folder_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    place, reports, rng = Place(str(tmp_path)), 1_000_000, np.random.default_rng(3)
    head = FileHead.of(METRIC, DAYS[0], reports)
    packed = rng.integers(0, 256, (reports, head.width), dtype=np.uint8)
    write_file(place, "a.parquet", head, rng.integers(0, head.cohorts, reports), packed)
    (group,) = groups_of(place, "a.parquet")[1]
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), 0
    for _ in read_groups(place, "a.parquet"):
        most = max(most, pool.bytes_allocated() - before)
    assert 0 < most < group.reports * head.width * 3 / 4


def test_the_bits_are_stored_as_they_are(tmp_path: Path) -> None:
    name = put(tmp_path, METRIC, DAYS[0], drawn(reports=10_000))
    column = pq.ParquetFile(tmp_path / name).metadata.row_group(0).column(1)
    assert (column.compression, column.has_dictionary_page) == ("UNCOMPRESSED", False)
    assert (tmp_path / name).stat().st_size < 10_000 * 16 * 1.02


def test_a_file_is_found_by_every_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = put(tmp_path / "a", METRIC, DAYS[0], drawn())
    folder, _, file = name.rpartition("/")
    for address in (tmp_path / "a" / folder, tmp_path / "a" / name, f"file://{tmp_path}/a/{name}"):
        place = Place(str(address))
        assert [listed.name for listed in place.files()] == [file]
        assert read_head(place, file).metric == "homepage"
    monkeypatch.chdir(tmp_path)
    relative = Place("a")
    assert relative.address == str(tmp_path / "a")  # a worker elsewhere is told where it is
    relative.delete(name)
    relative.delete(name)
    assert relative.files() == []
    assert not Place(str(tmp_path / "b")).exists()


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(str(tmp_path))
    place.write("a/file.parquet", b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArchiveError, match=r"file.parquet: No space left on device; allowed: "):
        place.write("a/file.parquet", b"new")
    assert place.read("a/file.parquet") == b"old"
    assert place.unfinished() == []


def test_what_a_writer_has_left_is_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.parquet.12345678.part").write_bytes(b"half")
    assert Place(str(tmp_path)).unfinished() == [Listed("a/0.parquet.12345678.part", 4)]
    assert Place(str(tmp_path)).files() == []


HEAD = FileHead.of(METRIC, DAYS[0], 2)
TWO = [b"\1" * 16, b"\2" * 16]
NULLABLE = [pa.field("cohort", pa.uint32()), pa.field("bits", pa.binary(16))]
NARROW = [pa.field("cohort", pa.uint32(), nullable=False), pa.field("bits", pa.binary(15), nullable=False)]

NEARLY: dict[str, tuple[Callable[[], pa.Table], str]] = {
    "another-programme": (lambda: pa.table({"cohort": [1]}), "is not of hubbub; allowed: "),
    "no-head": (lambda: table(HEAD, [1, 2], TWO, text=b"{}"), "has a head that cannot be read .*missing"),
    "a-newer-format": (
        lambda: table(HEAD, [1, 2], TWO, text=msgspec.json.encode(HEAD).replace(b'"format":1', b'"format":2')),
        "has a head that cannot be read .*format",
    ),
    "columns-with-gaps": (lambda: table(HEAD, [1, None], [TWO[0], b"\2" * 16], fields=NULLABLE), "has other columns"),
    "too-narrow": (lambda: table(HEAD, [1, 2], [b"\1" * 15] * 2, fields=NARROW), "has other columns; .*16 bytes"),
    "one-more": (lambda: table(HEAD, [1, 2, 3], [*TWO, TWO[0]]), "has 3 reports; allowed: 2, as announced"),
    "a-cohort-too-high": (lambda: table(HEAD, [1, 64], TWO), "has a report of cohort 64; allowed: 0 to 63"),
    "too-high-and-in-no-order": (lambda: table(HEAD, [64, 1], TWO), "has a report of cohort 64; allowed: 0 to 63"),
    "padding": (
        lambda: table(FileHead.of(ODD, DAYS[0], 1), [0], [b"\x10"]),
        "has a report with bits past the last one; allowed: 4 bits",
    ),
}


@pytest.mark.parametrize("case", NEARLY)
def test_what_is_not_a_file_of_ours_is_refused_by_name(case: str, tmp_path: Path) -> None:
    make, fault = NEARLY[case]
    pq.write_table(make(), tmp_path / "a.parquet")
    with pytest.raises(ArchiveError, match=rf"^{tmp_path}/a\.parquet: {fault}"):
        read_reports(Place(str(tmp_path)), "a.parquet")


def test_a_file_in_the_folder_of_another_is_refused(tmp_path: Path) -> None:
    name = put(tmp_path, METRIC, DAYS[0], drawn())
    moved = name.replace("period=2026-11-16", "period=2026-11-17")
    (tmp_path / moved).parent.mkdir()
    (tmp_path / name).rename(tmp_path / moved)
    with pytest.raises(ArchiveError, match=r"holds reports of .*period=2026-11-16; allowed: a file in the folder"):
        read_head(Place(str(tmp_path)), moved)


@pytest.mark.parametrize("length", [0, 3, 100, 2000, -1, -8])
def test_a_file_that_was_cut_off_is_refused(length: int, tmp_path: Path) -> None:
    name = put(tmp_path, METRIC, DAYS[0], drawn(reports=200))
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:length])
    with pytest.raises(ArchiveError, match=r"\.parquet: cannot be read .*; allowed: a whole Parquet file"):
        read_head(Place(str(tmp_path)), name)


def test_damage_to_the_bits_is_noticed(tmp_path: Path) -> None:
    """Each page has a checksum: a bit that has fallen over is not counted as if somebody had sent it so."""
    reports = drawn()
    name = put(tmp_path, METRIC, DAYS[0], reports)
    content = bytearray((tmp_path / name).read_bytes())
    content[content.index(sort_reports(*reports).packed[50].tobytes())] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ArchiveError, match=r"cannot be read .*CRC"):
        read_reports(Place(str(tmp_path)), name)


def test_reports_that_no_reader_would_take_are_not_written(tmp_path: Path) -> None:
    reports = drawn()
    head = FileHead.of(METRIC, DAYS[0], 100)
    faulty = {
        "has a report of cohort 64": (head, reports.cohorts + 64 * (reports.cohorts == 0), reports.packed),
        "has 99 reports; allowed: 100": (head, reports.cohorts[1:], reports.packed[1:]),
        "has bits of shape": (head, reports.cohorts, reports.packed[:, 1:]),
    }
    for fault, given in faulty.items():
        with pytest.raises(ArchiveError, match=fault):
            write_file(Place(str(tmp_path)), "a.parquet", *given)
    assert not list(tmp_path.iterdir())


def test_addresses_that_are_none_are_told_without_their_password() -> None:
    with pytest.raises(ArchiveError, match=r"^archive nonsense://host/x: .*; allowed: a folder, or an address") as told:
        Place("nonsense://me:secret@host/x")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("missing", ["fsspec", "pyarrow.parquet"])
def test_without_the_libraries_it_says_what_to_install(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = put(tmp_path, METRIC, DAYS[0], drawn())
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ArchiveError, match=rf'needs {missing}.*pip install "hubbub\[cluster\]"'):
        read_head(Place(str(tmp_path)), name)
