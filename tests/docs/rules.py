"""How each command in a block of the documentation is run, and which commands are not, and why.

A command is run as it stands on the page, by a shell, in a folder that holds the files which the guides speak of. What
a rule changes is all that is changed: sizes, and the address of the collector.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Literal

from docs.pages import NAMES, ROOT, all_blocks, commands


@dataclass(frozen=True)
class Rule:
    """For commands that match a pattern as a whole."""

    pattern: str
    how: Literal["shell", "here", "serve", "export"] = "shell"
    """By a shell; in this very process, which has what takes long to import; as a service; or kept for later ones."""
    more: str = ""
    """What is added, to make it small, quick or harmless."""
    instead: dict[str, str] = field(default_factory=dict)
    """What is replaced, and by what; `{collector}` is the address of the one that runs, `{folder}` that of the desk."""
    environment: dict[str, str] = field(default_factory=dict)
    shows: str = ""
    """What has to be in its output, as a pattern; nothing of what it does is believed because it ends with 0."""
    never_shows: str = "Traceback"
    writes: str = ""
    """A file that is there afterwards, and was not before."""
    exits: int = 0
    in_repository: bool = False

    def fits(self, command: str) -> bool:
        return re.fullmatch(self.pattern, command) is not None


COLLECTORS = {"https://telemetry.example.org": "{collector}", "http://127.0.0.1:8000": "{collector}"}
"""Where the guides have a collector, and where one is while they are tested."""

CURL = "--silent --show-error --fail"
"""An answer of 400 and above is a failure."""

QUICK = {"HUBBUB_BENCH_QUICK": "1", "HUBBUB_BENCH_PEERS": sys.executable}
"""Smaller, and with no environment made for the peers: a table then says of each that it is not there."""

ARCHIVE = {"/var/lib/hubbub/": "{folder}/"}
"""A folder that only root may write to, and one that the desk has."""

PIP = Rule(
    r'pip install "\.\[[a-z,]+\]"',
    more="--dry-run --no-index --no-build-isolation --disable-pip-version-check",
    shows=r"^Would install hubbub-\S+$",
    never_shows="does not provide the extra|Traceback",
    in_repository=True,
)
"""The clone is built and asked what it needs. Nothing is fetched and nothing is changed: that what it needs is here
shows that the extras are enough for the guides, not that the network has it."""

RULES = (
    Rule(r"hubbub registry check metrics\.toml( --devices 1000)?", shows="homepage"),
    Rule(r"hubbub privacy metrics\.toml", shows="homepage"),
    Rule(r"hubbub plan string .*", shows=r"privacy = \{"),
    Rule(r"hubbub preview .*", shows="homepage"),
    Rule(r"hubbub estimate homepage .*", shows=r"example\.org"),
    Rule(r"hubbub decode-rappor .*", shows=r"example\.org"),
    # Exact tests refute a correct client once in 10^7 runs at this confidence, and once in 100 at the default one.
    Rule(r"hubbub audit .*", more="--trials 1000 --workers 1 --confidence 0.9999999", shows="stands"),
    Rule(r"hubbub simulate your-metric .*\.csv", "here", more="--trials 1 --workers 1", shows=r"your-metric\.png"),
    Rule(
        r"hubbub simulate [a-z-]+( --out figures)?",
        "here",
        more="--devices 1000 --trials 1 --workers 1",
        shows=r"figures/[a-z-]+\.png",
    ),
    # Tests listen on this machine alone. The port is a variable's, because 8000 may be somebody's.
    Rule(
        r"hubbub serve --registry metrics\.toml( --host 0\.0\.0\.0| --archive /var/lib/hubbub/archive)?",
        "serve",
        instead={"--host 0.0.0.0": "--host 127.0.0.1"} | ARCHIVE,
    ),
    # The reports at the desk are older than its archive, and that is what the check has to say.
    Rule(r"hubbub store check --archive .*", instead=ARCHIVE, exits=1, shows="reports in the archive"),
    Rule(
        r"hubbub aggregate /var/lib/hubbub/archive --metric homepage --out tally\.json",
        instead={"/var/lib/hubbub/archive": "old-archive"},
        writes="tally.json",
    ),
    Rule(
        r"hubbub aggregate /var/lib/hubbub/archive --metric homepage --counter numba --out again\.json",
        instead={"/var/lib/hubbub/archive": "old-archive"},
        writes="again.json",
    ),
    Rule(r"hubbub aggregate old-archive --metric homepage --store sqlite:///new\.db", shows="10 reports"),
    Rule(r"export HUBBUB_ADMIN_TOKEN=\$\(openssl rand -hex 32\)", "export"),
    Rule(r"curl .*/candidates", more=CURL, instead=COLLECTORS, shows="revision"),
    Rule(r"curl .*/estimates(\?start=2026-11-01\")?", more=CURL, instead=COLLECTORS, shows='"value":"example.org"'),
    Rule(r"curl .*/tally > tally\.json", more=CURL, instead=COLLECTORS, writes="tally.json"),
    PIP,
    # Tables of a quick run must not be written.
    Rule(
        r"python -m benchmarks (decode|accuracy|response|simulate|peers) --write",
        instead={" --write": ""},
        environment=QUICK,
        shows=r"\| hubbub|\|",
        in_repository=True,
    ),
    # The suite runs these tests anyway: here it is enough that the command finds them.
    Rule(
        r"\.venv/bin/python -m pytest tests/shared/test_errata\.py",
        more="--collect-only -q -p no:cacheprovider",
        instead={".venv/bin/python": sys.executable},
        shows=r"test_errata\.py::test_",
        in_repository=True,
    ),
)

NOT_RUN = {
    "make demo": (
        "installs what it needs; CI runs it with `ARGS=--exit`, and `tests/simulations/test_demo.py` what it starts"
    ),
    "make test": "is this suite; CI runs it",
    "make test-slow": "is the longer part of this suite; CI runs it",
    "make docs": "installs what builds the site; CI runs it",
    "hubbub aggregate s3://bucket/archive --engine dask --scheduler tcp://10.0.0.5:8786 --out tally.json": (
        "needs S3, and a Dask cluster at that address"
    ),
    "make bench": (
        "takes long, and wants the machine for itself; those behind the tables of `docs/comparison.md` are run in small"
    ),
    "HUBBUB_BENCH_QUICK=1 make bench": "measures all of it in small, and writes the pages of this repository",
    "make gallery": "makes every figure of this repository again; it is run for one, and each experiment in small",
    "python -m benchmarks collector": "takes over a minute in small, and needs wrk; it is started as if there was none",
    "python -m benchmarks dashboard": "takes over a minute in small, and needs wrk; it is started as if there was none",
    "python -m benchmarks replicas": "takes half a minute in small, and needs wrk; it is started as if there was none",
    "python -m benchmarks charts": "takes most of a minute in small; it is started without a library to measure",
}
"""Commands that the suite does not run, and why: CONTRIBUTING.md has the same list."""

NO_COMMANDS = {
    ("docs/privacy-reviewer.md", "ln((p1 + (1 - p1) u)/(q1 + (1 - q1) u))  for each bit that only x sets"): "a formula",
    ("docs/archive.md", "ARCHIVE/metric=NAME/version=V/period=YYYY-MM-DD/<16 random hex digits>.parquet"): "a path",
    ("docs/design/data-model.md", "written files + parts of files that are not written = tally"): "a formula",
    ("docs/design/encoding.md", "   z = start + n * (stride | 1)"): "a formula",
}
"""Blocks that stand further in and are no shell, by page and first line, and what they are."""

SHELL = {"", "sh", "bash", "console"}
READ = {"python": "run", "toml": "a registry, used from there on", "json": "parsed", "text": "a drawing"}
"""Other languages of blocks, and what is done with them."""

SHOWN = [
    (name, command)
    for name in NAMES
    for block in all_blocks(name)
    if block.language in SHELL and (name, block.first_line) not in NO_COMMANDS
    for command in commands(block)
]
"""Every command in a block of a page."""

PROGRAMS = r"^\s*(\$ )?(hubbub|make|pip|python|curl|docker|podman|psql|systemctl|sudo) "


def rules_for(command: str) -> list[Rule]:
    return [rule for rule in RULES if rule.fits(command)]


def targets() -> set[str]:
    """What `make` can make."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def dry_run(*words: str) -> subprocess.CompletedProcess[str]:
    """Ask `make` what it would do. Nothing is inherited from the one that has started this suite."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    asked = ["make", "--dry-run", *words]
    return subprocess.run(asked, cwd=ROOT, env=plain, capture_output=True, text=True, timeout=60, check=False)
