"""`hubbub audit`: its table and its JSON, and exit codes that say whether a promise is broken."""

import json

import pytest
from click.testing import CliRunner, Result

from hubbub.shared import Metric, Registry
from hubbub.simulations.audit import Audit, command
from simulations.audited import DEMO, SURE, never_flips_to_zero


def run(*arguments: str, code: int) -> Result:
    done = CliRunner().invoke(command.audit, [*arguments])
    assert done.exit_code == code, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


class TestCommand:
    def test_json_has_the_pinned_fields(self) -> None:
        options = ["--registry", str(DEMO), "--trials", "1000", "--workers", "1", "--confidence", str(SURE), "--json"]
        done = run(*options, "--metric", "theme", "--metric", "crashed", "--reports", "2", code=0)
        assert not done.stderr
        theme, crashed = json.loads(done.stdout)
        assert list(theme)[:5] == list(crashed)[:5] == ["name", "claimed", "measured", "trials", "reports"]
        assert (theme["refuted"], theme["reason"]) == (False, None)
        assert theme["rarest_fault"] > crashed["rarest_fault"] > 1
        assert 0 < theme["fresh_noise_p"] <= 1
        assert 0 < theme["bit_rates_p"] <= 1
        assert (theme["name"], crashed["name"]) == ("theme", "crashed")
        assert theme["claimed"] == Registry.load(DEMO)["theme"].epsilon(2)
        assert (theme["trials"], theme["reports"]) == (1000, 2)
        assert 0 < theme["measured"] < theme["claimed"]

    def test_a_table(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HUBBUB_REGISTRY", str(DEMO))
        options = ["--direct", "--trials", "1000", "--workers", "1", "--confidence", str(SURE)]
        lines = run(*options, code=0).stdout.splitlines()
        head = "metric kind reports claimed at least of claim rarest fault verdict"
        assert lines[1].split() == head.split()
        assert [line.split()[0] for line in lines[2:7]] == list(Registry.load(DEMO))
        assert all(line.endswith("stands") for line in lines[2:7])
        assert lines[7].startswith("Rarest fault: ")
        assert lines[7].endswith(" 1,000 trials rarely notice")

    @pytest.mark.parametrize("form", [[], ["--json"]])
    def test_a_broken_promise_is_exit_code_1(self, form: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(command, "privatize", never_flips_to_zero)
        options = [
            "--direct",
            "--registry",
            str(DEMO),
            "--trials",
            "4000",
            "--workers",
            "1",
            "--metric",
            "crashed",
            *form,
        ]
        done = run(*options, "--metric", "crashed", "--metric", "theme", "--metric", "crashed", code=1)
        lines = done.stderr.splitlines()
        assert [line.split(": ")[0] for line in lines] == ['metric "crashed" is refuted', 'metric "theme" is refuted']
        assert all(" epsilon is at least " in line for line in lines)
        assert form or "refuted" in done.stdout

    def test_the_chance_of_error_is_shared_out_among_the_metrics(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[float] = []

        def stand_in(metric: Metric, _: object, *, confidence: float, reports: int, **__: object) -> Audit:
            asked.append(confidence)
            return Audit(metric.name, metric.kind, 1.0, 0.5, 1000, reports, 1, 1, confidence, 1.0, None, 0)

        monkeypatch.setattr(command, "measure", stand_in)
        run("--registry", str(DEMO), "--confidence", "0.95", "--workers", "1", code=0)
        assert asked == pytest.approx([0.99] * 5)

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (["--metric", "fame"], 'metric "fame" is not in the registry; allowed: homepage, theme, crashed'),
            (["--confidence", "nan"], "confidence = nan; allowed: a number above 0 and below 1"),
            (["--trials", "999"], "999 is not in the range x>=1000"),
            (["--confidence", "1"], "1.0 is not in the range 0<x<1"),
            (["--confidence", "0"], "0.0 is not in the range 0<x<1"),
            (["--reports", "0"], "0 is not in the range x>=1"),
            (["--workers", "0"], "0 is not in the range x>=1"),
            (["--registry", "nowhere.toml"], "nowhere.toml: cannot be read: No such file"),
        ],
    )
    def test_bad_input_is_exit_code_2(self, arguments: list[str], told: str) -> None:
        done = run("--registry", str(DEMO), *arguments, code=2)
        assert told in done.stderr
        assert done.stderr.splitlines()[-1].startswith("Error: ")

    def test_a_registry_is_required(self) -> None:
        assert "--registry" in run(code=2).stderr
