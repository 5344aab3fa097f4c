"""What the pages show: estimates, their history and their charts, made in the background and kept for a while.

Nothing here is decoded or drawn by the thread of a request. It waits for a moment, and then the page says that the
answer is being made. Where there is an older answer, it is shown meanwhile: on a busy collector reports arrive faster
than strings are decoded, and nobody would ever see anything.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from hubbub.collector.dashboard.guard import StillDecodingError
from hubbub.collector.dashboard.workshop import WORKSHOP, History
from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL, Control, Estimates
from hubbub.collector.decoding import Manner
from hubbub.collector.refusal import Refused
from hubbub.collector.store.by_period import tallies_by_period

if TYPE_CHECKING:
    from hubbub.collector.charts import Form
    from hubbub.collector.collector import Collector
    from hubbub.collector.decoding import Question
    from hubbub.collector.store.by_period import Counted
    from hubbub.shared.metric import Metric

PAGE_SECONDS = 2.0
"""The longest that a page waits for its answer, before it says that it is being made."""

FRESH_SECONDS = 30.0
"""For so long a chart shows the same as the page it is on, whatever has arrived since."""

HISTORY_PERIODS = 90
"""The most periods that a time series shows: the last ones."""

HISTORY_STRING_PERIODS = 30
"""The same for strings, of which each period takes a fifth of a second."""

HISTORY_VALUES = 5
"""The most values that it shows: the most common ones."""

HISTORY_ASKED = 50
"""The most strings that are asked about in each period: more than are shown, so that none is taken for another."""

KEPT_ANSWERS = 32
KEPT_CHARTS = 64
MAX_JOBS = 8
"""Answers that may be in the making at one moment."""

logger = logging.getLogger("hubbub.collector")

Key = TypeVar("Key")
Value = TypeVar("Value")


class Kept(Generic[Key, Value]):
    """A small cache: the least recently used goes first."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Give what is kept."""
        with self._guard:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Keep something."""
        with self._guard:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._entries:
                self._values.popitem(last=False)


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

    def manner(self) -> Manner:
        """As the decoder is asked."""
        return Manner(self.confidence, self.control, strict=False, undetected=False, spelling="application/json")


@dataclass(frozen=True)
class Shown:
    """An answer: all that a page shows."""

    etag: str
    body: bytes
    """The estimates as JSON, as the API gives them."""
    estimates: Estimates
    history: tuple[Estimates, ...] | None
    """None: it is still being made."""
    values: tuple[str, ...]
    """Which of them the history is about, where it is not about all."""
    periods: int
    """How many there are; the history may hold fewer."""
    candidates: int | None
    """How many strings were asked about; None where it is not about strings."""
    made: datetime
    at: float = field(default_factory=time.monotonic)


class Desk:
    """Makes what the pages of one collector show, and keeps it for a while."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._answers: Kept[object, Shown] = Kept(KEPT_ANSWERS)
        self._charts: Kept[object, bytes] = Kept(KEPT_CHARTS)
        self._health: Kept[str, tuple[object, tuple[str, ...]]] = Kept(1024)
        self._guard = threading.Lock()
        self._jobs: dict[object, Future[Shown]] = {}

    def answer(self, asked: Asked, *, soon: bool = False) -> tuple[Shown, bool]:
        """Give what a page shows, and whether there is news that it does not show yet.

        `soon` is for what stands on a page: it shows what the page shows, for as long as that is fresh.
        """
        kept = self._answers.get(asked.key)
        if kept is not None and soon and time.monotonic() - kept.at < FRESH_SECONDS:
            return kept, False
        metric = asked.metric
        question = self._collector.decoder.question(metric, asked.start, asked.end, asked.manner())
        if kept is not None and kept.etag == question.etag:
            return kept, False
        job = self._job(asked, question)
        try:
            kept = job.result(PAGE_SECONDS)
        except NotYetError:
            kept = self._answers.get(asked.key)  # all but its history may be there by now
            if kept is None:
                raise StillDecodingError from None
        finally:
            if job.done():
                with self._guard:
                    self._jobs.pop(asked.key, None)
        return kept, kept.etag != question.etag

    def chart(self, asked: Asked, *, history: bool, form: Form, dark: bool) -> bytes:
        """Draw what a page shows, once."""
        shown, _ = self.answer(asked, soon=True)
        if history and shown.history is None:
            raise StillDecodingError
        key = (shown.etag, history, form, dark)
        drawn = self._charts.get(key)
        if drawn is None:
            estimates = shown.history or () if history else (shown.estimates,)
            drawn = WORKSHOP.draw(
                estimates,
                history=history,
                values=shown.values,
                candidates=shown.candidates,
                form=form,
                dark=dark,
            )
            self._charts.put(key, drawn)
        return drawn

    def alarms(self, metric: Metric, counted: Counted) -> tuple[str, ...] | None:
        """Tell what looked wrong when all of a metric was decoded last; None: strings that have not been decoded yet.

        Other kinds are decoded here and now, which takes no time worth speaking of, and again when there is news.
        """
        known = self._health.get(metric.name)
        state = (metric.version, tuple(counted.items()))
        if known is not None and (known[0] == state or metric.kind == "string"):
            return known[1]
        if metric.kind == "string":
            return None
        decoder = self._collector.decoder
        _, body = decoder.answer(decoder.question(metric, None, None, Asked(metric).manner()))
        alarms = msgspec.json.decode(body, type=Estimates).alarms
        self._health.put(metric.name, (state, alarms))
        return alarms

    def _job(self, asked: Asked, question: Question) -> Future[Shown]:
        """Begin to make an answer, or find the job that does already."""
        with self._guard:
            job = self._jobs.get(asked.key)
            if job is None:
                for key in [key for key, other in self._jobs.items() if other.done()]:
                    del self._jobs[key]  # nobody has come back for it
                if len(self._jobs) >= MAX_JOBS:
                    raise Refused("busy", f"others wait for answers already; allowed: {MAX_JOBS}; try again later")
                job = self._jobs[asked.key] = Future()
                threading.Thread(target=self._work, args=(job, asked, question), daemon=True).start()
            return job

    def _work(self, job: Future[Shown], asked: Asked, question: Question) -> None:
        try:
            shown = self._decode(question)
            self._answers.put(asked.key, shown)
            if asked.is_plain:
                self._health.put(asked.metric.name, (None, shown.estimates.alarms))
            shown = replace(shown, history=self._history(asked, shown))
        except BaseException as error:  # noqa: BLE001  (it is told to whoever waits for it)
            job.set_exception(error)
        else:
            self._answers.put(asked.key, shown)
            job.set_result(shown)

    def _decode(self, question: Question) -> Shown:
        """Make all but the history."""
        periods = question.periods
        question, body = self._collector.decoder.answer(question)
        estimates = msgspec.json.decode(body, type=Estimates)
        listed = None if question.revision is None else question.revision[1]
        values = _most_common(estimates)[:HISTORY_VALUES]
        return Shown(question.etag, body, estimates, None, values, periods, listed, datetime.now(UTC))

    def _history(self, asked: Asked, shown: Shown) -> tuple[Estimates, ...]:
        kind = shown.estimates.kind
        values = _most_common(shown.estimates) if kind == "string" else ()
        most = HISTORY_STRING_PERIODS if kind == "string" else HISTORY_PERIODS
        tallies = tallies_by_period(self._collector.store, asked.metric, asked.start, asked.end, most)
        if not tallies or (kind == "string" and not values):
            return ()
        told = [tally.json() for tally in tallies]
        order = History(self._collector.registry.text, asked.metric.name, told, values, asked.confidence, asked.control)
        try:
            return WORKSHOP.history(order)
        except Refused as refused:
            logger.warning("%s", refused)  # what there is without it is worth showing
            return ()


def _most_common(estimates: Estimates) -> tuple[str, ...]:
    """The values that were most common over the whole time."""
    rows = estimates.detected if estimates.kind == "string" else estimates.rows
    ordered = sorted(rows, key=lambda row: -(row.consistent if row.consistent is not None else row.share or 0.0))
    return tuple(row.value for row in ordered[:HISTORY_ASKED])
