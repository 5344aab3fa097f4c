"""The environments of the peers: they need older packages than hubbub may have, and not all of them the same.

Each is made in `.venv-peers` with a group of pyproject.toml; HUBBUB_BENCH_PEERS names a Python to be taken instead.
Packages are installed one by one, so that one that fails does not sink the others, and is reported.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tempfile
import tomllib
import venv
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import writing

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENT = writing.ROOT / ".venv-peers"
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
SECONDS = 1800
"""After so long a peer is given up."""

GROUPS = {"bench": ("pure-ldp", "multi-freq-ldpy", "opendp"), "bench-diffprivlib": ("diffprivlib",)}
"""The peers of each group of pyproject.toml; what else is in it is what they need."""

PEERS = tuple(package for packages in GROUPS.values() for package in packages)


class PeerError(Exception):
    """What a peer said when it failed."""


@dataclass(frozen=True)
class Peers:
    """The environments of the peers."""

    pythons: dict[str, str]
    """By peer."""
    failed: dict[str, str] = field(default_factory=dict)
    """Packages that could not be installed, and why."""

    @classmethod
    def find(cls, *, again: bool = False) -> Peers:
        """Take what is there, or make it; `again`: try once more what could not be installed before."""
        if given := os.environ.get("HUBBUB_BENCH_PEERS"):
            return cls(dict.fromkeys(PEERS, given))
        pythons: dict[str, str] = {}
        failed: dict[str, str] = {}
        with _alone():
            for group, packages in GROUPS.items():
                python, lacking = _environment(group, again)
                pythons |= dict.fromkeys(packages, python)
                failed |= {package: lacking[package] for package in packages if package in lacking}
        return cls(pythons, failed)

    def do(self, name: str, job: dict[str, Any]) -> dict[str, Any]:
        """Let a peer do a job: the one that the job names as its library, or those of the first group."""
        python = self.pythons[job.get("library", PEERS[0])]
        told: dict[str, Any] = json.loads(_run([python, "-m", "benchmarks.peer_worker", name, json.dumps(job)]))
        return told

    def state(self, package: str) -> str:
        """Tell whether a peer is installed."""
        return f"not installed: {self.failed[package]}" if package in self.failed else "installed"


def requirements(group: str) -> list[str]:
    """What a group of pyproject.toml pins."""
    project = tomllib.loads((writing.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed: list[str] = project["dependency-groups"][group]
    return listed


def label(package: str) -> str:
    """A peer, with the version that is pinned."""
    [pinned] = {each for group in GROUPS for each in requirements(group) if package_of(each) == package}
    return pinned.replace("==", " ")


def package_of(requirement: str) -> str:
    """The name in a requirement."""
    return requirement.partition("==")[0]


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until nobody else makes environments: two at once would spoil them."""
    ENVIRONMENT.mkdir(exist_ok=True)
    with (ENVIRONMENT / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _environment(group: str, again: bool) -> tuple[str, dict[str, str]]:
    """Find or make the environment of a group: its Python, and what is lacking there."""
    folder, wanted = ENVIRONMENT / group, requirements(group)
    python, ready = str(folder / "bin" / "python"), folder / "ready"
    kept = _read(ready)
    if kept.get("wanted") != wanted:
        venv.create(folder, with_pip=True, clear=True)
        kept = {"wanted": wanted, "failed": _install(python, wanted, wanted)}
    elif again and kept["failed"]:
        missing = [each for each in wanted if package_of(each) in kept["failed"]]
        kept["failed"] = _install(python, missing, wanted)
    ready.write_text(json.dumps(kept), encoding="utf-8")
    return python, kept["failed"]


def _read(ready: Path) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(ready.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept


def _install(python: str, missing: list[str], wanted: list[str]) -> dict[str, str]:
    """Install one by one, each held to the pins of all; tell which failed."""
    failed = {}
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text("\n".join(wanted), encoding="utf-8")
        for each in missing:
            try:
                _run([python, "-m", "pip", "install", "--quiet", "--constraint", str(pins), each])
            except PeerError as error:
                failed[package_of(each)] = str(error)
    return failed


def _run(arguments: list[str]) -> str:
    try:
        done = subprocess.run(
            arguments,
            cwd=writing.ROOT,
            env=os.environ | ONE_THREAD,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(type(error).__name__) from None
    if done.returncode:
        raise PeerError(last_words(done.stderr, done.returncode))
    return done.stdout


def last_words(errors: str, code: int) -> str:
    """The line that says what was wrong: the last one, but for pip's own, which says ERROR."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    said = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (said or lines or [f"ended with {code}"])[-1]
