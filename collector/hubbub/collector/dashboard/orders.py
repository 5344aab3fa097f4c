"""What the workshop is told to do for pages, and what it tells. Messages are msgpack."""

from __future__ import annotations

from datetime import date  # noqa: TC003  (msgspec reads the annotations)
from typing import Literal, TypeAlias

import msgspec

from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL, Control, Estimates
from hubbub.collector.store.by_period import Counted  # noqa: TC001
from hubbub.collector.store.candidates import Revision  # noqa: TC001


class Place(msgspec.Struct, frozen=True):
    """Where a job is at work: the text of the registry, and the address of the store."""

    registry: str
    store: str


class Glance(msgspec.Struct, frozen=True, tag=True):
    """An order: tell what there is of every metric."""

    place: Place


class Glimpse(msgspec.Struct, frozen=True):
    """What there is of a metric, and what looks wrong with it; None: strings, which are not decoded for that."""

    counted: Counted
    listed: Revision | None
    alarms: tuple[str, ...] | None


class Look(msgspec.Struct, frozen=True, tag=True):
    """An order: tell all about one metric; of what is known already, only that it is the same."""

    place: Place
    name: str
    start: date | None = None
    end: date | None = None
    confidence: float = DEFAULT_CONFIDENCE
    control: Control = DEFAULT_CONTROL
    known: str = ""
    """The version that is known."""
    settled: Revision | None = None
    """The list of candidates for which older estimates will do."""


class Looked(msgspec.Struct, frozen=True):
    """What was found."""

    counted: Counted
    """All periods, whichever were asked about."""
    listed: Revision | None
    periods: int
    """How many were asked about: so many reports may be of one device."""
    version: str
    """Where it is the same, the estimates are the same: it stands for the tally, the candidates and what was asked."""
    body: bytes = b""
    """The estimates as JSON, as the API gives them. Empty: they are known, or have to be decoded apart."""
    tally: bytes = b""
    """What has to be decoded apart, as JSON: that of strings."""


class History(msgspec.Struct, frozen=True, tag=True):
    """An order: decode each of these periods, and ask about these strings, if it is about strings."""

    place: Place
    name: str
    counted: Counted
    values: tuple[str, ...]
    confidence: float
    control: Control


class Drawing(msgspec.Struct, frozen=True, tag=True):
    """An order: draw estimates, or how they changed from period to period."""

    estimates: tuple[Estimates, ...]
    history: bool
    values: tuple[str, ...]
    candidates: int | None
    """How many strings were asked about: the estimates hold only those found."""
    form: Literal["svg", "png"]
    dark: bool = False
    narrow: bool = False
    """On paper as wide as a phone."""


Order: TypeAlias = Glance | Look | History | Drawing


class Done(msgspec.Struct, frozen=True):
    """What was made; or why not."""

    body: bytes = b""
    fault: str = ""
    store_is_down: bool = False
