"""How commands in sentences are run: what such a command leaves out, and what its placeholders stand for.

All of them are run in one folder and in this order: one uses what another has written.
"""

import shutil
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from docs.pages import NAMES, ROOT
from docs.rules import NOT_RUN, PIP, SHOWN, Rule, rules_for
from docs.sentences import commands_told, covers
from docs.small import SMALLER
from hubbub.collector.archive.place import UNFINISHED

EXPERIMENT = "longitudinal"
"""One that takes seconds as the gallery has it."""

BEGUN = f"begun/metric=homepage/version=1/period=2026-11-16/{'0' * 16}.parquet{UNFINISHED}"
"""A file of an archive whose writer was ended."""

COMPLETED = (
    Rule(r"hubbub COMMAND --help", "here", instead={"COMMAND": "estimate"}, shows="--candidates"),
    Rule(r"hubbub privacy --json", "here", more="metrics.toml", shows='"p1_exact":'),
    Rule(r"hubbub simulate", "here", shows="tracking-attack"),
    Rule(r"hubbub backup FILE", "here", instead={"FILE": "backup.db"}, writes="backup.db"),
    Rule(
        r"hubbub restore FILE",
        "here",
        instead={"FILE": "backup.db"},
        more="--store sqlite:///restored.db",
        writes="restored.db",
    ),
    Rule(r"hubbub store check", "here", more="--store sqlite:///restored.db", shows="no faults"),
    # A store without reports, and an archive in which a file was begun and nothing else.
    Rule(
        r"hubbub store check --archive ADDRESS --repair",
        "here",
        instead={"ADDRESS": "begun"},
        more="--store sqlite:///new.db",
        shows=r"parquet\S+: was never finished, and is deleted\n(.*\n)*no faults",
    ),
    Rule(r"hubbub export", "here", more="--format csv --out tallies.csv", writes="tallies.csv"),
    Rule(
        r"hubbub aggregate ARCHIVE",
        "here",
        instead={"ARCHIVE": "old-archive"},
        more="--metric homepage --out tally.json",
        writes="tally.json",
    ),
    Rule(
        r"hubbub aggregate --diagnose",
        "here",
        more="old-archive --registry metrics.toml --workers 1",
        shows="10 reports",
    ),
    Rule(
        r"hubbub estimate METRIC --tally FILE",
        "here",
        instead={"METRIC": "homepage", "FILE": "tally.json"},
        more="--registry metrics.toml --candidates sites.txt",
        shows="10 reports",
    ),
    Rule(
        r"hubbub estimate --plot FILE\.svg",
        "here",
        instead={"FILE.svg": "estimates.svg"},
        more="homepage --registry metrics.toml --candidates sites.txt",
        writes="estimates.svg",
    ),
    Rule(r"hubbub demo --exit", more="--devices 1000 --clients 2", shows=r"site-01\.example"),
    Rule(
        r"python -m hubbub\.simulations\.gallery docs NAME",
        instead={"NAME": EXPERIMENT},
        writes=f"docs/figures/{EXPERIMENT}.svg",
    ),
    Rule(r"python -m benchmarks\.page", writes="docs/benchmarks.md"),
    Rule(
        r"source \.venv/bin/activate",
        instead={".venv/bin": str(Path(sys.executable).parent)},
        more="&& command -v hubbub",
        shows=r"/hubbub$",
    ),
    replace(PIP, pattern=r"pip install \."),
    # It is not published: the clone is asked instead.
    replace(PIP, pattern=r'pip install "hubbub\[fast\]"', instead={"hubbub[": ".["}),
)


def lay_out_pages(folder: Path) -> None:
    """Pages that commands write anew, without what they have to write; and the archive that is to be repaired."""
    for name in ("docs", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", folder)
    (folder / f"docs/figures/{EXPERIMENT}.svg").unlink()
    (folder / "docs/benchmarks.md").unlink()
    begun = folder / BEGUN
    begun.parent.mkdir(parents=True)
    begun.touch()


@cache
def all_told() -> frozenset[str]:
    """What the commands in sentences stand for, without those that are not run."""
    return frozenset(each for name in NAMES for each in commands_told(name)) - set(NOT_RUN)


def to_run() -> list[tuple[str, Rule]]:
    """The commands of sentences that are run for their own sake, with their rules, in the order of these."""
    blocks = [command for _, command in SHOWN if command not in NOT_RUN]
    found = [(command, rule) for rule in COMPLETED for command in sorted(all_told()) if rule.fits(command)]
    known = {command for command, _ in found}
    for command in sorted(all_told() - known):
        if not any(covers(block, command) for block in blocks):
            found += [(command, rule) for rule in rules_for(command)]
    return found


def not_accounted_for() -> list[str]:
    """The commands of sentences that are neither run, nor run with another."""
    run = {command for _, command in SHOWN if command not in NOT_RUN} | {command for command, _ in to_run()}
    run |= {f"python -m benchmarks {name}" for name in SMALLER}
    return sorted(command for command in all_told() if not any(covers(each, command) for each in run))
