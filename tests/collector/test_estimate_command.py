"""`hubbub estimate`: what a store says about metrics of every kind.

Reports are drawn with a fixed seed; shares and means are allowed six standard errors, for fewer than a hundred of them
a chance below 10^-6 to fail by luck.
"""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from hubbub.collector.acceptance import Acceptance
from hubbub.collector.candidates import TEXT, spooling
from hubbub.collector.store import Store
from hubbub.collector.store.candidates import put_chunks
from hubbub.shared import Batch, Registry, Report
from hubbub.shared.metric import Metric
from hubbub.shared.wire import new_batch_id
from told import Run, run_here

TOML = """
[metrics.page]
description = "Page"
kind = "string"
every = "day"
bits = 32
hashes = 1
cohorts = 16
lifetime_values = "unlimited"
privacy = { report = 5, lifetime = 8 }

[metrics.language]
description = "Language"
kind = "string"
every = "once"
bits = 32
hashes = 2
cohorts = 16
privacy = { epsilon = 8 }

[metrics.theme]
description = "Colour theme"
kind = "category"
every = "week"
categories = ["light", "dark", "system"]
privacy = { report = 3, lifetime = 5 }

[metrics.crashed]
description = "Whether it crashed"
kind = "flag"
every = "day"
privacy = { report = 2, lifetime = 4 }

[metrics.minutes]
description = "Minutes of use"
kind = "mean"
every = "day"
low = 0
high = 100
privacy = { report = 2, lifetime = 4 }

[metrics.startup]
description = "Start-up time"
kind = "histogram"
every = "day"
edges = [0, 10, 20, 30]
sent = 3
privacy = { report = 3, lifetime = 5 }

[metrics.quiet]
description = "Nobody reports it"
kind = "flag"
every = "day"
privacy = { report = 2, lifetime = 4 }
"""
REGISTRY = Registry.parse(TOML)
MONDAY = date(2026, 11, 16)
DAYS = (MONDAY, MONDAY + timedelta(days=2))
TRUTH: dict[str, dict[str | bool | float, float]] = {
    "page": {"a.org": 0.6, "b.org": 0.4},
    "language": {"en": 0.7, "eo": 0.3},
    "theme": {"light": 0.5, "dark": 0.4, "system": 0.1},
    "crashed": {True: 0.2, False: 0.8},
    "minutes": {20.0: 0.5, 60.0: 0.5},
    "startup": {5.0: 0.2, 15.0: 0.3, 25.0: 0.5},
}
DEVICES = 4000


def reports(metric: Metric, rng: np.random.Generator) -> Iterator[Report]:
    """One report of each device, half of them of each day, with the noise that the metric asks for."""
    truth = TRUTH[metric.name]
    response, size = metric.response, metric.size
    values = list(truth)
    for device in range(DEVICES):
        value = values[rng.choice(len(values), p=list(truth.values()))]
        cohort = int(rng.integers(metric.encoding.cohorts))
        encoded = metric.encode(value, cohort, int(rng.integers(1 << 32)))
        held = np.array([encoded >> bit & 1 for bit in range(size)])
        sent = rng.random(size) < np.where(held, response.truth_is_sent, response.noise_is_sent)
        period = MONDAY if metric.every == "week" else DAYS[device % 2]
        yield Report(metric.name, metric.version, period, cohort, np.packbits(sent, bitorder="little").tobytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry, candidates and a store with reports of all kinds in it."""
    made = tmp_path_factory.mktemp("estimate")
    (made / "metrics.toml").write_text(TOML)
    (made / "pages.txt").write_text("a.org\nb.org\n" + "".join(f"absent{number}.org\n" for number in range(20)))
    store = Store(f"sqlite:///{made}/hubbub.db")
    store.prepare(REGISTRY)
    shard = store.shard(REGISTRY)
    acceptance = Acceptance(REGISTRY, clock=lambda: DAYS[1])
    rng = np.random.default_rng(1)
    by_device = zip(*(reports(REGISTRY[name], rng) for name in TRUTH), strict=True)
    judged = [acceptance.judge(Batch(new_batch_id(), of_one)) for of_one in by_device]
    assert not any(each.rejected for each in judged)
    shard.commit(judged)
    shard.close()
    with spooling(io.BytesIO(b"en\neo\nde\n"), TEXT) as spooled:
        put_chunks(store.engine, "language", spooled.chunks(), spooled.strings)
    store.close()
    return made


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line, in this process, told of store and registry by the environment."""
    monkeypatch.setenv("HUBBUB_STORE", f"sqlite:///{folder}/hubbub.db")
    monkeypatch.setenv("HUBBUB_REGISTRY", f"{folder}/metrics.toml")
    return run_here("estimate", capsys, monkeypatch)


class TestKinds:
    @pytest.mark.parametrize("name", ["language", "theme", "crashed", "startup"])
    def test_shares(self, run: Run, name: str) -> None:
        told = run(name, "--json")
        assert told.code == 0, told.err
        document = json.loads(told.out)
        assert (document["metric"], document["reports"]) == (name, DEVICES)
        shares = {"true" if value is True else str(value): share for value, share in TRUTH[name].items()}
        shares.pop("False", None)
        if name == "startup":  # in the order of the buckets, whatever they are called
            shares = dict(zip([row["value"] for row in document["rows"]], shares.values(), strict=True))
        assert {row["value"] for row in document["rows"]} >= set(shares)
        for row in document["rows"]:
            if row["value"] in shares:
                assert abs(row["share"] - shares[row["value"]]) < 6 * row["standard_error"]
                assert row["standard_error"] < 0.1
        assert str(DEVICES // 1000) in run(name).out.splitlines()[0]

    def test_strings_of_a_file(self, run: Run, folder: Path) -> None:
        asked = ("page", "--candidates", folder / "pages.txt", "--family-wise", "0.0000001")
        document = json.loads(run(*asked, "--json").out)
        assert [row["value"] for row in document["rows"]] == ["a.org", "b.org"]
        for row in document["rows"]:
            assert abs(row["consistent"] - TRUTH["page"][row["value"]]) < 6 * row["found_error"]
        assert document["control"] == "family-wise:1e-07"
        everything = json.loads(run(*asked, "--json", "--all").out)
        assert len(everything["rows"]) == 22
        shown = run(*asked).out
        assert "2 of 22 candidates found (family-wise:1e-07)" in shown
        assert "absent7.org" not in shown
        assert "absent7.org" in run(*asked, "--all").out
        rows = list(csv.DictReader(io.StringIO(run(*asked, "--csv").out)))
        assert [row["value"] for row in rows] == ["a.org", "b.org"]
        assert len(run(*asked, "--csv", "--all").out.splitlines()) == 23
        assert json.loads(run(*asked, "--json", "--strict").out)["rows"][0]["value"] == "a.org"

    def test_a_mean(self, run: Run) -> None:
        document = json.loads(run("minutes", "--json").out)
        assert abs(document["mean"]["estimate"] - 40) < 6 * document["mean"]["standard_error"]
        assert run("minutes", "--csv").out.startswith("estimate,standard_error,low,high")

    def test_confidence(self, run: Run) -> None:
        narrow, wide = (
            json.loads(run("crashed", "--json", "--confidence", level).out)["rows"][0] for level in ("0.5", "0.99")
        )
        assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


class TestPeriods:
    def test_only_periods_that_are_there_are_counted(self, run: Run) -> None:
        """Between the two days lies one without reports: a device has at most two, not three."""
        document = json.loads(run("crashed", "--json").out)
        assert (document["start"], document["end"], document["periods"]) == ("2026-11-16", "2026-11-18", 2)
        document = json.loads(run("crashed", "--json", "--start", "2026-11-17", "--end", "2026-12-31").out)
        assert (document["reports"], document["periods"]) == (DEVICES // 2, 1)
        assert json.loads(run("language", "--json").out)["periods"] == 1

    def test_the_store_counts_them(self, folder: Path) -> None:
        store = Store(f"sqlite:///{folder}/hubbub.db")
        crashed = REGISTRY["crashed"]
        assert store.periods(crashed) == 2
        assert store.periods(crashed, None, DAYS[0]) == 1
        assert store.periods(crashed, DAYS[1] + timedelta(days=1)) == 0
        assert store.periods(REGISTRY["theme"]) == 1
        assert store.periods(REGISTRY["language"]) == 1
        store.close()

    def test_no_reports_are_an_empty_result_that_says_so(self, run: Run, folder: Path) -> None:
        told = run("quiet")
        assert told.code == 0
        assert told.out.startswith("quiet version 1 (flag): 0 reports\n")
        assert "! there are only 0 reports" in told.out
        told = run("quiet", "--json")
        assert (told.code, json.loads(told.out)["rows"]) == (0, [])
        assert told.err.startswith("! there are only 0 reports")
        for name in ("minutes", "startup", "theme", "language"):
            for form in ((), ("--json",), ("--csv",)):
                assert run(name, "--start", "2030-01-01", *form).code == 0
        told = run("page", "--start", "2030-01-01", "--candidates", folder / "pages.txt")
        assert (told.code, "0 reports" in told.out) == (0, True)


class TestMistakes:
    def test_an_unknown_metric(self, run: Run) -> None:
        told = run("nothing")
        assert (told.code, told.out) == (1, "")
        assert told.err.startswith('Error: metric "nothing" is not in the registry; allowed: page, language')

    def test_a_string_metric_without_candidates_tells_how_to_get_some(self, run: Run) -> None:
        told = run("page")
        assert told.code == 1
        assert told.err == (
            'Error: candidates: metric "page" has none in the store; allowed: --candidates FILE, or a list uploaded to '
            "the collector by PUT /v1/metrics/page/candidates\n"
        )

    def test_candidates_that_cannot_be_used(self, run: Run, folder: Path, tmp_path: Path) -> None:
        file = tmp_path / "some.txt"
        told = run("page", "--candidates", file)
        assert (told.code, told.err.startswith(f"Error: {file}: cannot be read: No such file")) == (1, True)
        for content, words in (
            (b"a\n\nb\n", "line 2 is empty or too long"),
            (b"a\nb\n\xff\n", "line 3 is not UTF-8"),
            (b"a\n" + b"b" * 100_000, "line 2 is empty or too long"),
            (b"", "the list is empty"),
        ):
            file.write_bytes(content)
            told = run("page", "--candidates", file)
            assert (told.code, told.out) == (1, "")
            assert told.err.startswith(f"Error: {file}: candidates: ")
            assert words in told.err
        told = run("crashed", "--candidates", folder / "pages.txt")
        assert (told.code, 'metric "crashed" is of kind flag; only strings have any' in told.err) == (1, True)

    def test_options_that_contradict_each_other(self, run: Run) -> None:
        for arguments, words in (
            (("--json", "--csv"), "--json and --csv: are both given; allowed: one of them"),
            (("--fdr", "0.1", "--family-wise", "0.1"), "--fdr and --family-wise: are both given"),
            (("--start", "2026-11-18", "--end", "2026-11-16"), "--start: is after --end"),
            (("--confidence", "1"), "confidence = 1.0; allowed: "),
            (("--fdr", "0"), "control: level = 0.0; allowed: "),
        ):
            told = run("crashed", *arguments)
            assert (told.code, told.out) == (1, "")
            assert told.err.startswith(f"Error: {words}")
        assert run("crashed", "--start", "yesterday").code == 2

    def test_a_store_that_is_not_there_or_not_ours(self, run: Run, tmp_path: Path) -> None:
        told = run("crashed", "--store", f"sqlite:///{tmp_path}/none.db")
        assert (told.code, told.err) == (1, f"Error: store: {tmp_path}/none.db is not there\n")
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "empty.db").touch()
        told = run("crashed", "--store", f"sqlite:///{tmp_path}/empty.db")
        assert (told.code, "there is nothing of hubbub in it" in told.err) == (1, True)
        (tmp_path / "text.db").write_text("this is no database, and long enough to be looked at\n" * 100)
        told = run("crashed", "--store", f"sqlite:///{tmp_path}/text.db")
        assert (told.code, told.err) == (1, "Error: store: file is not a database\n")

    def test_a_registry_that_is_not_there(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        told = run("crashed", "--registry", tmp_path / "none.toml")
        assert (told.code, "none.toml: cannot be read" in told.err) == (1, True)
        monkeypatch.delenv("HUBBUB_REGISTRY")
        told = run("crashed")
        assert (told.code, told.err) == (
            1,
            "Error: --registry: is missing; allowed: a TOML file of metrics, also as HUBBUB_REGISTRY\n",
        )

    def test_reports_that_were_made_with_other_parameters_are_not_decoded(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "other.toml").write_text(TOML.replace("bits = 32", "bits = 16"))
        told = run("page", "--registry", tmp_path / "other.toml")
        assert told.code == 1
        assert told.err.startswith('Error: metric "page": version 1 has another meaning than the reports')


def test_in_a_process_of_its_own(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("hubbub")), "estimate", "theme", "--json"]
    command += ["--store", f"sqlite:///{folder}/hubbub.db", "--registry", f"{folder}/metrics.toml"]
    one, two = (subprocess.run(command, capture_output=True, check=True, env=dict(os.environ)) for _ in range(2))
    assert one.stdout == two.stdout
    assert json.loads(one.stdout)["metric"] == "theme"
    assert one.stderr == b""
