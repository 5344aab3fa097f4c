"""Reading one table of a registry key by key, noting every fault instead of stopping at the first."""

from __future__ import annotations

import sys
from datetime import date
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hubbub.shared.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, KeysView

    Valid: TypeAlias = Callable[[object], object]

Choice = TypeVar("Choice", bound=str)


class Declaration:
    """A TOML table that belongs to a metric.

    Each reader gives back the value, or a harmless stand-in after noting a problem; `sound` tells which it was. Keys
    that nobody has asked for by the time of `finish` are unknown.
    """

    def __init__(self, metric: str, table: dict[str, object], problems: list[Problem], within: str = "") -> None:
        self._metric = metric
        self._table = table
        self._problems = problems
        self._within = within
        self._asked: set[str] = set()
        self._faulty: set[str] = set()

    def __contains__(self, key: str) -> bool:
        self._asked.add(key)
        return key in self._table

    def keys(self) -> KeysView[str]:
        """The keys of the table."""
        return self._table.keys()

    def sound(self, *keys: str) -> bool:
        """Whether these keys have been read without a fault."""
        return not self._faulty.intersection(keys)

    def fault(self, key: str | None, fault: str, allowed: str) -> None:
        """Note a problem."""
        if key is not None:
            self._faulty.add(key)
        name = f"{self._within}{key}" if key is not None else self._within.rstrip(".") or None
        self._problems.append(Problem(self._metric, name, fault, allowed))

    def finish(self) -> None:
        """Note every key that nobody asked for."""
        known = ", ".join(sorted(self._asked))
        for key in self._table:
            if key not in self._asked:
                self.fault(key, "is not known here", known)

    def value(self, key: str) -> object:
        """Read a value of any type; None if there is none."""
        self._asked.add(key)
        return self._table.get(key)

    def text(self, key: str, *, required: bool = False) -> str | None:
        """Read a string with something in it."""
        text: str | None = self._get(
            key, "a non-empty string", lambda value: isinstance(value, str) and value.strip(), required
        )
        return text

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Read an integer from a range."""
        number: int | None = self._get(
            key,
            f"an integer from {low} to {high}",
            lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
            default is None,
        )
        return number if number is not None else low if default is None else default

    def integer_or(self, key: str, word: str, low: int, high: int) -> int | None:
        """Read an integer from a range, or a word that stands for None."""
        if self._table.get(key) == word:
            self._asked.add(key)
            return None
        return self.integer(key, low, high)

    def power_of_two(self, key: str, high: int, default: int | None = None) -> int:
        """Read a power of two."""
        number = self.integer(key, 1, high, default)
        if self.sound(key) and number & (number - 1):
            self.fault(key, f"is {number}", f"a power of two from 1 to {high}")
        return number

    def number(self, key: str) -> float:
        """Read a finite number."""
        number: float | None = self._get(key, "a finite number", is_finite, required=True)
        return 0.0 if number is None else float(number)

    def choice(self, key: str, choices: tuple[Choice, ...], default: Choice | None = None) -> Choice:
        """Read one of a few words."""
        word: Choice | None = self._get(key, ", ".join(choices), lambda value: value in choices, default is None)
        return word if word is not None else default or choices[0]

    def day(self, key: str) -> date | None:
        """Read a date."""
        day: date | None = self._get(key, "a date like 2030-12-31", lambda value: type(value) is date, required=False)
        return day

    def items(self, key: str, allowed: str, valid: Valid, low: int, high: int) -> tuple[object, ...]:
        """Read a list of things of one sort."""
        items: list[object] | None = self._get(
            key,
            f"a list of {low} to {high} {allowed}",
            lambda value: isinstance(value, list) and low <= len(value) <= high and all(valid(item) for item in value),
            required=True,
        )
        return () if items is None else tuple(items)

    def table(self, key: str) -> Declaration:
        """Read a table within the table."""
        inner: dict[str, object] | None = self._get(
            key, "a table", lambda value: isinstance(value, dict), required=True
        )
        return Declaration(self._metric, inner or {}, self._problems, f"{self._within}{key}.")

    def _get(self, key: str, allowed: str, valid: Valid, required: bool) -> Any:
        self._asked.add(key)
        if key not in self._table:
            if required:
                self.fault(key, "is missing", allowed)
            return None
        value = self._table[key]
        if not valid(value):
            self.fault(key, f"is {_shown(value)}", allowed)
            return None
        return value


def is_finite(value: object) -> bool:
    """Whether a TOML value is a number that a float can hold; NaN compares false."""
    largest = sys.float_info.max
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -largest <= value <= largest


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits has no decimal spelling
        return f"a very large {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
