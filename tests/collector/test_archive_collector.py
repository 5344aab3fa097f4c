"""A collector keeps its archive by itself: it writes, catches up with a place that failed, and purges."""

from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from collector.apps import collector_of, running
from collector.archive_places import faults
from collector.archived import in_parts, verify_archive
from collector.oracle import METRIC, REGISTRY, Oracle
from collector.watched import send, value, wait_until
from hubbub.collector.archive import keeping
from hubbub.collector.archive.place import Place
from hubbub.collector.store import Store


def test_a_collector_keeps_its_archive_by_itself(
    address: str, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LOOK_SECONDS", 0.05)
    oracle = Oracle()
    settings = {"store": address, "archive": place.address, "archive_reports": 10}
    with running(tmp_path, REGISTRY, **settings) as app, closing(Store(address)) as store:
        send(app, oracle, 25)
        # By the store: a number that the collector tells may be older than its last batch.
        wait_until(lambda: in_parts(store).total() < 10)
        wait_until(lambda: value(app, "hubbub_archive_files_total") >= 1)
        wait_until(lambda: value(app, "hubbub_archive_parts") < 10)
    with closing(Store(address)) as store:
        assert verify_archive(store, place, oracle).total() == 25
        assert faults(store, place) == []


@pytest.mark.parametrize("where", ["under a file", "read-only"])
def test_a_place_that_fails_holds_nobody_up_and_is_caught_up_with(
    address: str, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeping, "LOOK_SECONDS", 0.05)
    oracle = Oracle()
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, and no folder")
    # Nobody can make a folder in /proc, not even root, for whom no folder is read-only.
    blocked.unlink() if where == "read-only" else None
    blocked.symlink_to("/proc/1/fdinfo") if where == "read-only" else None
    with running(tmp_path, REGISTRY, store=address, archive=str(blocked / "archive"), archive_reports=5) as app:
        send(app, oracle, 12)
        wait_until(lambda: value(app, "hubbub_archive_errors_total") >= 2)
        wait_until(lambda: value(app, "hubbub_archive_parts") == 12)
        assert value(app, "hubbub_archive_files_total") == 0
        send(app, oracle, 1)
        blocked.unlink()
        wait_until(lambda: value(app, "hubbub_archive_files_total") >= 1)
        wait_until(lambda: value(app, "hubbub_archive_parts") < 5)
    assert "trying again later, reports wait in the store" in caplog.text
    store = Store(address)
    assert verify_archive(store, Place(str(blocked / "archive")), oracle).total() == 13
    store.close()


def test_whatever_a_file_system_raises_the_archiver_goes_on(
    tmp_path: Path, folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LOOK_SECONDS", 0.05)
    write, failures = Place.write, iter([RuntimeError("strange"), KeyError("stranger")])

    def fail(place: Place, name: str, content: bytes) -> None:
        for failure in failures:
            raise failure
        write(place, name, content)

    monkeypatch.setattr(Place, "write", fail)
    with running(tmp_path, REGISTRY, archive=folder.address, archive_reports=5) as app:
        send(app, Oracle(), 5)
        wait_until(lambda: value(app, "hubbub_archive_files_total") == 1)
        assert value(app, "hubbub_archive_errors_total") == 2


def test_a_collector_purges_its_archive_with_its_tallies(address: str, place: Place, tmp_path: Path) -> None:
    oracle = Oracle()
    options = {"store": address, "archive": place.address, "archive_reports": 1, "keep_days": 30}
    with running(tmp_path, REGISTRY, **options) as app:
        send(app, oracle, 1)
        wait_until(lambda: len(place.files()) == 1)
        collector = collector_of(app)
        collector.purge()
        assert len(place.files()) == 1
        collector.acceptance.clock = lambda: oracle.latest + timedelta(days=31)
        collector.purge()
        assert place.files() == []
        assert collector.store.tally(METRIC).reports == 0


def test_what_waits_is_purged_also_where_the_archive_was_turned_off(
    address: str, folder: Place, tmp_path: Path
) -> None:
    oracle = Oracle()
    with running(tmp_path, REGISTRY, store=address, archive=folder.address) as app:
        send(app, oracle, 3)
    with running(tmp_path, REGISTRY, store=address, keep_days=30) as app:
        collector = collector_of(app)
        collector.purge()
        assert in_parts(collector.store).total() == 3
        collector.acceptance.clock = lambda: oracle.latest + timedelta(days=31)
        collector.purge()
        assert in_parts(collector.store).total() == 0
