"""Every command and every snippet of the documentation is run, page by page and from top to bottom, or is listed."""

import json
import re
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from docs.desk import Desk
from docs.pages import NAMES, all_blocks, code_words, page, table
from docs.rules import NO_COMMANDS, NOT_RUN, PROGRAMS, READ, RULES, SHELL, SHOWN, dry_run, rules_for, targets
from docs.sentences import commands_told
from hubbub.shared.command_line import hubbub

pytestmark = pytest.mark.unmeasured

SLOW = {"docs/gallery.md", "docs/comparison.md"}
"""Every experiment, and the benchmarks: together a minute and more."""

WITH_CODE = [
    pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name in NAMES
    if any(block.language == "python" for block in all_blocks(name)) or name in dict(SHOWN)
]


@pytest.mark.parametrize("name", WITH_CODE)
def test_a_page_can_be_followed_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        for block in all_blocks(name):
            desk.take(block)
    assert desk.done == [command for page, command in SHOWN if page == name and command not in NOT_RUN]


def test_every_command_has_one_rule_or_is_listed() -> None:
    found = {command: len(rules_for(command)) + (command in NOT_RUN) for _, command in SHOWN}
    assert {command: number for command, number in found.items() if number != 1} == {}


def test_no_rule_and_no_exception_is_left_over() -> None:
    told = {command for _, command in SHOWN}
    assert [rule.pattern for rule in RULES if not any(rule.fits(command) for command in told)] == []
    # CONTRIBUTING.md lists all of them: what no other page has need not be listed.
    elsewhere = {each for name in NAMES if name != "CONTRIBUTING.md" for each in commands_told(name)}
    assert set(NOT_RUN) <= told | elsewhere
    assert {(name, block.first_line) for name in NAMES for block in all_blocks(name)} >= set(NO_COMMANDS)


def test_the_commands_that_a_newcomer_sees_are_found() -> None:
    assert ("README.md", "make demo") in SHOWN
    assert ("README.md", "hubbub serve --registry metrics.toml") in SHOWN
    assert ("docs/operator.md", "hubbub serve --registry metrics.toml --host 0.0.0.0") in SHOWN
    assert ("docs/audit.md", "hubbub audit --registry simulations/hubbub/simulations/demo.toml") in SHOWN
    assert len(SHOWN) > 35


@pytest.mark.parametrize("name", NAMES)
def test_no_block_hides_a_command(name: str) -> None:
    """Blocks are of a language that something is done with, and those that are not shell hold no commands."""
    for block in all_blocks(name):
        assert block.language in SHELL | set(READ), block.first_line
        if block.language not in SHELL or (name, block.first_line) in NO_COMMANDS:
            assert not re.search(PROGRAMS, block.text, re.MULTILINE), block.first_line


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that some words call, and its arguments."""
    command: click.Command = hubbub
    while isinstance(command, click.Group):
        inner = command.get_command(click.Context(command), words[0])
        assert inner is not None, words
        command, words = inner, words[1:]
    return command, words


@pytest.mark.parametrize("command", [command for command in NOT_RUN if command.startswith("hubbub ")])
def test_what_is_not_run_can_be_read(command: str) -> None:
    program, *words = command.split()
    called, arguments = command_of(words)
    called.make_context(program, arguments)


@pytest.mark.parametrize("command", [command for command in NOT_RUN if re.search(r"\bmake ", command)])
def test_what_is_not_made_could_be(command: str) -> None:
    """`make` tells what it would do, and the programs are here, but for the one that it would install for a site."""
    target = command.rsplit(maxsplit=1)[-1]
    assert target in targets()
    told = dry_run("--always-make", target)
    assert (told.returncode, told.stderr) == (0, "")
    assert ".venv/bin/" in told.stdout.splitlines()[-1]
    programs = set(re.findall(r"\.venv/bin/(\S+)", told.stdout))
    here = Path(sys.executable).parent
    assert [name for name in programs - {"mkdocs"} if not (here / name).exists()] == []


def test_what_is_not_run_is_told_to_those_who_work_on_this() -> None:
    told = {code_words(row[0])[0]: row[1] for row in table("CONTRIBUTING.md", "| not run by the suite |")}
    assert told == NOT_RUN


def test_a_plan_in_a_sentence_says_what_the_sentence_says() -> None:
    text = re.sub(r"\s+", " ", page("README.md"))
    [asked] = [word for word in code_words(page("README.md")) if word.startswith("hubbub plan string")]
    result = CliRunner().invoke(hubbub, [*asked.split()[1:], "--json"])
    assert result.exit_code == 0, result.output
    plan = json.loads(result.output)
    ours, classic = plan["recommended"], plan["classic"]
    assert f"{classic['variance_per_report'] / ours['variance_per_report']:.1f} times less variance" in text
    needed = [f"{each['devices_needed'] / 1e6:.2f} million" for each in (ours, classic)]
    assert f"takes {needed[0]} devices instead of {needed[1]}" in text
