"""A cohort with few reports in a period is withheld from tallies and exports: a sum of one report is that report."""

import csv
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from flask import Flask

from collector.apps import BEARER, collector_of, post, running
from collector.oracle import METRIC
from collector.stores import DAY
from hubbub.collector import Tally, decode
from hubbub.collector.decode.diagnostics import cohort_balance
from hubbub.collector.decode.noise import Noise
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.collector.store.bulk import put_tallies
from hubbub.collector.store.exporting import FORMATS, export
from hubbub.collector.store.shard import COUNTS
from hubbub.shared import Batch, Registry, Report, encode_batch
from hubbub.shared.period import today
from hubbub.shared.planning import DEFAULT_MIN_COHORT_REPORTS
from hubbub.shared.wire import new_batch_id
from told import Run, run_here

DEVICES, BUCKETS, DAYS = 1_000, 64, 3
LEAST = DEFAULT_MIN_COHORT_REPORTS
_METRIC = f"""
[metrics.{{name}}]
description = "Reports of random bits"
kind = "histogram"
every = "day"
edges = {list(range(BUCKETS + 1))}
sent = {BUCKETS}
cohorts = {{cohorts}}
privacy = {{{{ report = 1, lifetime = 2 }}}}
"""
COHORTS = {"sparse": 1024, "mixed": 64}
"""In the sparse metric every cell is small; in the mixed metric nearly 1 cell in 20 is."""

REGISTRY = Registry.parse("".join(_METRIC.format(name=name, cohorts=cohorts) for name, cohorts in COHORTS.items()))


def reports_of_devices() -> list[list[Report]]:
    """The reports of each device: every metric on every day, in one place among the cohorts."""
    rng, latest = np.random.default_rng(1), today()
    days = [latest - timedelta(days=number) for number in range(DAYS)]
    return [
        [Report(name, 1, day, place % COHORTS[name], rng.bytes(BUCKETS // 8)) for name in COHORTS for day in days]
        for place in rng.integers(0, 1024, DEVICES).tolist()
    ]


@pytest.fixture(scope="module")
def sent() -> list[Report]:
    return list(itertools.chain.from_iterable(reports_of_devices()))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, sent: list[Report]) -> Iterator[Flask]:
    """A collector that has taken the reports of every device, each in a batch."""
    with running(tmp_path_factory.mktemp("small"), REGISTRY) as served:
        client, size = served.test_client(), len(sent) // DEVICES
        for number in range(0, len(sent), size):
            answer = post(client, encode_batch(Batch(new_batch_id(), tuple(sent[number : number + size]))))
            assert answer.get_json()["accepted"] == size
        yield served


def cells_of(reports: list[Report], name: str) -> Counter[tuple[date, int]]:
    return Counter((report.period, report.cohort) for report in reports if report.metric == name)


def published(app: Flask, name: str, sent: list[Report]) -> dict[tuple[date, date], Tally]:
    """The tally of every range of days, as the API returns it."""
    days = sorted({report.period for report in sent})
    found = {}
    for start, end in itertools.combinations_with_replacement(days, 2):
        path = f"/v1/metrics/{name}/tally?start={start}&end={end}"
        found[start, end] = Tally.parse(app.test_client().get(path, headers=BEARER).data, REGISTRY[name])
    return found


@pytest.mark.parametrize("name", COHORTS)
def test_no_range_and_no_difference_of_ranges_is_a_report(app: Flask, sent: list[Report], name: str) -> None:
    by_cohort: dict[int, set[tuple[int, ...]]] = {}
    for report in sent:
        if report.metric == name:
            bits = np.unpackbits(np.frombuffer(report.bits, np.uint8), bitorder="little")
            by_cohort.setdefault(report.cohort, set()).add(tuple(bits.tolist()))
    found = published(app, name, sent)
    for tally in found.values():
        assert not np.any((tally.n > 0) & (tally.n < LEAST))
    for ((start, end), one), ((other_start, other_end), other) in itertools.permutations(found.items(), 2):
        if start <= other_start and other_end <= end:
            n = one.n - other.n
            assert not np.any((n != 0) & (n < LEAST))
        difference = one.counts - other.counts
        for cohort in np.flatnonzero(difference.any(axis=1)).tolist():
            assert tuple(difference[cohort].tolist()) not in by_cohort[cohort]


@pytest.mark.parametrize("name", COHORTS)
def test_a_tally_holds_every_other_cell_and_counts_what_it_withholds(app: Flask, sent: list[Report], name: str) -> None:
    cells = cells_of(sent, name)
    small = [count for count in cells.values() if count < LEAST]
    assert small
    document = app.test_client().get(f"/v1/metrics/{name}/tally", headers=BEARER).get_json()
    assert document["withheld"] == {"cohorts": len(small), "reports": sum(small), "min_cohort_reports": LEAST}
    metric = REGISTRY[name]
    large = [report for report in sent if report.metric == name and cells[report.period, report.cohort] >= LEAST]
    expected = Tally.of(metric, large)
    assert Tally.parse(json.dumps(document), metric) == Tally(
        name, 1, expected.n, expected.counts, min(cells)[0], max(cells)[0]
    )


@pytest.mark.parametrize(
    ("name", "words"), [("sparse", r"fewer than 10( to \d\d)? in each"), ("mixed", r"\d\d in each")]
)
def test_estimates_use_all_reports_and_show_no_small_count(
    app: Flask, sent: list[Report], name: str, words: str
) -> None:
    metric, client = REGISTRY[name], app.test_client()
    whole = Tally.of(metric, [report for report in sent if report.metric == name])
    assert collector_of(app).store.tally(metric) == whole
    found = client.get(f"/v1/metrics/{name}/estimates", headers=BEARER).get_json()
    assert found["reports"] == DEVICES * DAYS
    assert [row["share"] for row in found["rows"]] == [row.share for row in decode(metric, whole, periods=DAYS).rows]
    page = client.get(f"/metric/{name}", headers=BEARER | {"Accept": "text/html"}).text
    for text in (json.dumps(found["diagnostics"]), page):
        assert re.search(words, text)
        assert not re.search(r"\b\d to \d+ in each", text)


@pytest.mark.parametrize(
    ("reports", "words"),
    [([3, 7], "fewer than 10 in each"), ([9, 10], "fewer than 10 to 10 in each"), ([10, 1200], "10 to 1,200 in each")],
)
def test_the_balance_of_cohorts_hides_small_counts(reports: list[int], words: str) -> None:
    assert f"cohorts: {words}" in cohort_balance(np.array(reports), Noise.of(METRIC.response)).sentence


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return run_here("export", capsys, monkeypatch)


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_withholds_the_same_cells(
    app: Flask, sent: list[Report], run: Run, tmp_path: Path, form: str
) -> None:
    path, address = tmp_path / "out", str(collector_of(app).store.engine.url)
    printed = run("--format", form, "--out", path, "--store", address)
    counts: Counter[tuple[str, date, int]] = Counter((each.metric, each.period, each.cohort) for each in sent)
    small = {cell: count for cell, count in counts.items() if count < LEAST}
    assert printed.out == (
        f"{path}: {len(counts) - len(small)} rows\n"
        f"withheld {len(small):,} cells with {sum(small.values()):,} reports: cohorts with fewer than {LEAST} reports "
        "in one period; --min-cohort-reports changes this\n"
    )
    assert exported(path, form) == {cell: count for cell, count in counts.items() if cell not in small}
    if form == "json":
        withheld = [document["withheld"] for document in json.loads(path.read_text())]
        assert len(withheld) == len(COHORTS) * DAYS
        assert sum(each["cohorts"] for each in withheld) == len(small)
        assert sum(each["reports"] for each in withheld) == sum(small.values())
    whole = run("--format", form, "--out", path, "--store", address, "--min-cohort-reports", 1)
    assert whole.out == f"{path}: {len(counts)} rows\n"
    assert exported(path, form) == counts


def exported(path: Path, form: str) -> dict[tuple[str, date, int], int]:
    """The reports of each metric, period and cohort in an exported file."""
    if form == "csv":
        with path.open() as file:
            return {
                (row["metric"], date.fromisoformat(row["period"]), int(row["cohort"])): int(row["n"])
                for row in csv.DictReader(file)
            }
    if form == "json":
        return {
            (document["metric"], date.fromisoformat(document["start"]), cohort["cohort"]): cohort["n"]
            for document in json.loads(path.read_text())
            for cohort in document["cohorts"]
        }
    from pyarrow import parquet

    return {(row["metric"], row["period"], row["cohort"]): row["n"] for row in parquet.read_table(path).to_pylist()}


def test_a_cell_is_added_up_over_shards_and_not_over_periods(ready: Store, tmp_path: Path) -> None:
    ones, later = np.ones(METRIC.size, COUNTS).tobytes(), DAY + timedelta(days=1)
    with writing(ready.engine) as connection:
        for shard in (101, 102):
            put_tallies(connection, shard, [("oracle", 1, DAY, 0, 5, ones)])
        put_tallies(connection, 101, [("oracle", 1, day, 1, 9, ones) for day in (DAY, later)])
    document = ready.published_tally(METRIC, LEAST)
    assert [(cohort.cohort, cohort.n, set(cohort.counts)) for cohort in document.cohorts] == [(0, 10, {2})]
    assert (document.start, document.end) == (DAY, later)
    _, withheld = export(ready, "csv", tmp_path / "out.csv")
    assert withheld == document.withheld
    assert (withheld.cohorts, withheld.reports) == (2, 18)


def test_an_operator_chooses_the_number(tmp_path: Path) -> None:
    report = Report("mixed", 1, today(), 0, bytes(BUCKETS // 8))
    with running(tmp_path, REGISTRY, min_cohort_reports=2) as app:
        client = app.test_client()
        for cohorts in (0, 1):
            post(client, encode_batch(Batch(new_batch_id(), (report,))))
            document = client.get("/v1/metrics/mixed/tally", headers=BEARER).get_json()
            assert len(document["cohorts"]) == cohorts
            assert document["withheld"]["min_cohort_reports"] == 2
