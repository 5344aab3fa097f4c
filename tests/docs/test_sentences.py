"""Commands in sentences, tables and headings are real: they exist, and what stands behind them can be read.

That they run, too: `test_sentences_run.py`.
"""

import subprocess
import sys

import pytest

from docs.pages import NAMES, ROOT
from docs.sentences import Known, WrongError, commands_in, read, sentences

DECISIONS = "docs/decisions/"
"""Pages that tell what was decided, also for the day when hubbub is published: `pip` is not read there."""


@pytest.fixture(scope="module")
def known() -> Known:
    """Benchmarks are asked for by a name that is none: it is answered with all there are."""
    asked = [sys.executable, "-m", "benchmarks", "nonsense"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False).stderr
    return Known.here(set(told.partition("allowed: ")[2].strip().split(", ")))


def fault(command: str, known: Known) -> str:
    try:
        read(command, known)
    except WrongError as wrong:
        return str(wrong)
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_commands_in_sentences_can_be_read(name: str, known: Known) -> None:
    told = [each for each in sentences(name) if not (each.startswith("pip") and name.startswith(DECISIONS))]
    assert {command: fault(command, known) for command in told if fault(command, known)} == {}


def test_commands_in_sentences_are_found() -> None:
    assert {"make demo ARGS=--exit", "python -m benchmarks accuracy", "hubbub backup"} <= set(sentences("README.md"))
    assert "source .venv/bin/activate" in sentences("README.md")
    assert "hubbub aggregate ARCHIVE" in sentences("docs/command-line.md")  # a heading
    assert "hubbub simulate NAME" in sentences("docs/researcher.md")  # it goes on in the next line
    assert "hubbub simulate drift-attack" in sentences("docs/privacy-reviewer.md")
    assert "HUBBUB_BENCH_QUICK=1 make bench" in sentences("docs/benchmarks.md")
    assert sum(len(sentences(name)) for name in NAMES) > 100


def test_what_is_no_command_in_a_sentence_is_left_alone() -> None:
    text = (
        "See `hubbub.client` and\n`hubbub`.\n\n    hubbub nonsense\n\n```\n`hubbub nonsense`\n```\n\n`hubbub\ndemo`\n"
    )
    assert commands_in(text) == ["hubbub demo"]


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("hubbub nonsense", "no command nonsense"),
        ("hubbub backup FILE OTHER", "one argument too many: OTHER"),
        ("hubbub estimate --nonsense", "no option --nonsense"),
        ("hubbub simulate --workers many", "Invalid value for '--workers': 'many' is not a valid"),
        ("hubbub aggregate ARCHIVE --engine spark", "'spark' is not one of 'local', 'dask'"),
        ("hubbub simulate nonsense", "no experiment nonsense"),
        ("python -m benchmarks acuracy", "no benchmark acuracy"),
        ("python -m benchmarks.nonsense", "no module benchmarks.nonsense"),
        ("HUBBUB_BENCH_QUICK=1 make bensh", "no target bensh"),
        ("make bench ARGS=nonsense", "no benchmark nonsense"),
        ("make demo ARGS=--nonsense", "no option --nonsense"),
        ("make gallery ARGS=nonsense", "no experiment nonsense"),
        ("make bench ARG=client", "make does not know ARG=client"),
        ("pip install hubbub", "hubbub: is not published; allowed: . or .[EXTRA]"),
        ('pip install ".[nonsense]"', "no extra nonsense"),
    ],
)
def test_a_command_that_would_not_run_is_caught(command: str, wrong: str, known: Known) -> None:
    assert wrong in fault(command, known)
