"""Reading the query of a request: each parameter at most once, and a refusal that names it and what is allowed."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, TypeVar

import msgspec

from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL, Control
from hubbub.collector.decode.control import METHODS
from hubbub.collector.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.datastructures import MultiDict

    Value = TypeVar("Value")


class Query:
    """The parameters of one request; others than these are refused."""

    def __init__(self, given: MultiDict[str, str], *keys: str) -> None:
        unknown = set(given) - set(keys)
        if unknown:
            raise Refused("bad_query", f"{', '.join(sorted(unknown))}: is not known; allowed: {', '.join(keys)}")
        self._given = given

    def span(self) -> tuple[date | None, date | None]:
        """The periods from `start` to `end`."""
        start, end = (
            self.read(key, lambda text: msgspec.convert(text, date), "YYYY-MM-DD") for key in ("start", "end")
        )
        if start is not None and end is not None and start > end:
            raise Refused("bad_query", "start: is after end; allowed: up to it")
        return start, end

    def confidence(self) -> float:
        """The confidence of every interval."""
        allowed = "a number above 0 and below 1"
        given = self.read("confidence", lambda text: msgspec.json.decode(text, type=float), allowed)
        number = DEFAULT_CONFIDENCE if given is None else given
        # The last number below 1 is too near to it: half of what is left is nothing, and intervals would have no end.
        if number <= 0 or (1 + number) / 2 >= 1:
            raise Refused("bad_query", f"confidence: is {number}; allowed: {allowed}")
        return number

    def control(self) -> Control:
        """How many false discoveries to put up with."""
        allowed = (
            f"METHOD:LEVEL, as in {DEFAULT_CONTROL}, with a level above 0 and below 1; methods: {', '.join(METHODS)}"
        )
        return self.read("control", Control.parse, allowed) or DEFAULT_CONTROL

    def flag(self, key: str) -> bool:
        """Yes or no, and no if nothing is said."""
        return self.read(key, {"true": True, "false": False}.__getitem__, "true or false") or False

    def read(self, key: str, read: Callable[[str], Value], allowed: str) -> Value | None:
        """Read a parameter that may be there once; None if it is not."""
        given = self._given.getlist(key)
        if not given:
            return None
        try:
            [text] = given
            return read(text)
        except (ValueError, KeyError, msgspec.MsgspecError):
            raise Refused(
                "bad_query", f"{key}: cannot be read, or is there more than once; allowed: {allowed}, once"
            ) from None
