"""`hubbub estimate --plot`: a picture besides what is printed, or a refusal that leaves no file behind."""

import io
import xml.etree.ElementTree as ET
from datetime import date
from importlib.resources import files
from pathlib import Path

import pytest

from hubbub.collector.acceptance import Acceptance
from hubbub.collector.candidates import TEXT, spooling
from hubbub.collector.store import Store
from hubbub.collector.store.candidates import put_chunks
from hubbub.shared import Batch, Registry, Report
from hubbub.shared.wire import new_batch_id
from told import Run, run_here

MONDAY = date(2026, 11, 16)
TOML = files("hubbub.simulations").joinpath("demo.toml").read_text("utf-8")
REGISTRY = Registry.parse(TOML)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("plot")
    (place / "metrics.toml").write_text(TOML)
    store = Store(f"sqlite:///{place}/hubbub.db")
    store.prepare(REGISTRY)
    shard = store.shard(REGISTRY)
    acceptance = Acceptance(REGISTRY, clock=lambda: MONDAY)
    reports = [Report("crashed", 1, MONDAY, 0, bytes([number % 2])) for number in range(200)]
    shard.commit([acceptance.judge(Batch(new_batch_id(), (report,))) for report in reports])
    shard.close()
    with spooling(io.BytesIO(b"a.example\nb.example\n"), TEXT) as spooled:
        put_chunks(store.engine, "homepage", spooled.chunks(), spooled.strings)
    store.close()
    return place


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("HUBBUB_STORE", f"sqlite:///{folder}/hubbub.db")
    monkeypatch.setenv("HUBBUB_REGISTRY", f"{folder}/metrics.toml")
    return run_here("estimate", capsys, monkeypatch)


class TestPlot:
    def test_svg_and_png_are_written_besides_what_is_printed(self, run: Run, tmp_path: Path) -> None:
        picture = tmp_path / "crashed.svg"
        picture.write_text("an older one")
        plain, told = run("crashed", "--json"), run("crashed", "--json", "--plot", picture)
        assert (told.code, told.out, told.err) == (0, plain.out, "")
        root = ET.fromstring(picture.read_bytes())
        assert (root[0].text or "").startswith("crashed: true in ")
        assert "200 reports" in (root[1].text or "")
        assert run("crashed", "--plot", tmp_path / "crashed.PNG").code == 0
        assert (tmp_path / "crashed.PNG").read_bytes().startswith(b"\x89PNG")
        assert {each.name for each in tmp_path.iterdir()} == {"crashed.svg", "crashed.PNG"}

    def test_a_metric_without_reports_has_a_picture_that_says_so(self, run: Run, tmp_path: Path) -> None:
        assert run("homepage", "--plot", tmp_path / "none.svg").code == 0
        assert ET.fromstring((tmp_path / "none.svg").read_bytes())[0].text == "homepage: no reports"

    @pytest.mark.parametrize("name", ["picture.pdf", "picture", ".svg", "svg"])
    def test_another_ending_is_refused_before_any_work(self, run: Run, tmp_path: Path, name: str) -> None:
        told = run("nothing", "--store", "nowhere", "--plot", tmp_path / name)
        assert (told.code, told.out) == (1, "")
        assert told.err == f"Error: --plot: {tmp_path / name} has another ending; allowed: .svg, .png\n"
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_cannot_be_written_to_is_refused_before_any_work(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for folder, fault in (("none", "No such file or directory"), ("file", "Not a directory")):
            told = run("nothing", "--store", "nowhere", "--plot", tmp_path / folder / "a.svg")
            assert (told.code, told.out) == (1, "")
            assert told.err == (
                f"Error: --plot: {tmp_path / folder}/a.svg cannot be written: {fault}; "
                "allowed: a file in a folder that you may write to\n"
            )

    def test_a_picture_that_cannot_be_put_in_place_leaves_nothing_behind(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "a.svg").mkdir()
        told = run("crashed", "--plot", tmp_path / "a.svg")
        assert (told.code, told.out) == (1, "")
        assert f"{tmp_path}/a.svg cannot be written: Is a directory" in told.err
        assert [each.name for each in tmp_path.iterdir()] == ["a.svg"]
