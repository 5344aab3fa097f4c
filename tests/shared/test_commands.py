"""The command line as a user runs it: the real `hubbub` in a process of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.shared.privacy import Promise
from shared.registries import EXAMPLE, example

HUBBUB = Path(sys.executable).with_name("hubbub")


def run(*arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [HUBBUB, *arguments], capture_output=True, text=True, env=os.environ | environment, check=False, timeout=120
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def registry(tmp_path: Path) -> str:
    path = tmp_path / "metrics.toml"
    path.write_text(EXAMPLE)
    return str(path)


def test_help_lists_the_commands() -> None:
    listed = run("--help").stdout
    for command in ("demo", "plan", "privacy", "registry"):
        assert f"  {command} " in listed
    assert run("--version").stdout.startswith("hubbub, version ")
    assert "No such command" in run("nonsense", code=2).stderr


class TestRegistryCheck:
    def test_a_good_one(self, registry: str) -> None:
        told = run("registry", "check", registry).stdout
        assert f"{registry}: 8 metric(s), no problem" in told
        assert "language version 3: string, every once, 89571c37d6b5bac0" in told
        as_json = json.loads(run("registry", "check", registry, "--json").stdout)
        assert (as_json["problems"], as_json["warnings"]) == ([], [])
        assert [each["fingerprint"] for each in as_json["metrics"]] == [m.fingerprint for m in example().values()]

    def test_cohorts_that_are_too_many_for_the_devices_are_printed(self, registry: str) -> None:
        printed = run("registry", "check", registry, "--devices", "1000").stdout.splitlines()
        warnings = [line for line in printed if line.startswith("warning: ")]
        assert warnings[0] == (
            "warning: homepage: 64 cohorts for 1,000 devices leave 16 devices in a cohort; "
            "a collector withholds cohorts with fewer than 10 reports: use at most 32 cohorts"
        )
        as_json = json.loads(run("registry", "check", registry, "--devices", "1000", "--json").stdout)
        assert [f"warning: {warning}" for warning in as_json["warnings"]] == warnings
        assert "warning" not in run("registry", "check", registry, "--devices", "1000000").stdout

    def test_every_problem_is_printed_with_metric_and_key(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.toml"
        path.write_text('[metrics.a]\nkind = "flag"\nevery = "day"\nbits = 1\n[metrics.b]\nkind = "tally"\n')
        told = run("registry", "check", str(path), code=1).stderr.splitlines()
        places = ['metric "a", key "description"', 'metric "a", key "privacy"', 'metric "a", key "bits"',
                  'metric "b", key "description"', 'metric "b", key "kind"', 'metric "b", key "every"']  # fmt: skip
        assert len(told) == len(places) + 1
        for place, line in zip(places, told, strict=False):
            assert line.startswith(f"{path}: {place}: ")
        assert told[-1] == f"{path}: 6 problem(s)"
        problems = json.loads(run("registry", "check", str(path), "--json", code=1).stdout)["problems"]
        allowed = "default, description, every, expires, kind, lifetime_values, owner, privacy, version"
        assert problems[2] == {"metric": "a", "key": "bits", "fault": "is not known here", "allowed": allowed}

    def test_a_missing_file(self, tmp_path: Path) -> None:
        assert "No such file" in run("registry", "check", str(tmp_path / "none.toml"), code=1).stderr


class TestPrivacy:
    def test_json_has_the_pinned_fields(self, registry: str) -> None:
        metrics = json.loads(run("privacy", registry, "--json", "--reports", "2").stdout)
        pinned = {"name", "kind", "version", "bits", "hashes", "cohorts", "p1", "q1", "p2", "q2", "epsilon_report",
                  "epsilon_after", "epsilon_lifetime", "variance_per_report"}  # fmt: skip
        for metric in metrics:
            assert pinned <= set(metric) == set(Promise.__struct_fields__)
            for number in ("p1", "q1", "p2", "q2"):
                numerator, denominator = map(int, metric[f"{number}_exact"].split("/"))
                assert metric[number] == numerator / denominator
        classic = metrics[1]
        assert classic["name"] == "homepage_classic"
        assert classic["epsilon_report"] == pytest.approx(1.0743, abs=1e-4)
        assert classic["epsilon_after"] == pytest.approx(2.017, abs=1e-3)
        assert classic["epsilon_lifetime"] == pytest.approx(4.3944, abs=1e-4)

    def test_tables_show_epsilons_and_the_year(self, registry: str) -> None:
        told = run("privacy", registry, "--delta", "1e-6").stdout
        assert re.search(r"homepage_classic +string +day +1\.0743 +x 2\.93 +4\.3944 +4\.3944 +7\.875\n", told)
        assert re.search(
            r"All metrics: epsilon \d+\.\d+, delta [\d.e-]+ of values, by \w+ composition; [\d,]+ of the changes", told
        )
        assert "Without a default: homepage, homepage_classic" in told
        assert "recording only when something happens tells that it happened" in told
        assert "Totals tried for delta 1e-06: basic " in told

    def test_one_metric_and_the_year_alone(self, registry: str) -> None:
        [metric] = json.loads(run("privacy", registry, "--metric", "theme", "--json").stdout)
        assert metric["name"] == "theme"
        year = json.loads(run("privacy", registry, "--metric", "theme", "--year", "--json").stdout)
        assert year["metrics"][0]["values"] == 4
        assert year["total"]["method"] == "basic"

    def test_mistakes(self, registry: str) -> None:
        assert 'metric "nope" is not in the registry' in run("privacy", registry, "--metric", "nope", code=1).stderr
        assert "No such file" in run("privacy", "nowhere.toml", code=1).stderr
        assert "--reports" in run("privacy", registry, "--reports", "0", code=2).stderr
        assert "--delta" in run("privacy", registry, "--delta", "1", code=2).stderr


class TestPlan:
    def test_text_and_json(self) -> None:
        arguments = ["plan", "string", "--devices", "1000000", "--report", "1.0743", "--lifetime", "4.3944"]
        arguments += ["--candidates", "1000", "--share", "0.01"]
        told = run(*arguments).stdout
        assert "705,712" in told
        assert "1,763,509" in told
        assert "[metrics.NAME]" in told
        made = json.loads(run(*arguments, "--json").stdout)
        assert made["recommended"]["devices_needed"] == 705712
        assert made["classic"]["parameters"]["hashes"] == 2

    @pytest.mark.parametrize("kind", ["string", "category", "flag", "mean", "histogram"])
    def test_every_kind(self, kind: str) -> None:
        told = run("plan", kind, "--devices", "1000", "--report", "0.5", "--lifetime", "1").stdout
        assert f"A {kind} metric from 1,000 devices" in told

    def test_a_share_that_cannot_be_found_is_none(self) -> None:
        assert "none" in run("plan", "flag", "--devices", "5", "--report", "0.5", "--lifetime", "1").stdout

    def test_mistakes(self) -> None:
        rest = ["--devices", "1000", "--lifetime", "1"]
        assert "report = 2.0; allowed: " in run("plan", "flag", *rest, "--report", "2", code=1).stderr
        assert "Missing option" in run("plan", "flag", *rest, code=2).stderr
        assert "a mean has none" in run("plan", "mean", *rest, "--report", "0.5", "--share", "0.1", code=1).stderr
        assert "range = 2.0 1.0" in run("plan", "mean", *rest, "--report", "0.5", "--range", "2", "1", code=1).stderr


def test_a_command_whose_library_is_missing_says_what_to_install(tmp_path: Path) -> None:
    """numpy made impossible to import, as on a machine with the base install alone."""
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n")
    done = run("demo", "--devices", "2000", code=1, PYTHONPATH=str(tmp_path))
    assert done.stderr == 'Error: demo needs numpy, which is not installed: pip install "hubbub[collector]"\n'
    assert "(not installed)" in run("--help", PYTHONPATH=str(tmp_path)).stdout
