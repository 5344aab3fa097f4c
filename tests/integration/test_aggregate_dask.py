"""An archive counted on a real Dask cluster: the same tally, whatever happens to a worker; none, if all is lost."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from clusters import cluster
from collector.archives import DAYS, REGISTRY, counted, fill, joined, kill_once
from hubbub.collector import work
from hubbub.collector.archive import aggregate as counting
from hubbub.collector.tally import Tally
from shared.registries import EXAMPLE
from told import Run, run_here

METRIC = REGISTRY["homepage"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(counting, "POINT_REPORTS", 100)  # some forty points
    monkeypatch.setattr(counting, "LOOKED_AT", 2)
    monkeypatch.setattr(counting, "LOOKED_AT_HERE", 0)
    return run_here("aggregate", capsys, monkeypatch)


@pytest.fixture
def right(tmp_path: Path) -> Tally:
    """What there is to count."""
    reports = fill(tmp_path / "a", group=50)
    return Tally("homepage", 1, *counted(METRIC, joined([*reports.values()])), DAYS[0], DAYS[-1])


def test_a_cluster_counts_the_same_and_tells_of_faults(
    tmp_path: Path, run: Run, right: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metrics.toml").write_text(EXAMPLE)
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    out = tmp_path / "tally.json"
    with cluster(2) as dask:
        given = ("a", "--engine", "dask", "--scheduler", dask.address, "--out", out)
        told = run(*given, "--diagnose", "--registry", "metrics.toml")
        assert told.code == 0, told.err
        assert Tally.parse(out.read_bytes(), METRIC) == right
        assert "repeated_reports: 0 of 1,821 reports" in told.out
        out.unlink()
        assert run(*given, "--counter", "numba").code == 0
        assert Tally.parse(out.read_bytes(), METRIC) == right
        out.unlink()
        broken = next((tmp_path / "a").rglob("*.parquet"))
        broken.write_bytes(broken.read_bytes()[:-1])
        told = run(*given)
        assert (told.code, told.err.startswith(f"Error: {broken}: cannot be read")) == (1, True), told.err
        assert not out.exists()


def test_a_lost_worker_changes_nothing_and_a_lost_scheduler_is_told(
    tmp_path: Path, run: Run, right: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "count", kill_once)
    out = tmp_path / "tally.json"
    with cluster(2) as dask:
        given = (tmp_path / "a", "--engine", "dask", "--scheduler", dask.address, "--out", out)
        (tmp_path / "kill").write_text("0")
        told = run(*given)
        assert told.code == 0, told.err
        assert not (tmp_path / "kill").exists()
        assert Tally.parse(out.read_bytes(), METRIC) == right
        out.unlink()
        (tmp_path / "kill").write_text(str(dask.scheduler))
        told = run(*given)
        assert told.code == 1
        assert told.err.startswith(f"Error: scheduler {dask.address}: was lost"), told.err
        assert told.err.count("\n") == 1
        assert not (tmp_path / "kill").exists()
        assert not out.exists()


def test_a_cluster_with_another_version_is_refused(tmp_path: Path, run: Run, right: Tally) -> None:
    other = tmp_path / "other" / "hubbub-99.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: hubbub\nVersion: 99.1\n")
    with cluster(1, tmp_path / "other") as dask:
        told = run(tmp_path / "a", "--engine", "dask", "--scheduler", dask.address, "--out", tmp_path / "tally.json")
    assert told.code == 1
    assert f"has another hubbub: version 99.1; allowed: {version('hubbub')} on all of them" in told.err
    assert not (tmp_path / "tally.json").exists()


def test_a_worker_of_another_version_that_joins_late_is_refused(
    tmp_path: Path, run: Run, right: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not there when the others were asked: what it is given to do asks again."""
    monkeypatch.setattr(work, "_check_versions", lambda *_: None)
    other = tmp_path / "other" / "hubbub-99.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: hubbub\nVersion: 99.1\n")
    with cluster(1, tmp_path / "other") as dask:
        told = run(tmp_path / "a", "--engine", "dask", "--scheduler", dask.address, "--out", tmp_path / "tally.json")
    assert (told.code, told.err.count("\n")) == (1, 1), told.err
    assert f"has another hubbub: version 99.1; allowed: {version('hubbub')} on all of them" in told.err
    assert not (tmp_path / "tally.json").exists()


def test_without_a_scheduler_a_cluster_of_its_own_is_started(tmp_path: Path, right: Tally) -> None:
    out = tmp_path / "tally.json"
    hubbub = str(Path(sys.executable).with_name("hubbub"))
    given = [hubbub, "aggregate", str(tmp_path / "a"), "--engine", "dask", "--workers", "2", "--out", str(out)]
    with cluster(0):  # another one, which has the port that Dask would take
        told = subprocess.run(given, capture_output=True, text=True, timeout=120, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert Tally.parse(out.read_bytes(), METRIC) == right
