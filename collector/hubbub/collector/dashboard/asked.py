"""What a page is about: read from its query, and spelled for the links to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from werkzeug.datastructures import MultiDict

from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL, Control
from hubbub.collector.decoding import Manner
from hubbub.collector.query import Query
from hubbub.collector.refusal import Refused

if TYPE_CHECKING:
    from datetime import date

    from hubbub.collector.decode.process import Spelling
    from hubbub.collector.store.by_period import Counted
    from hubbub.shared.metric import Metric

SPANS = (7, 30, 90)
"""Days that the period picker has links for."""

SAVED = "saved"
"""Says that the list of candidates has just been changed."""

ALL = "all"
"""Says that strings which were not found are wanted too, as for the API."""

_KEYS = ("start", "end", "confidence", "control", "q", "dark", "narrow", ALL, SAVED)


class BackwardsError(Refused):
    """The first day is after the last one. A page says so beside its form; all else is refused as ever."""

    def __init__(self, refused: Refused, asked: Asked) -> None:
        super().__init__(refused.code, refused.detail)
        self.asked = asked
        """The days as they were given, with all else."""


@dataclass(frozen=True)
class Asked:
    """What a page is about."""

    metric: Metric
    start: date | None = None
    end: date | None = None
    confidence: float = DEFAULT_CONFIDENCE
    control: Control = DEFAULT_CONTROL

    @property
    def key(self) -> tuple[str, int, date | None, date | None, float, str]:
        """What it is known by."""
        metric = self.metric
        return metric.name, metric.version, self.start, self.end, self.confidence, str(self.control)

    @property
    def is_plain(self) -> bool:
        """Whether all that is there is asked about, in the usual way."""
        return self == Asked(self.metric)

    def manner(self, *, undetected: bool = False, spelling: Spelling = "application/json") -> Manner:
        """As the decoder is asked."""
        return Manner(self.confidence, self.control, strict=False, undetected=undetected, spelling=spelling)

    def inside(self, counted: Counted) -> Counted:
        """Of periods, those that are asked about."""
        return {day: reports for day, reports in counted.items() if (self.start or day) <= day <= (self.end or day)}

    def query(self, **changed: object) -> str:
        """Spell it for a link; what is as usual is left out."""
        told: dict[str, object] = {"start": self.start, "end": self.end}
        if self.confidence != DEFAULT_CONFIDENCE:
            told["confidence"] = self.confidence
        if self.control != DEFAULT_CONTROL:
            told["control"] = self.control
        return urlencode({key: value for key, value in (told | changed).items() if value is not None})

    def links(self, counted: Counted) -> list[tuple[str, str, bool]]:
        """Links for the usual spans, which end with the last period that there is."""
        last: date | None = max(counted, default=None)
        links = []
        for days in SPANS:
            start = None if last is None else last - timedelta(days=days - 1)
            here = start is not None and (self.start, self.end) == (start, None)
            links.append((f"Last {days} days", self.query(start=start, end=None), here))
        links.append(("All", self.query(start=None, end=None), self.start is None and self.end is None))
        return links


def read_asked(metric: Metric, arguments: MultiDict[str, str]) -> tuple[Asked, str]:
    """Read what a page is about, and what is searched for on it.

    A form sends fields that were left empty too: they are not there.
    """
    given = MultiDict([(key, value) for key, value in arguments.items(multi=True) if value])
    query = Query(given, *_KEYS)
    search = query.read("q", str, "a text") or ""
    asked = Asked(metric, confidence=query.confidence(), control=query.control())
    try:
        start, end = query.span()
    except Refused as refused:
        # Each by itself can be read, or is refused for what it is.
        (start, _), (_, end) = (Query(MultiDict({key: given.getlist(key)}), key).span() for key in ("start", "end"))
        raise BackwardsError(refused, replace(asked, start=start, end=end)) from None
    return replace(asked, start=start, end=end), search.strip()
