"""Checking an archive: what is lost, damaged, foreign or left over is named, and repaired as far as can be."""

from pathlib import Path

import pytest
from sqlalchemy import select, update

from collector.archive_places import faults, sealed_file
from collector.archived import archiver_of, archiving, commit, in_files, in_parts, seal_all
from collector.oracle import REGISTRY, Oracle
from collector.stores import counted
from hubbub.collector.archive import keeping
from hubbub.collector.archive.checking import repair
from hubbub.collector.archive.keeping import write_sealed
from hubbub.collector.archive.place import Place
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.collector.store.copying import back_up, copy
from hubbub.collector.store.files import sealed
from hubbub.collector.store.schema import archive_file, archive_part, tally
from told import Run, run_here


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return run_here("store", capsys, monkeypatch)


def written_archive(store: Store, place: Place) -> Oracle:
    """An archive with a file and a part."""
    oracle = Oracle()
    archiver = sealed_file(store, place, oracle, batches=20)
    archiver.work()
    with archiving(store, archiver) as shard:
        commit(shard, oracle, 3, reports=1)
    return oracle


def test_damage_to_an_archive_is_named(ready: Store, folder: Place, tmp_path: Path) -> None:
    written_archive(ready, folder)
    assert faults(ready, folder) == []
    [listed] = folder.files()
    path = tmp_path / "archive" / listed.name
    whole = path.read_bytes()
    lost = "it cannot be made again from this store"

    path.write_bytes(whole[:-100])
    told = faults(ready, folder)
    assert told[0].startswith(f"{path}: cannot be read")
    assert told[0].endswith(lost)
    assert "cohort 0: 3 reports in the archive, 23 in the tally; 20 bits were set another number" in told[1]
    assert "a file is gone" in told[1]

    path.unlink()
    assert faults(ready, folder)[0].endswith(lost)
    assert str(path) in faults(ready, folder)[0]

    path.write_bytes(whole)
    strange = path.with_name("0123456789abcdef.parquet")
    strange.write_bytes(whole)
    (left := path.with_name(f"{path.name}.abc.part")).write_bytes(b"half")
    assert faults(ready, folder) == [
        f"{strange}: this store does not know it; it is not counted",
        f"{left}: was never finished, or is being written; --repair deletes it",
    ]
    assert list(repair(ready, folder)) == [f"{left}: was never finished, and is deleted"]
    assert len(faults(ready, folder)) == 1


def test_another_content_of_a_file_is_named_though_the_file_is_sound(
    ready: Store, folder: Place, tmp_path: Path
) -> None:
    oracle = written_archive(ready, folder)
    other = Store(f"sqlite:///{tmp_path}/other.db")
    other.prepare(REGISTRY)
    elsewhere = Place(str(tmp_path / "elsewhere"))
    sealed_file(other, elsewhere, oracle, batches=20).work()
    other.close()
    [listed], [foreign] = folder.files(), elsewhere.files()
    folder.write(listed.name, elsewhere.read(foreign.name))
    told = faults(ready, folder)
    assert "is not the file that was written: its content is another" in told[0]
    with writing(ready.engine) as connection:
        connection.execute(update(archive_file).where(archive_file.c.state == "written").values(reports=21))
    assert "is not the file that was written: its head is another" in faults(ready, folder)[0]


def test_a_sealed_file_is_named_and_written_by_a_repair(ready: Store, folder: Place) -> None:
    oracle = Oracle()
    sealed_file(ready, folder, oracle)
    [told] = faults(ready, folder)
    assert told.endswith("is sealed, and not written yet; --repair writes it")
    [done] = repair(ready, folder)
    assert done.endswith(": written")
    assert faults(ready, folder) == []
    assert in_files(ready, folder).total() == 5


def test_a_lost_file_is_made_again_while_its_parts_are_there(
    ready: Store, folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed_file(ready, folder, Oracle())
    [kept] = sealed(ready.engine)
    with monkeypatch.context() as killed:
        killed.setattr(keeping, "drop_parts", lambda *_: None)
        write_sealed(ready.engine, folder, kept)
    [listed] = folder.files()
    folder.delete(listed.name)
    assert faults(ready, folder)[0].endswith("--repair writes it again")
    done = list(repair(ready, folder))
    assert [each.rpartition(": ")[2] for each in done] == [
        "written again",
        "its parts were not needed any more, and are deleted",
    ]
    assert faults(ready, folder) == []
    assert in_files(ready, folder).total() == 5


@pytest.mark.parametrize("waits", [True, False])
def test_what_only_the_tally_or_only_the_archive_has_is_named(ready: Store, folder: Place, waits: bool) -> None:
    written_archive(ready, folder)
    with writing(ready.engine) as connection:
        if waits:
            row = connection.execute(select(archive_part)).one()
            wrong = {"n": row.n - 1, "reports": row.reports[18:]}
            connection.execute(update(archive_part).values(**wrong))
        else:
            connection.execute(tally.delete())
    [told] = faults(ready, folder)
    assert ("22 reports in the archive, 23 in the tally" if waits else "23 reports in the archive, 0 in") in told
    assert ("the archive was turned on later" if waits else "restored from an older backup") in told


def test_tallies_that_were_added_otherwise_are_named_and_said_where_from(ready: Store, folder: Place) -> None:
    written_archive(ready, folder)
    added = counted(1)
    ready.add([added])
    told = faults(ready, folder)
    assert len(told) == (added.n > 0).sum()
    assert all("tallies were added otherwise" in each for each in told)


def test_an_older_backup_does_not_know_later_files(ready: Store, folder: Place, tmp_path: Path) -> None:
    oracle = Oracle()
    archiver = archiver_of(ready, folder.address)
    with archiving(ready, archiver) as shard:
        commit(shard, oracle, 5, reports=1)
        back_up(ready, tmp_path / "backup.db")
        seal_all(ready)
        archiver.work()
        commit(shard, oracle, 5, reports=1)
        seal_all(ready)
        archiver.work()
    kept, fresh = Store(f"sqlite:///{tmp_path}/backup.db"), Store(f"sqlite:///{tmp_path}/fresh.db")
    copy(kept, fresh)
    assert in_parts(fresh).total() == 5
    told = faults(fresh, folder)
    assert sorted(each.rpartition(": ")[2] for each in told) == [
        "is of a later time than this store, and will be replaced",
        "this store does not know it; it is not counted",
    ]
    # The one that the store had open is replaced when it is written, and then says what the store says.
    seal_all(fresh)
    archiver_of(fresh, folder.address).work()
    assert in_files(fresh, folder).total() == 5
    assert len(faults(fresh, folder)) == 1
    for each in (kept, fresh):
        each.close()


def test_the_command_checks_and_repairs(tmp_path: Path, folder: Place, check: Run) -> None:
    address = f"sqlite:///{tmp_path}/hubbub.db"
    store = Store(address)
    store.prepare(REGISTRY)
    where = ("check", "--store", address, "--archive", folder.address)
    assert check(*where).code == 0
    sealed_file(store, folder, Oracle())
    told = check(*where)
    assert (told.code, told.out.splitlines()[-1]) == (1, "1 faults")
    told = check(*where, "--repair")
    assert (told.code, told.out) == (0, "no faults\n")
    assert told.err.startswith("repaired: ")
    assert check(*where, "--json").out == "[]\n"
    assert "there is no archive" in check("check", "--store", address, "--archive", tmp_path / "none").err
    assert "with --archive ADDRESS" in check("check", "--store", address, "--repair").err
    store.close()
