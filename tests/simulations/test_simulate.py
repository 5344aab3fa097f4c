"""`hubbub simulate`: every experiment by its name, whole files or none, and every mistake told in one line."""

import csv
import json
from pathlib import Path

import pytest

from hubbub.simulations import results
from hubbub.simulations.commands.simulate import DEFAULT_OUT
from hubbub.simulations.experiments import NAMES, experiment
from told import Run, run_here

REGISTRY = """
[metrics.theme]
description = "Colour theme"
kind = "category"
every = "week"
categories = ["light", "dark", "system"]
privacy = { report = 1.0, lifetime = 2.0 }

[metrics.crashed]
description = "Whether it crashed"
kind = "flag"
every = "once"
privacy = { epsilon = 1.0 }

[metrics.minutes]
description = "Minutes of use"
kind = "mean"
every = "once"
low = 0
high = 100
privacy = { epsilon = 1.0 }

[metrics.startup]
description = "Milliseconds to start"
kind = "histogram"
every = "once"
edges = [0, 10, 20, 30, 40]
sent = 2
privacy = { epsilon = 1.0 }

[metrics.page]
description = "Home page"
kind = "string"
every = "once"
bits = 64
hashes = 2
cohorts = 8
privacy = { epsilon = 2.0 }
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    return run_here("simulate", capsys, monkeypatch)


OWN = ("your-metric", "--registry", "metrics.toml", "--workers", 1, "--trials", 2)


def test_without_a_name_they_are_listed(run: Run) -> None:
    told = run()
    assert told.code == 0
    for name in NAMES:
        assert name in told.out
        assert experiment(name).name == name
        assert experiment(name).title in told.out


@pytest.mark.parametrize("metric", ["theme", "crashed", "minutes", "startup", "page"])
def test_a_metric_of_ones_own(run: Run, metric: str) -> None:
    """Estimates are within 6.5 standard errors (an interval is 3.92 of them): once in 10^10, and seeded."""
    told = run(*OWN, "--metric", metric, "--devices", 20_000, "--json")
    assert told.code == 0, told.err
    document = json.loads(told.out)
    assert (document["experiment"], document["devices"], document["trials"]) == ("your-metric", 20_000, 2)
    assert {row["devices"] for row in document["rows"]} == {200, 2_000, 20_000}
    for row in document["rows"]:
        if row["devices"] == 20_000:
            assert abs(row["estimate"] - row["truth"]) <= 6.5 / 3.92 * max(row["high"] - row["low"], 1e-9)
    with (DEFAULT_OUT / "your-metric.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["estimate"]) for row in rows] == [row["estimate"] for row in document["rows"]]
    assert json.loads((DEFAULT_OUT / "your-metric.json").read_text()) == document
    assert (DEFAULT_OUT / "your-metric.png").read_bytes().startswith(b"\x89PNG")
    assert document["caption"].split()[0] in (DEFAULT_OUT / "your-metric.svg").read_text()


def test_same_seed_same_files_whatever_the_workers(run: Run) -> None:
    asked = (*OWN, "--metric", "theme", "--devices", 1_000)
    for out, more in (("a", ()), ("b", ("--workers", 2)), ("c", ("--seed", 2))):
        assert run(*asked, "--out", out, *more).code == 0
    a, b, c = ({path.name: path.read_bytes() for path in Path(out).iterdir()} for out in "abc")
    assert sorted(a) == [f"your-metric.{form}" for form in ("csv", "json", "png", "svg")]
    assert a == b
    assert a["your-metric.csv"] != c["your-metric.csv"]


def test_what_is_shown_on_a_terminal(run: Run) -> None:
    told = run(*OWN, "--metric", "theme", "--devices", 1_000)
    assert "1,000 devices, 2 trials, seed 1" in told.out
    assert "light" in told.out
    assert told.out.splitlines()[-1] == "figures/your-metric.png"


def test_a_truth_of_ones_own(run: Run) -> None:
    Path("truth.csv").write_text("value,count\nlight,9000\ndark,1000\n")
    told = run(*OWN, "--metric", "theme", "--distribution", "truth.csv", "--json")
    document = json.loads(told.out)
    assert document["devices"] == 10_000
    true = {row["value"]: row["truth"] for row in document["rows"] if row["devices"] == 10_000}
    assert true == {"light": 0.9, "dark": 0.1, "system": 0.0}


@pytest.mark.parametrize(
    ("metric", "text", "fault"),
    [
        ("theme", "light,1\nblue,2", "categories"),
        ("theme", "light,-1", "the count is not a whole number from 0 on"),
        ("theme", "light,0", "holds no device"),
        ("crashed", "true,1\nperhaps,2", "a value is not a flag; allowed: true, false"),
        ("minutes", "1,1\nmany,2", "a value is not a number; allowed: numbers"),
        ("startup", "1,1\nnan,2", "number"),
    ],
)
def test_a_truth_that_does_not_fit_is_told(run: Run, metric: str, text: str, fault: str) -> None:
    Path("truth.csv").write_text(f"value,count\n{text}\n")
    told = run(*OWN, "--metric", metric, "--distribution", "truth.csv")
    assert told.code == 1
    assert fault in told.err
    assert len(told.err.splitlines()) == 1
    assert not list(DEFAULT_OUT.glob("*"))


def test_a_truth_that_does_not_sum_up_is_told(run: Run) -> None:
    Path("truth.csv").write_text("value,count\nlight,9000\n")
    told = run(*OWN, "--metric", "theme", "--distribution", "truth.csv", "--devices", 10_000)
    assert "devices: 10,000, and the counts of truth.csv sum up to 9,000; allowed: that sum" in told.err


@pytest.mark.parametrize(
    ("arguments", "code", "fault"),
    [
        (["no-such"], 1, 'experiment: "no-such" is none; allowed: rappor-normal, '),
        (["rounding", "--devices", "0"], 2, "--devices"),
        (["rounding", "--metric", "theme"], 1, "are not for rounding; allowed: with your-metric"),
        (["rounding", "--out", "metrics.toml/figures"], 1, "out metrics.toml/figures: cannot be written to: "),
        (["rounding", "--scheduler", "tcp://127.0.0.1:1"], 1, "scheduler tcp://127.0.0.1:1: cannot be reached: "),
        (["your-metric", "--registry", "metrics.toml"], 1, "metric: is missing; allowed: --metric with one of theme"),
        (["your-metric", "--registry", "metrics.toml", "--metric", "no"], 1, "theme"),
        (["your-metric", "--registry", "none.toml", "--metric", "no"], 1, "none.toml"),
        (["your-metric", "--distribution", "pareto"], 1, "pareto: cannot be read: No such file"),
    ],
)
def test_mistakes_are_told_in_one_line(run: Run, arguments: list[str], code: int, fault: str) -> None:
    told = run(*arguments)
    assert (told.code, told.out) == (code, "")
    assert fault in told.err
    assert "Traceback" not in told.err


def test_no_file_is_half_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (*OWN, "--metric", "theme", "--devices", 1_000)
    assert run(*asked).code == 0
    before = {path: path.read_bytes() for path in DEFAULT_OUT.iterdir()}

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        told = run(*asked, "--seed", 2)
    assert told.code == 1
    assert "out figures: cannot be written to: No space left on device" in told.err
    assert {path: path.read_bytes() for path in DEFAULT_OUT.iterdir()} == before


def test_a_figure_that_cannot_be_drawn_leaves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bytes:
        raise ArithmeticError

    monkeypatch.setattr(results, "draw", broken)
    with pytest.raises(ArithmeticError):
        run(*OWN, "--metric", "theme", "--devices", 1_000)
    assert not list(DEFAULT_OUT.iterdir())
