"""A reader at a desk: a folder with the files that the guides speak of, and a shell that does what a page says."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import requests
from click.testing import CliRunner

from docs.pages import ROOT, Block, blocks, commands
from docs.rules import NO_COMMANDS, NOT_RUN, SHELL, Rule, rules_for
from hubbub.client import privatize
from hubbub.collector.archive.file import FileHead, write_file
from hubbub.collector.archive.place import Place
from hubbub.collector.store import Store
from hubbub.shared import Registry, Secret
from hubbub.shared.command_line import hubbub
from hubbub.shared.period import today
from hubbub.simulations import simulate_tally
from hubbub.simulations.live import free_port

SECONDS = 120
TRUTH = {"example.org": 30_000, "example.com": 20_000}


class Desk:
    """Does what a page says, block by block; use it in a `with` statement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.done: list[str] = []
        """All commands that were run, as they stand on the page."""
        self._snippets = 0
        self._server: subprocess.Popen[bytes] | None = None
        binaries = str(Path(sys.executable).parent)
        plain = {name: value for name, value in os.environ.items() if not name.startswith("HUBBUB_")}
        self._environment = plain | {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(folder)}
        lay_out(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def take(self, block: Block) -> None:
        """Do what a block says."""
        if block.language == "python":
            self._run_snippet(block.text)
        elif block.language == "toml" and "[metrics." in block.text:
            (self.folder / "metrics.toml").write_text(block.text)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language in SHELL and (block.page, block.first_line) not in NO_COMMANDS:
            for command in commands(block):
                if command not in NOT_RUN:
                    [rule] = rules_for(command)
                    self.obey(command, rule)

    def obey(self, command: str, rule: Rule) -> None:
        """Run a command as its rule has it."""
        if "{collector}" in rule.instead.values() and self._server is None:
            self._environment["HUBBUB_ADMIN_TOKEN"] = "of-whoever-runs-the-collector"
            self._serve("hubbub serve --registry metrics.toml")
        changed = command
        for printed, used in rule.instead.items():
            changed = changed.replace(printed, used.format(collector=self.url, folder=self.folder))
        if rule.how == "serve":
            self._serve(changed)
        elif rule.how == "export":
            told = self._shell(f"{changed} && env --null", rule).partition("HUBBUB_ADMIN_TOKEN=")[2]
            self._environment["HUBBUB_ADMIN_TOKEN"] = told.partition("\0")[0]
        else:
            assert not rule.writes or not (self.folder / rule.writes).exists(), command
            # What comes after `>` is the shell's.
            called, arrow, file = changed.partition(" > ")
            changed = f"{called} {rule.more}{arrow}{file}"
            told = self._here(changed, rule) if rule.how == "here" else self._shell(changed, rule)
            assert not rule.writes or (self.folder / rule.writes).stat().st_size, command
            assert re.search(rule.shows, told, re.MULTILINE), f"{command}\n{told}"
            assert not re.search(rule.never_shows, told), f"{command}\n{told}"
        self.done.append(command)

    def _shell(self, command: str, rule: Rule) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=ROOT if rule.in_repository else self.folder,
            env=self._environment | rule.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == rule.exits, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def _here(self, command: str, rule: Rule) -> str:
        with contextlib.chdir(self.folder):
            result = CliRunner().invoke(hubbub, command.split()[1:])
        assert result.exit_code == rule.exits, f"{command}\n{result.output}"
        return result.output

    def _run_snippet(self, text: str) -> None:
        """Run a snippet as a script of its own, as one would who has copied nothing else; warnings are errors."""
        self._snippets += 1
        script = self.folder / f"snippet_{self._snippets}.py"
        script.write_text(text)
        done = subprocess.run(
            [sys.executable, "-W", "error", script.name],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stderr}"
        for promised in re.findall(r"^ *print\(.*\)  # (.*)$", text, re.MULTILINE):
            assert promised in done.stdout.splitlines(), text

    def _serve(self, command: str) -> None:
        assert "--host" not in command or "--host 127.0.0.1" in command, command
        self._stop()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        log = self.folder / "collector.log"
        with log.open("wb") as written:
            self._server = subprocess.Popen(
                command.split(),
                cwd=self.folder,
                env=self._environment | {"HUBBUB_PORT": str(port)},
                stdout=written,
                stderr=written,
            )
        deadline = time.monotonic() + SECONDS
        while not _is_ready(self.url):
            assert self._server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)  # asking is the only way to know

    def _stop(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            assert self._server.wait(SECONDS) == 0
            self._server = None


def lay_out(folder: Path) -> None:
    """Put the files there that the guides speak of, and a store with some reports."""
    [text] = blocks("docs/registry.md", "toml")
    (folder / "metrics.toml").write_text(text)
    (folder / "truth.csv").write_text("value,count\nexample.org,600\nexample.com,400\n")
    (folder / "sites.txt").write_text("example.org\nexample.com\n")
    lay_out_rappor(folder)
    lay_out_archive(folder, Registry.parse(text))
    (folder / "simulations").symlink_to(ROOT / "simulations")
    registry = Registry.parse(text)
    tally = simulate_tally(registry["homepage"], TRUTH, 1)
    yesterday = today() - timedelta(days=1)
    store = Store(f"sqlite:///{folder}/hubbub.db")
    try:
        store.prepare(registry)
        store.add([replace(tally, start=yesterday, end=yesterday)])
    finally:
        store.close()


def lay_out_rappor(folder: Path) -> None:
    """Files of google/rappor's: two strings that all devices hold, six and four of ten, with exactly average noise."""
    bits, cohorts, set_, clear = 8, 16, 0.6875, 0.5625
    held = [{"example.org": cohort % bits, "example.com": (3 * cohort + 1) % bits} for cohort in range(cohorts)]
    counts, shares = [], {"example.org": 0.6, "example.com": 0.4}
    for places in held:
        ones = [sum(share for text, share in shares.items() if places[text] == bit) for bit in range(bits)]
        counts.append([10_000, *(round(10_000 * (clear + (set_ - clear) * share)) for share in ones)])
    strings = [[text, *(cohort * bits + held[cohort][text] + 1 for cohort in range(cohorts))] for text in shares]
    (folder / "params.csv").write_text(f"k,h,m,p,q,f\n{bits},1,{cohorts},0.5,0.75,0.5\n")
    for name, rows in (("counts.csv", counts), ("map.csv", strings)):
        (folder / name).write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


def lay_out_archive(folder: Path, registry: Registry) -> None:
    """An archive of another store with ten reports of real devices, and a store that knows the metric."""
    metric, yesterday = registry["homepage"], today() - timedelta(days=1)
    reports = [privatize(metric, "example.org", Secret.generate()) for _ in range(10)]
    cohorts = np.array([report.cohort for report in reports])
    packed = np.frombuffer(b"".join(report.bits for report in reports), np.uint8).reshape(len(reports), -1)
    name = f"metric=homepage/version=1/period={yesterday}/{'0' * 16}.parquet"
    write_file(Place(str(folder / "old-archive")), name, FileHead.of(metric, yesterday, len(reports)), cohorts, packed)
    store = Store(f"sqlite:///{folder}/new.db")
    try:
        store.prepare(registry)
    finally:
        store.close()


def _is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/readyz", timeout=5).ok
    except requests.RequestException:
        return False
