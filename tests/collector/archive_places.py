"""Empty places for archives, a registry and a sealed file for one, and what is wrong there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.archived import archiver_of, archiving, commit, seal_all
from collector.oracle import Oracle
from hubbub.collector.archive.checking import find_archive_faults
from hubbub.collector.archive.keeping import Archiver
from hubbub.collector.archive.place import Place
from hubbub.collector.store import Store
from shared.registries import EXAMPLE


@pytest.fixture(params=["folder", "memory", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place, of each kind in turn."""
    if request.param == "folder":
        yield Place(str(tmp_path / "archive"))
        return
    root = "memory:/" if request.param == "memory" else request.getfixturevalue("bucket")
    found = Place(f"{root}/{tmp_path.name}/archive")
    yield found
    for listed in found.files() + found.unfinished():
        found.delete(listed.name)


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "archive"))


def faults(store: Store, place: Place) -> list[str]:
    return list(find_archive_faults(store, place))


def sealed_file(store: Store, place: Place, oracle: Oracle, batches: int = 5) -> Archiver:
    archiver = archiver_of(store, place.address)
    with archiving(store, archiver) as shard:
        commit(shard, oracle, batches, reports=1)
    seal_all(store)
    return archiver


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """What the reports of an archive were made by, as a file."""
    path = tmp_path / "metrics.toml"
    path.write_text(EXAMPLE)
    return path
