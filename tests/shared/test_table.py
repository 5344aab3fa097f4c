"""Tables, for people who are looking and for pipes."""

import re
import sys

import pytest

from hubbub.shared import command_line
from hubbub.shared.table import figure, show_table

ROWS = [["one", "1.5"], ["twenty", "20"]]


def test_plain_columns_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("Numbers", ["name", "value"], ROWS)
    assert capsys.readouterr().out == "Numbers\n  name    value\n  one       1.5\n  twenty     20\n"


def test_a_drawn_table_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_table("Numbers", ["name", "value"], ROWS)
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "│ twenty │    20 │" in drawn


def test_figures() -> None:
    assert [figure(value) for value in (None, 0.000123456, 3.6826, 12345.6)] == ["-", "0.0001235", "3.683", "12,346"]


class BadEntry:
    """An entry point whose code is wrong: a mistake of ours, so nothing hides it."""

    name = "bad"
    value = "nowhere:bad"

    def __init__(self, outcome: object) -> None:
        self._outcome = outcome

    def load(self) -> object:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


def test_a_wrong_entry_point_is_not_taken_for_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for outcome, error in [
        ("no command", TypeError),
        (ModuleNotFoundError("No module named 'hubbub.gone'", name="hubbub.gone"), ModuleNotFoundError),
    ]:
        monkeypatch.setattr(command_line, "entry_points", lambda outcome=outcome, **_: [BadEntry(outcome)])
        with pytest.raises(error):
            command_line.hubbub.get_command(None, "bad")  # type: ignore[arg-type]
