"""`hubbub aggregate`: an archive is counted exactly, or refused with the file and the reason.

Reports are drawn with a fixed seed.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from collector.archives import DAYS, REGISTRY, counted, die_at_the_end, draw, fill, joined, put
from hubbub.collector.archive import aggregate as counting
from hubbub.collector.archive import choice as choosing
from hubbub.collector.archive import file as filing
from hubbub.collector.archive.choice import Choice
from hubbub.collector.archive.file import Reports
from hubbub.collector.archive.place import Place
from hubbub.collector.count import ENGINES, Counter, Engine
from hubbub.collector.store import Store
from hubbub.collector.store.schema import archive_file
from hubbub.collector.tally import Tally
from hubbub.collector.work import Workers
from hubbub.shared import Metric, Registry
from hubbub.simulations import simulate_tally
from shared.registries import EXAMPLE
from told import Run, run_here

METRIC = REGISTRY["homepage"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return run_here("aggregate", capsys, monkeypatch)


def expected(reports: dict[date, Reports], name: str = "homepage") -> Tally:
    metric = REGISTRY[name]
    return Tally(name, metric.version, *counted(metric, joined([*reports.values()])), DAYS[0], DAYS[-1])


def altered(old: str, new: str) -> Metric:
    """The metric `homepage` of a registry that says something else."""
    return Registry.parse(EXAMPLE.replace(old, new))["homepage"]


@pytest.mark.parametrize("counter", ENGINES)
@pytest.mark.parametrize("name", ["homepage", "theme", "crashed", "startup_ms", "language"])
def test_the_tally_is_exact(name: str, counter: str, tmp_path: Path, run: Run) -> None:
    reports = fill(tmp_path / "a", name, group=64)
    told = run(tmp_path / "a", "--counter", counter, "--out", tmp_path / "tally.json")
    assert told.code == 0, told.err
    assert Tally.parse((tmp_path / "tally.json").read_bytes(), REGISTRY[name]) == expected(reports, name)
    assert [line.split() for line in told.out.splitlines()[2:5]] == [[str(day), "607"] for day in DAYS]


def test_the_counter_that_is_asked_for_counts(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "a")
    asked: list[Engine] = []

    def counter(*given: Any, engine: Engine) -> Counter:
        asked.append(engine)
        return Counter(*given, engine=engine)

    monkeypatch.setattr(counting, "Counter", counter)
    for wanted in ENGINES:
        run(tmp_path / "a", "--counter", wanted)
        assert set(asked) == {wanted}
        asked.clear()


def test_a_counter_that_is_not_installed_is_told_in_one_line(tmp_path: Path) -> None:
    fill(tmp_path / "a")
    without = "import sys; sys.modules['numba'] = None; from hubbub.shared.command_line import main; main()"
    told = subprocess.run(
        [sys.executable, "-c", without, "aggregate", tmp_path / "a", "--counter", "numba"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stderr == 'Error: numba: is not installed: pip install "hubbub[fast]"; allowed without it: numpy\n'
    assert (told.returncode, told.stdout) == (1, "")


def test_from_wherever_and_by_processes_and_in_pieces_it_is_the_same(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    memory, far = f"memory://{tmp_path.name}", f"{bucket}/{tmp_path.name}"
    reports = fill(tmp_path / "a", group=50)
    fill(memory)
    fill(far, group=50)
    right = expected(reports)
    monkeypatch.setattr(counting, "POINT_REPORTS", 120)
    monkeypatch.setattr(counting, "LOOKED_AT", 2)
    monkeypatch.setattr(counting, "LOOKED_AT_HERE", 0)
    monkeypatch.setattr(counting, "WORTHWHILE_BYTES", 1)
    for arguments in ([tmp_path / "a"], [memory], [far], [far, "--engine", "dask"]):
        told = run(*arguments, "--workers", 2, "--json")
        assert told.code == 0, told.err
        document = json.loads(told.out)
        assert Tally.parse(json.dumps(document["tally"]), METRIC) == right
        assert document["periods"] == [{"period": str(day), "reports": 607} for day in DAYS]
        assert (document["files"], document["reports"], document["diagnostics"]) == (6, 3 * 607, [])


def test_reports_in_no_order_are_counted_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of ours is like that, but it would be a valid one."""
    reports = draw(METRIC, 3000, np.random.default_rng(4))
    monkeypatch.setattr(filing, "sort_reports", Reports)
    put(tmp_path, METRIC, DAYS[0], reports)
    place = Place(str(tmp_path))
    [listed] = place.files()
    [(_, runs)] = filing.read_runs(place, listed.name)
    assert runs is None
    head = filing.read_head(place, listed.name)
    n, counts = counted(METRIC, reports)
    for part in (len(reports.packed), 700, 1):
        monkeypatch.setattr(filing, "PART_BYTES", part * head.width)
        found = counting.count(place, [counting.Piece(listed.name, head, [0])], counting.How())
        np.testing.assert_array_equal(found.n[DAYS[0]], n)
        np.testing.assert_array_equal(found.counts[None], counts)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_work_is_cut_into_few_points_of_which_the_last_are_small(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, group=50)  # 300 and 307 reports a day
    monkeypatch.setattr(counting, "LAST_REPORTS", 100)
    place = Place(str(tmp_path))
    files = counting.look_at(place, [file.name for file in place.files()])
    points = list(counting._points(files, workers, 400))
    sizes = [sum(min(50, head.reports - 50 * each) for _, head, some in point for each in some) for point in points]
    assert sum(sizes) == 3 * 607
    assert max(sizes) <= 400
    left = 3 * 607
    for size in sizes:
        assert size <= max(left / workers, 100)
        left -= size
    assert workers == 1 or sizes[-1] <= 100  # it is all that was left, and no more than its share
    assert len(points) < 3 * 607 / 100  # fewer than if all were small
    assert any(len(point) > 1 for point in points)


@pytest.mark.parametrize("workers", [1, 2])
def test_who_counts_alone_takes_more_at_a_time(workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nobody to share with, and each point has an end of its own for every cohort."""
    fill(tmp_path, group=50)
    monkeypatch.setattr(counting, "POINT_REPORTS", 100)
    monkeypatch.setattr(counting, "LAST_REPORTS", 100)
    monkeypatch.setattr(counting, "ALONE_REPORTS", 5000)
    asked: list[int] = []

    class Watched(Workers):
        def map(self, function: Callable[..., Any], *columns: Sequence[Any]) -> Iterator[Any]:
            asked.append(len(columns[0]))
            return super().map(function, *columns)

    place = Place(str(tmp_path))
    with Watched(workers) as hands:
        assert counting.aggregate(place, Choice(), hands, place.files()).reports == dict.fromkeys(DAYS, 607)
    assert asked == [1] if workers == 1 else asked[0] >= 3 * 607 / 100


def test_only_what_is_chosen_is_counted(tmp_path: Path, run: Run) -> None:
    homepage, theme = fill(tmp_path / "a"), fill(tmp_path / "a", "theme")
    (tmp_path / "a" / "notes.txt").write_text("not a file of the archive")
    told = run(tmp_path / "a", "--metric", "theme", "--version", 1, "--start", DAYS[1], "--end", DAYS[1], "--json")
    assert Tally.parse(json.dumps(json.loads(told.out)["tally"]), REGISTRY["theme"]) == Tally(
        "theme", 1, *counted(REGISTRY["theme"], theme[DAYS[1]]), DAYS[1], DAYS[1]
    )
    one = tmp_path / "a" / "metric=homepage" / "version=1" / f"period={DAYS[2]}"
    told = run(one, "--json")
    assert json.loads(told.out)["reports"] == 607
    [first, _] = sorted(one.iterdir())
    told = run(first, "--json")
    assert json.loads(told.out)["reports"] in {300, 307}
    assert len(homepage) == 3
    for arguments in (["--metric", "other"], ["--end", DAYS[0] - timedelta(1)], ["--metric", "theme", "--version", 9]):
        told = run(tmp_path / "a", *arguments)
        assert (told.code, "holds no reports of" in told.err) == (1, True)


def test_several_metrics_or_versions_are_refused_by_name(tmp_path: Path, run: Run) -> None:
    fill(tmp_path / "a")
    name = put(tmp_path / "a", REGISTRY["theme"], DAYS[0], draw(REGISTRY["theme"], 5, np.random.default_rng(1)))
    told = run(tmp_path / "a", "--out", tmp_path / "tally.json")
    assert told.code == 1
    assert f"theme version 1 ({tmp_path}/a/{name})" in told.err
    assert "allowed: one metric and version, chosen by --metric and --version" in told.err
    newer = altered("[metrics.homepage]", "[metrics.homepage]\nversion = 2")
    put(tmp_path / "a", newer, DAYS[0], draw(newer, 5, np.random.default_rng(1)))
    assert "homepage version 1 (" in run(tmp_path / "a", "--metric", "homepage").err
    assert run(tmp_path / "a", "--metric", "homepage", "--version", 2).code == 0
    assert not (tmp_path / "tally.json").exists()


def test_one_version_with_two_meanings_is_refused_by_name(tmp_path: Path, run: Run) -> None:
    fill(tmp_path / "a")
    changed = altered("report = 1.0, lifetime = 4.0", "report = 1.1, lifetime = 4.0")
    name = put(tmp_path / "a", changed, DAYS[1], draw(changed, 5, np.random.default_rng(1)))
    told = run(tmp_path / "a", "--out", tmp_path / "tally.json")
    assert (told.code, name in told.err, "has another meaning than in" in told.err) == (1, True, True)
    assert not (tmp_path / "tally.json").exists()


def test_a_damaged_file_is_refused_and_nothing_is_written(tmp_path: Path, run: Run) -> None:
    fill(tmp_path / "a")
    (tmp_path / "tally.json").write_text("the old one")
    broken = next((tmp_path / "a").rglob("*.parquet"))
    broken.write_bytes(broken.read_bytes()[:-1])
    for place in (tmp_path / "a", broken):
        told = run(place, "--out", tmp_path / "tally.json")
        assert (told.code, told.out) == (1, "")
        assert told.err.startswith(f"Error: {broken}: cannot be read")
        assert told.err.count("\n") == 1
    assert (tmp_path / "tally.json").read_text() == "the old one"


def test_a_file_that_is_being_written_is_refused_unless_it_is_of_another_period(tmp_path: Path, run: Run) -> None:
    fill(tmp_path / "a")
    part = tmp_path / "a" / "metric=homepage" / "version=1" / f"period={DAYS[2]}" / "0.parquet.00.part"
    part.write_bytes(b"half")
    told = run(tmp_path / "a")
    assert (told.code, told.err.startswith(f"Error: {part}: is being written")) == (1, True)
    assert run(tmp_path / "a", "--end", DAYS[1]).code == 0


@pytest.mark.parametrize("change", ["come", "gone", "grown"])
def test_an_archive_that_changes_meanwhile_is_refused(
    change: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "a")
    file = next((tmp_path / "a").rglob("*.parquet"))
    changes: dict[str, Callable[[], object]] = {
        "come": lambda: shutil.copy(file, file.with_name("0.parquet")),
        "gone": file.unlink,
        "grown": lambda: file.write_bytes(file.read_bytes() + b"0"),
    }
    lists = choosing.list_files
    calls = []

    def listing(place: Place, choice: Choice) -> object:
        calls.append(choice)
        if len(calls) == 2:  # the count is done
            changes[change]()
        return lists(place, choice)

    monkeypatch.setattr(choosing, "list_files", listing)
    told = run(tmp_path / "a", "--out", tmp_path / "tally.json")
    assert told.code == 1
    assert "has come, gone or changed during the count" in told.err
    assert not (tmp_path / "tally.json").exists()


@contextmanager
def powerless() -> Iterator[None]:
    """Be nobody for a while: nothing is closed to root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("closed", ["file", "folder", "all"])
def test_what_may_not_be_read_is_told_and_not_left_out(closed: str, tmp_path: Path, run: Run) -> None:
    with TemporaryDirectory() as open_to_all:
        archive = Path(open_to_all) / "outer" / "a"
        fill(archive)
        file = next(archive.rglob("*.parquet"))
        path = {"file": file, "folder": file.parent, "all": archive.parent}[closed]
        Path(open_to_all).chmod(0o755)
        path.chmod(0)
        with powerless():
            told = run(archive)
        path.chmod(0o755)
    assert told.code == 1
    assert f"{archive if closed == 'all' else path}: Permission denied" in told.err


def test_a_process_that_is_killed_is_told_and_nothing_is_written(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "a")
    monkeypatch.setattr(counting, "WORTHWHILE_BYTES", 1)
    monkeypatch.setattr(counting, "POINT_REPORTS", 100)
    monkeypatch.setattr(counting, "count", die_at_the_end)
    told = run(tmp_path / "a", "--workers", 2, "--out", tmp_path / "tally.json")
    assert (told.code, "a process was ended from outside" in told.err) == (1, True)
    assert not (tmp_path / "tally.json").exists()


@pytest.fixture
def store(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path}/hubbub.db"
    with closing(Store(address)) as store:
        store.prepare(REGISTRY)
    return address


def test_a_store_gets_a_tally_for_each_period(tmp_path: Path, run: Run, store: str) -> None:
    reports = fill(tmp_path / "a")
    for times in (1, 2):  # and adding twice counts twice, as the docs say
        told = run(tmp_path / "a", "--store", store)
        assert (told.code, "added 1,821 reports to the store" in told.out) == (0, True), told.err
        with closing(Store(store)) as opened:
            for day in DAYS:
                n, counts = counted(METRIC, reports[day])
                assert opened.tally(METRIC, day, day) == Tally("homepage", 1, n * times, counts * times, day, day)


def test_a_store_that_does_not_fit_is_refused(tmp_path: Path, run: Run, store: str) -> None:
    changed = altered("report = 1.0, lifetime = 4.0", "report = 1.1, lifetime = 4.0")
    put(tmp_path / "a", changed, DAYS[1], draw(changed, 5, np.random.default_rng(1)))
    assert "the store gives it another meaning" in run(tmp_path / "a", "--store", store).err
    newer = altered("[metrics.homepage]", "[metrics.homepage]\nversion = 2")
    put(tmp_path / "b", newer, DAYS[1], draw(newer, 5, np.random.default_rng(1)))
    assert "homepage version 2: the store does not know that metric" in run(tmp_path / "b", "--store", store).err
    assert "is not there" in run(tmp_path / "b", "--store", f"sqlite:///{tmp_path}/other.db").err
    with closing(Store(store)) as opened:
        assert opened.held() == []


def test_a_store_is_not_given_its_own_archive(tmp_path: Path, run: Run, store: str) -> None:
    name = put(tmp_path / "a", METRIC, DAYS[0], draw(METRIC, 5, np.random.default_rng(1)))
    row = {"name": Path(name).stem, "metric": "homepage", "version": 1, "period": DAYS[0], "state": "written"}
    with closing(Store(store)) as opened:
        with opened.engine.begin() as connection:
            connection.execute(archive_file.insert(), [row | {"reports": 5, "digest": b""}])
        told = run(tmp_path / "a", "--store", store)
        assert (told.code, f"{name}: the store has counted these reports itself" in told.err) == (1, True), told.err
        assert opened.held() == []


def test_options_that_do_not_go_together_are_told(tmp_path: Path, run: Run, store: str) -> None:
    fill(tmp_path / "a")
    wrong: dict[str, list[object]] = {
        "--scheduler: is for": ["--scheduler", "tcp://127.0.0.1:1"],
        "--workers: is not for a --scheduler": ["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--workers", 2],
        "--out and --store: are both given": ["--out", tmp_path / "t.json", "--store", store],
        "--start: is after --end": ["--start", DAYS[1], "--end", DAYS[0]],
        "cannot be written: No such file or directory": ["--out", tmp_path / "none" / "t.json"],
        "--registry: is missing, and --diagnose needs it": ["--diagnose"],
    }
    for fault, arguments in wrong.items():
        told = run(tmp_path / "a", *arguments)
        assert (told.code, fault in told.err, told.err.count("\n")) == (1, True, 1), told.err
    assert "is not there; allowed: " in run(tmp_path / "none").err
    fill(f"memory://{tmp_path.name}", reports=5)
    told = run(f"memory://{tmp_path.name}", "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")
    assert "is in the memory of this process; allowed: --engine local" in told.err


def test_estimates_come_of_the_tally(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, registry: Path
) -> None:
    (tmp_path / "sites.txt").write_text("example.org\nexample.com\nexample.net\nnobody.example\n")
    tally = simulate_tally(METRIC, {"example.org": 30_000, "example.com": 20_000}, 1)
    (tmp_path / "tally.json").write_bytes(tally.json())
    estimate = run_here("estimate", capsys, monkeypatch)
    given = ("homepage", "--registry", registry, "--tally", tmp_path / "tally.json")
    told = estimate(*given, "--candidates", tmp_path / "sites.txt", "--json")
    assert told.code == 0, told.err
    assert [row["value"] for row in json.loads(told.out)["rows"]] == ["example.org", "example.com"]
    assert "--candidates: is missing" in estimate(*given).err
    assert "--tally: is given with --store" in estimate(*given, "--start", DAYS[0]).err
    assert "is of homepage version 1; allowed: homepage_classic" in estimate("homepage_classic", *given[1:]).err
    gone = estimate(*given[:-1], tmp_path / "gone.json", "--candidates", tmp_path / "sites.txt")
    assert "gone.json: cannot be read: No such file or directory" in gone.err


def test_progress_is_shown_on_a_terminal(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "a", reports=20)
    assert run(tmp_path / "a").err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "counting reports" in run(tmp_path / "a").err
