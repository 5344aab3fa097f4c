"""Answering what is there: from the store through the decoder, one string metric at a time, and each only once."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from importlib.metadata import version
from typing import TYPE_CHECKING

import msgspec

from hubbub.collector.decode import Control, decode
from hubbub.collector.decode.process import DecodingFailedError, Order, Spelling, decode_apart, spell
from hubbub.collector.pace import Pace
from hubbub.collector.refusal import Refused
from hubbub.collector.store.candidates import get_chunks, get_revision
from hubbub.collector.tally import Tally
from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from subprocess import Popen

    from hubbub.collector.store import Store
    from hubbub.collector.store.candidates import Revision
    from hubbub.shared.metric import Metric
    from hubbub.shared.registry import Registry

TURN_SECONDS = 60.0
"""The longest that a request waits until others have been decoded."""

MAX_WAITING = 2
"""Requests that may wait for that: each occupies a thread, and the other routes need some too."""

CACHE_ENTRIES = 64
CACHE_BYTES = 64 << 20
"""Answers that are kept, as long as they are not larger than this all together."""

logger = logging.getLogger("hubbub.collector")


@dataclass(frozen=True)
class Manner:
    """What the one who asks may choose: how to decode, and how to tell."""

    confidence: float
    control: Control
    strict: bool
    undetected: bool
    spelling: Spelling


@dataclass(frozen=True)
class Question:
    """Everything that an answer depends on."""

    metric: Metric
    tally: bytes
    """As JSON."""
    periods: int
    revision: Revision | None
    """Of the list of candidates; None if there is none, or can be none."""
    manner: Manner

    @cached_property
    def etag(self) -> str:
        """A digest: where it is the same, the answer is the same, bit for bit."""
        manner = self.manner
        known = (
            _version(),
            self.metric.fingerprint,
            sha256(self.tally).hexdigest(),
            self.periods,
            self.revision,
            (manner.confidence, manner.control, manner.strict, manner.undetected, manner.spelling),
        )
        return sha256(msgspec.json.encode(known)).hexdigest()


class Decoder:
    """The one that decodes, for all who ask a process that serves. `close` it."""

    def __init__(self, registry: Registry, store: Store) -> None:
        self.pace = Pace()
        self._registry = registry
        self._store = store
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._turn = threading.Lock()
        self._guard = threading.Lock()
        """Of what is below, and of what is kept."""
        self._asking = 0
        self._process: Popen[bytes] | None = None
        self._closing = False

    def question(self, metric: Metric, start: date | None, end: date | None, manner: Manner) -> Question:
        """Read from the store what a question is about."""
        revision = None
        if metric.kind == "string":
            revision = get_revision(self._store.engine, metric.name)
            if revision is None:
                raise no_candidates(metric)
        periods = max(self._store.periods(metric, start, end), 1)
        return Question(metric, self._store.tally(metric, start, end).json(), periods, revision, manner)

    def answer(self, question: Question) -> tuple[Question, bytes]:
        """Give the estimates as they are wanted, with the question they answer: candidates may have changed."""
        try:
            if question.metric.kind == "string":
                return self._answer_strings(question)
            manner = question.manner
            estimates = decode(
                question.metric,
                Tally.parse(question.tally, question.metric),
                confidence=manner.confidence,
                control=manner.control,
                periods=question.periods,
            )
        except ParameterError as error:
            # What was asked has been looked at before: so it is the tally that makes no sense.
            logger.error("%s", error)  # noqa: TRY400  (where it was found is of no use)
            raise Refused("internal", str(error)) from None
        return question, spell(estimates, manner.spelling, undetected=manner.undetected)

    def close(self) -> None:
        """Decode nothing more, and end the process that does."""
        with self._guard:
            self._closing = True
            if self._process is not None:
                self._process.kill()

    def _answer_strings(self, question: Question) -> tuple[Question, bytes]:
        body = self._recall(question)
        if body is not None:
            return question, body
        with self._taking_turns():
            found = get_chunks(self._store.engine, question.metric.name)
            if found is None:
                raise no_candidates(question.metric)
            revision, chunks = found
            question = replace(question, revision=revision)
            body = self._recall(question)  # somebody before us may have asked the same
            if body is None:
                with self.pace.working():
                    body = self._decode_apart(question, chunks)
                self._keep(question, body)
        return question, body

    def _decode_apart(self, question: Question, chunks: list[bytes]) -> bytes:
        manner = question.manner
        order = Order(
            self._registry.text,
            question.metric.name,
            question.tally,
            chunks,
            manner.confidence,
            manner.control,
            manner.strict,
            question.periods,
            manner.undetected,
            manner.spelling,
        )
        try:
            return decode_apart(order, self._started)
        except DecodingFailedError as error:
            if self._closing:
                raise _closing() from None
            logger.warning("%s", error)
            raise Refused("decoding_failed", f"{error}; try again later") from None
        finally:
            self._process = None

    def _started(self, process: Popen[bytes]) -> None:
        with self._guard:
            self._process = process
            if self._closing:
                process.kill()

    @contextmanager
    def _taking_turns(self) -> Iterator[None]:
        """Let one after the other decode, as long as not too many wait, and none for too long."""
        with self._guard:
            if self._asking > MAX_WAITING:
                raise Refused("busy", f"others wait to be decoded already; allowed: {MAX_WAITING}; try again later")
            self._asking += 1
        try:
            if not self._turn.acquire(timeout=TURN_SECONDS):
                raise Refused("busy", f"others have been decoding for more than {TURN_SECONDS:g} s; try again later")
            try:
                if self._closing:
                    raise _closing()
                yield
            finally:
                self._turn.release()
        finally:
            with self._guard:
                self._asking -= 1

    def _recall(self, question: Question) -> bytes | None:
        with self._guard:
            body = self._kept.get(question.etag)
            if body is not None:
                self._kept.move_to_end(question.etag)
            return body

    def _keep(self, question: Question, body: bytes) -> None:
        if len(body) > CACHE_BYTES:
            return
        with self._guard:
            self._kept[question.etag] = body
            while len(self._kept) > CACHE_ENTRIES or sum(map(len, self._kept.values())) > CACHE_BYTES:
                self._kept.popitem(last=False)


@cache
def _version() -> str:
    return version("hubbub")


def _closing() -> Refused:
    return Refused("closing", "the collector is being stopped; try again later")


def no_candidates(metric: Metric) -> Refused:
    """Refuse to look for strings where nobody has said for which."""
    return Refused(
        "no_candidates",
        f'metric "{metric.name}": has no candidates, and strings are only found among those that are asked about; '
        f"allowed: after PUT /v1/metrics/{metric.name}/candidates, one string a line, as text/plain",
    )
