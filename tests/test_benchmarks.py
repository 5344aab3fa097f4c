"""The page of `make bench` is what the script makes of what it measured, and says what it could not measure."""

import platform
import re
import socket
import sys
import venv
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import ClassVar

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
        "sqlite_rate_1": 2000.0,
        "postgresql_rate": 2000.0,
        "postgresql_rate_1": 4000.0,
        "postgresql_collector_cpu": 4e-4,
        "postgresql_collector_cpu_1": 2e-4,
        "postgresql_database_cpu": 1e-4,
        "postgresql_database_cpu_1": 5e-5,
        "postgresql_id_bytes": 100.0,
        "postgresql_id_bytes_1": 100.0,
        "postgresql_tally_bytes": 1000.0,
        "archive_bytes": 16.0,
        "archive_rate": 1e7,
        "wire_json_10": 60.0,
        "wire_json_1": 400.0,
        "postgresql_written": 1000.0,
    }


def test_a_plan_is_reckoned_as_it_says() -> None:
    from benchmarks.scale import Plan

    plan = Plan(10**10, figures())
    assert plan.peak == pytest.approx(1e9 * 3 / 86_400)
    assert (plan.store, plan.processes, plan.tally_rows) == ("PostgreSQL", 35, 10 * 64 * 35)
    assert plan.collector_cores == pytest.approx(plan.peak * 4e-4 / 0.5)
    assert plan.id_gb == pytest.approx(1e9 * 16 * 100 / 1e9)
    assert plan.archive_gb_a_day == pytest.approx(160)
    assert plan.network_mbit == pytest.approx(10**10 * 60 * 8 * 3 / 86_400 / 1e6)
    assert plan.written_mb == pytest.approx(plan.peak * (1000 + 160) / 1e6)
    assert plan.counting_hours == pytest.approx(1000 / 3600)
    assert (plan.first, plan.databases, plan.links) == ("disk for batch ids", 4, 1)
    assert (Plan(10**6, figures()).store, Plan(10**6, figures()).processes) == ("SQLite", 1)


def test_what_is_listed_is_paid_for() -> None:
    from benchmarks.scale import Plan

    plan = Plan(10**10, figures())
    assert plan.paid_cores == 28 + 4 * 16  # 27.8 cores of collectors, and four database machines
    assert plan.gb_months == pytest.approx(4 * 1000 + 30 * 160)
    small = Plan(10**6, figures() | {"sqlite_collector_cpu": 1e-3})
    assert (small.paid_cores, small.store_gb) == (1, small.id_gb + small.tally_gb)


def test_reports_that_come_one_by_one_cost_more() -> None:
    from benchmarks.scale import Plan

    plan, alone = Plan(10**10, figures()), Plan(10**10, figures(), in_batch=1)
    assert alone.peak == pytest.approx(10 * plan.peak)
    assert alone.ids == pytest.approx(10 * plan.ids)
    assert alone.processes == -(-alone.peak // 2000)
    assert alone.network_gb_a_day == pytest.approx(4000)
    assert (alone.databases, alone.links) == (32, 3)
    assert alone.archive_gb_a_day == plan.archive_gb_a_day


def test_several_collectors_and_an_archive_make_a_batch_dearer() -> None:
    from benchmarks.scale import Plan

    plain = Plan(10**10, figures())
    crowded = Plan(10**10, figures() | {"several_collector_cpu": 1.6, "several_database_cpu": 1.5})
    assert crowded.collector_cores == pytest.approx(1.6 * plain.collector_cores)
    assert crowded.database_cores == pytest.approx(1.5 * plain.database_cores)
    assert crowded.processes == -(-plain.peak * 1.6 // 1000)
    lucky = Plan(10**10, figures() | {"several_collector_cpu": 0.9})
    assert lucky.processes == plain.processes
    kept = Plan(10**10, figures() | {"archive_slower": 1.25, "archive_cpu": 1.2})
    assert kept.rate == pytest.approx(plain.rate / 1.25)
    assert kept.collector_cores == pytest.approx(1.2 * plain.collector_cores)


def test_ids_are_kept_until_they_are_purged() -> None:
    """One id a day, purged as the collector purges: how many are there, when the day's has come?"""
    from benchmarks import scale

    from hubbub.collector.acceptance import DEFAULT_DAYS_BACK
    from hubbub.collector.collector import CLOCK_DAYS

    today = date(2026, 11, 16)
    periods = [today - timedelta(days=scale.COMES_LATER + ago) for ago in range(100)]
    oldest = today - timedelta(days=DEFAULT_DAYS_BACK) - timedelta(days=CLOCK_DAYS)
    assert sum(period >= oldest for period in periods) == scale.ID_DAYS


def test_an_archive_is_counted_no_faster_than_a_disk_reads() -> None:
    from benchmarks.scale import DISK_MB_S, Plan

    slow, fast = (Plan(10**10, figures() | {"archive_rate": rate}) for rate in (1e7, 1e9))
    assert slow.counting_hours == pytest.approx(10**10 / 1e7 / 3600)
    assert fast.counting_hours == pytest.approx(10**10 * 16 / (DISK_MB_S * 1e6) / 3600)


def test_other_pages_quote_what_was_measured() -> None:
    from benchmarks import page, quoted

    for (name, place), text in quoted.sections(page.read()).items():
        told = (ROOT / name).read_text(encoding="utf-8")
        assert f"<!-- begin {place} -->\n\n{text.strip()}\n\n<!-- end {place} -->" in told


def test_what_was_not_measured_is_not_quoted() -> None:
    from benchmarks import page, quoted

    measured = page.Measured(date(2026, 11, 16), False, 60, dict.fromkeys(page.read().machine, "?"), {}, {})
    told = quoted.sections(measured)["README.md", "fast"]
    assert told.count("not measured") == len(quoted.SHOWN) + 3
    assert not re.search(r"\d\.\d", told)


def test_the_readme_promises_of_strings_what_the_table_of_all_settings_says() -> None:
    """Both are written by `python -m benchmarks accuracy --write`."""
    table = (ROOT / "docs/comparison.md").read_text(encoding="utf-8").partition("<!-- begin accuracy -->")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "]
    head, *rows = rows
    trials, false, covers, found = (
        head.index(name) for name in ("trials", "false", "covers, all true strings", "covers, those reported")
    )
    [every] = [row for row in rows if row[0] == "all"]
    settings = [row for row in rows if row[0].startswith("k=")]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("<!-- begin accuracy -->")[2].partition("<!-- end accuracy -->")[0]
    numbers = re.findall(r"[\d,]+\.\d|[\d,]{2,}(?= simulated| settings)", section)

    def percent(cell: str) -> str:
        return cell.partition("%")[0].strip()

    told = {place: [percent(row[place]) for row in settings if row[place] != "-"] for place in (found, false)}
    spread = {place: sorted(numbers, key=float) for place, numbers in told.items()}
    assert numbers == [
        f"{int(every[trials].replace(',', '')):,}",
        str(len(settings)),
        *(percent(every[place]) for place in (covers, found, false)),
        *(spread[place][end] for place in (found, false) for end in (0, -1)),
    ]


def test_nothing_is_reckoned_from_a_figure_that_is_not_there() -> None:
    from benchmarks import scale

    some = figures()
    del some["archive_rate"]
    sections = scale.sections(some)
    assert "not measured" in sections["scale-measured"]
    assert sections["scale-plan"].startswith("Not reckoned: the run had no figure for archive, reports/s counted")


def test_a_share_has_an_error_that_counts_trials_and_is_never_nothing() -> None:
    from benchmarks.accuracy import Measured

    together = Measured.of([10, 0, 10, 0], [10, 10, 10, 10])
    apart = Measured.of([5, 5, 5, 5], [10, 10, 10, 10])
    assert together is not None
    assert apart is not None
    assert together.share == apart.share == 0.5
    assert together.error == pytest.approx(1.96 * 0.25)  # four trials that are all or nothing, not forty draws
    assert apart.error == pytest.approx(1.96 * 0.25 / 44**0.5 * 2)
    sure = Measured.of([3, 2], [3, 2])
    assert sure is not None
    assert (sure.share, sure.error > 0.2) == (1.0, True)
    assert Measured.of([0, 0], [0, 0]) is None


def test_counting_is_held_against_every_peer_with_mixed_cohorts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.counting import ALONE
    from benchmarks.parts import counts
    from benchmarks.peer_environment import PeerError

    class Slow:
        """Peers that count a million reports a second, but for one that cannot."""

        failed: ClassVar[dict[str, str]] = {}

        @classmethod
        def find(cls) -> "Slow":
            return cls()

        def do(self, _: str, job: dict[str, object]) -> dict[str, float]:
            if job["library"] == "opendp":
                raise PeerError("no wheel")
            return {"rate": 1e6}

    monkeypatch.setattr(counts, "Peers", Slow)
    rows = counts._peers({f"numpy, {ALONE}": 1e8, f"numpy, {counts.MIXED}": 1e7})
    assert [row.ratio for row in rows] == [100, 100, None, 10, 10, None]
    assert {row.wanted for row in rows} == {20}
    assert [row.cells[5] for row in rows[3:]] == [">= 20, missed", ">= 20, missed", ">= 20"]
    assert rows[5].fault == "failed: no wheel"


def test_a_guess_says_how_sure_it_is() -> None:
    from benchmarks.parts.promises import _guesses

    assert _guesses((0.88, 10_000)) == "88.0 % ± 0.6, 10,000 devices"
    assert _guesses((1.0, 200)) == "100.0 % ± 0.9, 200 devices"


def test_what_is_far_off_has_a_large_error() -> None:
    """The error that decoders are compared by is over all strings and all seeds; fewer reports make it larger."""
    from benchmarks.decode_worker import measure

    text = '[metrics.m]\ndescription = "m"\nkind = "string"\nevery = "once"\nprivacy = { f = 0.5 }\n'
    job = {"registry": text + "bits = 32\nhashes = 1\ncohorts = 16\n", "candidates": 20, "strings": 10, "rounds": 1}
    few, many = (measure(job | {"reports": reports, "seeds": 3})["error"] for reports in (1_000, 1_000_000))
    assert 0.0001 < many < 0.01 < few < 0.2


def test_the_interval_of_a_ratio_is_of_rounds_that_both_shared() -> None:
    from benchmarks.ratios import between, mean_rate

    slow, fast = [2.0, 2.0, 4.0, 4.0, 1.0, 1.0], [1.0, 1.0, 2.0, 2.0, 0.5, 0.5]
    assert mean_rate(fast) / mean_rate(slow) == pytest.approx(2)
    assert between(fast, slow, 2) == pytest.approx((2, 2))  # however fast a round was, it was so for both
    assert between([1.0, 0.5] * 3, [1.0] * 6, 2) == pytest.approx((1.5, 1.5))  # counts of one round stay together
    unlike = [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]
    low, high = between(unlike, slow, 2)
    assert low < mean_rate(unlike) / mean_rate(slow) < high
