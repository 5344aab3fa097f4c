"""Every command in a sentence is run: completed, in small, or with a block that has the same and more; or is listed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.completed import COMPLETED, all_told, lay_out_pages, not_accounted_for, to_run
from docs.desk import SECONDS, Desk
from docs.pages import ROOT
from docs.rules import NOT_RUN, QUICK
from docs.sentences import covers, meant
from docs.small import SMALLER, STARTED

pytestmark = pytest.mark.unmeasured

BENCHMARKS = "python -m benchmarks "


def test_every_command_in_a_sentence_is_run_or_listed() -> None:
    assert not_accounted_for() == []


def test_no_completion_is_left_over() -> None:
    assert [rule.pattern for rule in COMPLETED if not any(rule.fits(command) for command in all_told())] == []
    assert {BENCHMARKS + name for name in SMALLER} <= all_told()
    assert {BENCHMARKS + name for name in STARTED} == {each for each in NOT_RUN if each.startswith(BENCHMARKS)}


@pytest.mark.slow
def test_commands_in_sentences_run(tmp_path: Path) -> None:
    lay_out_pages(tmp_path)
    with Desk(tmp_path) as desk:
        for command, rule in to_run():
            desk.obey(command, rule)
    assert len(desk.done) == len(set(desk.done)) >= len(COMPLETED)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """How each benchmark has ended, and what it has printed."""
    places = {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path_factory.mktemp("benchmarks"))}
    asked = [sys.executable, str(Path(__file__).with_name("small.py")), *SMALLER, *STARTED]
    environment = os.environ | QUICK | places
    done = subprocess.run(
        asked, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, tuple[int, str]] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SMALLER, *STARTED])
def test_benchmarks_in_sentences_run_in_small(name: str, ended: dict[str, tuple[int, str]]) -> None:
    code, told = ended[name]
    assert code == 0, told
    assert re.search((SMALLER | STARTED)[name].shows, told), told


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("hubbub privacy metrics.toml", "hubbub privacy"),
        ("hubbub privacy metrics.toml", "hubbub privacy FILE"),
        ("hubbub estimate homepage --registry metrics.toml --candidates sites.txt", "hubbub estimate --candidates"),
        ("hubbub simulate poisoning --out figures", "hubbub simulate poisoning"),
        ("hubbub demo --exit", "hubbub demo"),
        ('pip install ".[collector]"', "pip install"),
        ("python -m benchmarks decode --write", "python -m benchmarks NAME"),
    ],
)
def test_a_command_is_run_with_another_that_has_the_same_and_more(run: str, told: str) -> None:
    assert covers(run, told)


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("hubbub privacy metrics.toml", "hubbub privacy --json"),
        ("hubbub privacy metrics.toml", "hubbub privacy other.toml"),
        ("hubbub store check", "hubbub backup"),
        ("hubbub estimate homepage --tally tally.json", "hubbub estimate homepage --tally other.json"),
        ("hubbub simulate poisoning", "hubbub simulate drift-attack"),
        ("hubbub estimate homepage", "hubbub estimate --help"),
        ("hubbub estimate --help", "hubbub estimate"),
        ('pip install ".[collector]"', "pip install ."),
        ("python -m benchmarks decode", "python -m benchmarks decode --write"),
        ("make demo", "hubbub demo"),
    ],
)
def test_a_command_is_not_run_with_another_that_has_less_or_other_things(run: str, told: str) -> None:
    assert not covers(run, told)


def test_what_a_command_stands_for() -> None:
    assert meant("python -m benchmarks decode | peers") == ["python -m benchmarks decode", "python -m benchmarks peers"]
    assert meant("make bench ARGS=bits") == ["python -m benchmarks bits"]
    assert meant("make demo ARGS=--exit") == ["hubbub demo --exit"]
    assert meant("make test") == ["make test"]  # it is listed
