"""The page of `make bench` is what the script makes of what it measured, and says what it could not measure."""

import platform
import re
import socket
import sys
import venv
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True, scope="module")
def _importable() -> Iterator[None]:
    """Last on the path: folders of the root have names that tests use, too."""
    sys.path.append(str(ROOT))
    yield
    sys.path.remove(str(ROOT))


def test_the_page_is_made_from_what_was_measured() -> None:
    from benchmarks import page

    assert page.PAGE.read_text(encoding="utf-8") == page.page(page.read())


def test_the_plan_is_made_from_what_was_measured() -> None:
    from benchmarks import page, scale

    text = page.SCALE.read_text(encoding="utf-8")
    sections = scale.sections(page.read().figures)
    assert set(re.findall(r"<!-- begin (\S+) -->", text)) == set(sections)
    for name, section in sections.items():
        assert f"<!-- begin {name} -->\n\n{section.strip()}\n\n<!-- end {name} -->" in text


def test_every_part_is_on_the_page_and_every_row_names_a_benchmark() -> None:
    from benchmarks import page, part
    from benchmarks.peer_environment import PEERS, label

    measured = page.read()
    assert list(measured.parts) == list(part.PARTS)
    assert list(measured.peers) == [label(package) for package in PEERS]
    known = set(re.findall(r'"(\w+)": \w+\.main', (ROOT / "benchmarks/__main__.py").read_text())) | set(part.PARTS)
    assert {row.by for each in measured.parts.values() for row in each.rows} <= known


def test_the_machine_is_described_without_its_name() -> None:
    from benchmarks import machine, page

    told = machine.describe()
    assert list(told) == ["cores", "processor", "architecture", "memory", "system", "Python", "numpy"]
    assert all(told.values())
    for names in (told.values(), [page.PAGE.read_text(encoding="utf-8")]):
        words = {word for text in names for word in re.findall(r"[\w.-]+", text)}
        assert not words & {platform.node(), socket.gethostname(), socket.getfqdn()}


def test_a_ratio_says_how_many_times_better_and_what_was_missed() -> None:
    from benchmarks.findings import Row

    more = Row("rate", "b", "peer", 3000, 1500, wanted=1.5)
    assert more.cells == ["rate", "3,000", "peer", "1,500", "2", ">= 1.50", "`b`"]
    less = Row("seconds", "b", "peer", 0.5, 0.125, better="less", wanted=1)
    assert less.cells == ["seconds", "0.500", "peer", "0.125", "0.250", ">= 1, missed", "`b`"]
    failed = Row("rate", "b", "peer", 3000, fault="failed: no wheel", wanted=2)
    assert failed.cells == ["rate", "3,000", "peer", "", "failed: no wheel", ">= 2", "`b`"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (0, "0"),
        (1234567.8, "1,234,568"),
        (12.34, "12.3"),
        (1.234, "1.23"),
        (0.05, "0.050"),
        (4e-5, "4e-05"),
    ],
)
def test_numbers_have_three_digits(value: float | None, shown: str) -> None:
    from benchmarks.findings import number

    assert number(value) == shown


def test_a_table_has_words_on_the_left_and_numbers_on_the_right() -> None:
    from benchmarks.writing import table

    assert table(["a", "n", "w"], [["bb", "10", "x"]], words=(0, 2)).splitlines() == [
        "| a  |  n | w |",
        "| -- | -: | - |",
        "| bb | 10 | x |",
    ]


def test_a_tool_that_is_missing_is_a_line_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import load, page
    from benchmarks.parts import ingest

    monkeypatch.setattr(load, "WRK", None)
    found = ingest.measure()
    measured = page.Measured(date(2026, 11, 16), False, 60, {}, {}, {"ingest": found})
    assert "- durable ingest: not measured, because wrk is not installed" in page.page(measured)


@pytest.mark.parametrize("quick", [True, False])
def test_a_quick_run_says_so(quick: bool) -> None:
    from benchmarks import page

    measured = page.Measured(date(2026, 11, 16), quick, 60, {}, {}, {})
    assert ("**A quick run: too short to be believed.**" in page.page(measured)) is quick


def test_a_part_that_fails_is_a_line_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import part

    monkeypatch.setitem(part.PARTS, "absent", "something")
    [line] = part.run("absent").missing
    assert line.startswith("something: not measured, because the benchmark failed: ModuleNotFoundError")


def test_a_peer_that_cannot_be_installed_is_told_and_sinks_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from benchmarks import peer_environment
    from benchmarks.peer_environment import PEERS, PeerError, Peers

    asked: list[str] = []

    def install(arguments: list[str]) -> str:
        asked.append(arguments[-1])
        if arguments[-1].startswith("opendp"):
            raise PeerError("no wheel")
        return ""

    def create(folder: Path, **_: object) -> None:
        folder.mkdir()

    monkeypatch.delenv("HUBBUB_BENCH_PEERS", raising=False)
    monkeypatch.setattr(peer_environment, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(peer_environment, "_run", install)
    monkeypatch.setattr(venv, "create", create)
    peers = Peers.find()
    assert peers.failed == {"opendp": "no wheel"}
    assert {peer_environment.package_of(each) for each in asked} >= set(PEERS)
    assert [peers.state(package) for package in ("opendp", "pure-ldp")] == ["not installed: no wheel", "installed"]
    asked.clear()
    assert (Peers.find().failed, asked) == ({"opendp": "no wheel"}, [])
    assert Peers.find(again=True).failed
    assert [peer_environment.package_of(each) for each in asked] == ["opendp"]


def figures() -> dict[str, float]:
    from benchmarks import scale

    return dict.fromkeys(scale.FIGURES, 1.0) | {
        "sqlite_rate": 1000.0,
        "postgresql_rate": 2000.0,
        "postgresql_collector_cpu": 4e-4,
        "postgresql_database_cpu": 1e-4,
        "postgresql_id_bytes": 100.0,
        "postgresql_tally_bytes": 1000.0,
        "archive_bytes": 16.0,
        "archive_rate": 1e7,
        "wire_json_10": 60.0,
        "postgresql_written": 1000.0,
    }


def test_a_plan_is_reckoned_as_it_says() -> None:
    from benchmarks.scale import Plan

    plan = Plan(10**10, figures())
    assert plan.peak == pytest.approx(1e9 * 3 / 86_400)
    assert (plan.store, plan.processes, plan.tally_rows) == ("PostgreSQL", 35, 10 * 64 * 35)
    assert plan.collector_cores == pytest.approx(plan.peak * 4e-4 / 0.5)
    assert plan.id_gb == pytest.approx(1e9 * 15 * 100 / 1e9)
    assert plan.archive_gb_a_day == pytest.approx(160)
    assert plan.network_mbit == pytest.approx(10**10 * 60 * 8 * 3 / 86_400 / 1e6)
    assert plan.counting_hours == pytest.approx(1000 / 3600)
    assert (plan.first, plan.databases) == ("disk for batch ids", 3)
    assert (Plan(10**6, figures()).store, Plan(10**6, figures()).processes) == ("SQLite", 1)


def test_nothing_is_reckoned_from_a_figure_that_is_not_there() -> None:
    from benchmarks import scale

    some = figures()
    del some["archive_rate"]
    sections = scale.sections(some)
    assert "not measured" in sections["scale-measured"]
    assert sections["scale-plan"].startswith("Not reckoned: the run had no figure for archive, reports/s counted")
