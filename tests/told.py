"""The command line in this process, and what it told."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hubbub.shared.command_line import main


@dataclass(frozen=True)
class Told:
    code: int
    out: str
    err: str


Run = Callable[..., Told]


def run_here(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs one command of hubbub with whatever arguments."""

    def run(*arguments: object) -> Told:
        monkeypatch.setattr(sys, "argv", ["hubbub", command, *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return Told(int(ended.value.code or 0), told.out, told.err)

    return run
