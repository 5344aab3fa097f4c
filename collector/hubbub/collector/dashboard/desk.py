"""What the pages show: estimates, their history and their charts, made elsewhere and kept for a while.

The process that serves takes batches, and does next to nothing for a page: reading, adding up, decoding and drawing are
the work of others. A page that was shown a moment ago is shown again as it is, however many look at it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

import msgspec

from hubbub.collector.dashboard.background import Background, Kept
from hubbub.collector.dashboard.guard import StillDecodingError
from hubbub.collector.dashboard.orders import Drawing, History, Look, Place
from hubbub.collector.dashboard.workshop import WORKSHOP, Workshop
from hubbub.collector.decode import Estimates
from hubbub.collector.decode.estimates import SHOWN_ROWS, Row
from hubbub.collector.decoding import Question, no_candidates
from hubbub.collector.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hubbub.collector.charts import Form
    from hubbub.collector.collector import Collector
    from hubbub.collector.dashboard.asked import Asked
    from hubbub.collector.dashboard.orders import Glimpse, Looked
    from hubbub.collector.decode.process import Spelling
    from hubbub.collector.store.by_period import Counted
    from hubbub.collector.store.candidates import Revision

FRESH_SECONDS = 5.0
"""For so long a page is shown as it is, whatever has arrived since."""

FRESH_STRINGS_SECONDS = 60.0
"""The same for the estimates of strings, which take seconds to decode. A new list of candidates does not wait."""

FRESH_CHART_SECONDS = 30.0
"""For so long a chart shows the same as the page it is on."""

HISTORY_PERIODS = 90
"""The most periods that a time series shows: the last ones."""

HISTORY_STRING_PERIODS = 30
"""The same for strings, of which each period takes a fifth of a second."""

HISTORY_VALUES = 5
"""The most values that it shows: the most common ones."""

HISTORY_ASKED = 50
"""The most strings that are asked about in each period: more than are shown, so that none is taken for another."""

SEARCHED_CANDIDATES = 100_000
"""The most candidates that are searched for such as were not found: each of them is a row of what is decoded."""

KEPT_ANSWERS = 32
KEPT_CHARTS = 64
KEPT_SEARCHES = 32

logger = logging.getLogger("hubbub.collector")


@dataclass(frozen=True)
class Shown:
    """All that a page shows."""

    counted: Counted
    """Reports of every period, whichever are shown."""
    listed: Revision | None
    """The list of candidates that there is."""
    version: str = ""
    """Where it is the same, the estimates are the same."""
    body: bytes = b""
    """The estimates as JSON, as the API gives them."""
    estimates: Estimates | None = None
    """None: there are no candidates, or no reports to look for them in."""
    candidates: int | None = None
    """How many strings were asked about; None where it is not about strings."""
    history: tuple[Estimates, ...] | None = None
    """None: it is still being made."""
    values: tuple[str, ...] = ()
    """Which of them the history is about, where it is not about all."""
    periods: int = 0
    """How many there are; the history may hold fewer."""
    made: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When the store held what the estimates tell."""


class Desk:
    """Has made what the pages of one collector show, and keeps it for a while."""

    def __init__(self, collector: Collector, workshop: Workshop = WORKSHOP) -> None:
        self._workshop = workshop
        self._decoder = collector.decoder
        address = collector.store.engine.url.render_as_string(hide_password=False)
        self._place = Place(collector.registry.text, address)
        self._glances: Background[str, dict[str, Glimpse]] = Background(1)
        self._answers: Background[tuple[object, ...], Shown] = Background(KEPT_ANSWERS)
        self._searches: Background[tuple[object, ...], tuple[Row, ...]] = Background(KEPT_SEARCHES)
        self._charts: Kept[object, bytes] = Kept(KEPT_CHARTS)
        self._alarms: Kept[str, tuple[str, ...]] = Kept(1024)
        """Of strings, by the name of the metric."""

    def glance(self) -> dict[str, Glimpse]:
        """Tell what there is of every metric; the alarms of strings are those of when they were decoded last."""
        found, _ = self._glances.have("all", lambda *_: self._workshop.glance(self._place), FRESH_SECONDS)
        return {
            name: msgspec.structs.replace(each, alarms=self._alarms.get(name)) if each.alarms is None else each
            for name, each in found.items()
        }

    def answer(self, asked: Asked, *, anew: bool = False) -> tuple[Shown, bool]:
        """Give what a page shows, and whether it is older than it should be, because newer takes a while.

        `anew` is for whoever has just changed something: what was shown a moment ago will not do.
        """
        return self._answer(asked, 0.0 if anew else FRESH_SECONDS)

    def estimates(self, asked: Asked) -> Shown:
        """Give what a page shows, for what stands on it or is downloaded from it."""
        shown, _ = self._answer(asked, FRESH_CHART_SECONDS)
        if shown.estimates is not None:
            return shown
        if shown.listed is None:
            raise no_candidates(asked.metric)
        raise _no_reports(asked)

    def search(self, asked: Asked, shown: Shown, text: str) -> tuple[Row, ...]:
        """Give strings that hold a text, whatever the case: those found, and as many that were not.

        Of a very long list only those found, which are known without decoding once more.
        """
        assert shown.estimates is not None  # noqa: S101  (there is nothing to be searched otherwise)
        wanted = text.casefold()
        if (shown.candidates or 0) > SEARCHED_CANDIDATES:
            return _matching(shown.estimates.detected, wanted)
        key = (*asked.key, shown.listed, wanted)
        rows, _ = self._searches.have(
            key, lambda *_: _search(self.everything(asked, "application/json"), wanted), FRESH_STRINGS_SECONDS
        )
        return rows

    def everything(self, asked: Asked, spelling: Spelling) -> bytes:
        """Spell the estimates with all candidates, found or not. It is not kept here: there may be a million."""
        looked = self._workshop.look(
            Look(self._place, asked.metric.name, asked.start, asked.end, asked.confidence, asked.control)
        )
        if not looked.tally:
            raise no_candidates(asked.metric) if looked.listed is None else _no_reports(asked)
        manner = asked.manner(undetected=True, spelling=spelling)
        _, body = self._decoder.answer(Question(asked.metric, looked.tally, looked.periods, looked.listed, manner))
        return body

    def chart(self, asked: Asked, *, history: bool, form: Form, dark: bool, narrow: bool = False) -> bytes:
        """Draw what a page shows, once."""
        shown = self.estimates(asked)
        if history and shown.history is None:
            raise StillDecodingError
        key = (shown.version, history, form, dark, narrow)
        drawn = self._charts.get(key)
        if drawn is None:
            assert shown.estimates is not None  # noqa: S101  (it has been looked at)
            estimates = shown.history or () if history else (shown.estimates,)
            drawn = self._workshop.draw(Drawing(estimates, history, shown.values, shown.candidates, form, dark, narrow))
            self._charts.put(key, drawn)
        return drawn

    def forget(self, name: str) -> None:
        """Forget what was shown of a metric: its candidates are others now."""
        self._answers.drop(lambda key: key[0] == name)
        self._searches.drop(lambda key: key[0] == name)
        self._glances.drop(lambda _: True)

    def _answer(self, asked: Asked, fresh: float) -> tuple[Shown, bool]:
        return self._answers.have(asked.key, lambda before, show: self._make(asked, before, show), fresh)

    def _make(self, asked: Asked, before: Shown | None, show: Callable[[Shown], None]) -> Shown:
        """Make an answer, or find that there is no need to."""
        whole = before if before is not None and before.history is not None else None
        look = Look(self._place, asked.metric.name, asked.start, asked.end, asked.confidence, asked.control)
        if whole is not None:
            age = (datetime.now(UTC) - whole.made).total_seconds()
            settled = whole.listed if whole.estimates is not None and age < FRESH_STRINGS_SECONDS else None
            look = msgspec.structs.replace(look, known=whole.version, settled=settled)
        begun = datetime.now(UTC)
        looked = self._workshop.look(look)
        if whole is not None and looked.version == whole.version:
            return replace(whole, counted=looked.counted, made=begun)
        if whole is not None and looked.listed is not None and looked.listed == look.settled:
            return replace(whole, counted=looked.counted)
        shown = self._decode(asked, looked, begun)
        if shown.estimates is None:
            return replace(shown, history=())
        if asked.metric.kind == "string" and asked.is_plain:
            self._alarms.put(asked.metric.name, shown.estimates.alarms)
        if whole is None or whole.estimates is None or whole.listed != shown.listed:
            show(shown)  # otherwise what there was before is shown until all is there
        return replace(shown, history=self._history(asked, shown))

    def _decode(self, asked: Asked, looked: Looked, begun: datetime) -> Shown:
        """Make all but the history."""
        shown = Shown(looked.counted, looked.listed, looked.version, looked.body, periods=looked.periods, made=begun)
        if looked.tally:
            question = Question(asked.metric, looked.tally, looked.periods, looked.listed, asked.manner())
            question, body = self._decoder.answer(question)
            assert question.revision is not None  # noqa: S101  (it has been decoded)
            shown = replace(shown, body=body, listed=question.revision, candidates=question.revision[1])
        if not shown.body:
            return shown
        estimates = msgspec.json.decode(shown.body, type=Estimates)
        return replace(shown, estimates=estimates, values=_most_common(estimates)[:HISTORY_VALUES])

    def _history(self, asked: Asked, shown: Shown) -> tuple[Estimates, ...]:
        assert shown.estimates is not None  # noqa: S101  (it has been decoded)
        is_string = asked.metric.kind == "string"
        # In one order, so that periods are known again when another string has become the most common one.
        values = tuple(sorted(_most_common(shown.estimates))) if is_string else ()
        most = HISTORY_STRING_PERIODS if is_string else HISTORY_PERIODS
        counted = dict(list(asked.inside(shown.counted).items())[-most:])
        if not counted or (is_string and not values):
            return ()
        order = History(self._place, asked.metric.name, counted, values, asked.confidence, asked.control)
        try:
            return self._workshop.history(order)
        except Refused as refused:
            logger.warning("%s", refused)  # what there is without it is worth showing
            return ()


class ClosedDesk:
    """What a process has that makes no pages: who comes to it is told to wait, until the one that does is there."""

    def forget(self, name: str) -> None:
        """Forget nothing: there is nothing."""

    def _wait(self, *_: object, **__: object) -> NoReturn:
        raise StillDecodingError

    glance = answer = estimates = search = everything = chart = _wait


def _most_common(estimates: Estimates) -> tuple[str, ...]:
    """The values that were most common over the whole time."""
    rows = estimates.detected if estimates.kind == "string" else estimates.rows
    ordered = sorted(rows, key=lambda row: -(row.consistent if row.consistent is not None else row.share or 0.0))
    return tuple(row.value for row in ordered[:HISTORY_ASKED])


class _Rows(msgspec.Struct):
    """Of estimates as JSON only the rows, each to be read by itself: most are of no interest."""

    rows: list[msgspec.Raw]


def _search(body: bytes, wanted: str) -> tuple[Row, ...]:
    rows = msgspec.json.decode(body, type=_Rows).rows
    read = msgspec.json.Decoder(Row).decode
    return _matching(map(read, rows), wanted)


def _matching(rows: Iterable[Row], wanted: str) -> tuple[Row, ...]:
    """Rows that hold a text, so many of those found and so many others; they are in the order of their shares."""
    found: list[Row] = []
    others: list[Row] = []
    for row in rows:
        kept = found if row.detected else others
        if len(kept) < SHOWN_ROWS and any(wanted in each.casefold() for each in (row.value, *row.also)):
            kept.append(row)
    return (*found, *others)


def _no_reports(asked: Asked) -> Refused:
    return Refused("not_found", f'metric "{asked.metric.name}": has no reports of this time')
