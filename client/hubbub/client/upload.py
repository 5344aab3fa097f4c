"""Uploading one batch, and what each answer of the collector means."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hubbub.client.importing import import_requests

if TYPE_CHECKING:
    from collections.abc import Mapping

    import requests

GZIP_FROM_BYTES = 1024
CONNECT_SECONDS = 5.0
READ_SECONDS = 15.0
MAX_ANSWER_BYTES = 1 << 20
_REASON = re.compile("[a-z][a-z0-9_]{0,39}")
RETRY_STATUS = frozenset({408, 425, 429})


class _Rejected(msgspec.Struct):
    index: int
    reason: str


class _Answer(msgspec.Struct):
    accepted: int
    duplicate: bool
    rejected: list[_Rejected]


_decode_answer = msgspec.json.Decoder(_Answer).decode


@dataclass(frozen=True)
class Outcome:
    """What to do with a batch after an attempt."""

    action: Literal["delivered", "retry", "split", "drop"]
    reason: str = ""
    rejected: Mapping[str, int] = field(default_factory=dict)
    retry_after: float | None = None


def upload(session: requests.Session, url: str, body: bytes, reports: int, timeout: float | None = None) -> Outcome:
    """Post a batch of so many reports once. Nothing is raised: whatever goes wrong is an outcome."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if len(body) >= GZIP_FROM_BYTES:
        # Without a time of compression, so that a retry sends the very same bytes.
        body, headers["Content-Encoding"] = gzip.compress(body, mtime=0), "gzip"
    limits = (min(CONNECT_SECONDS, timeout or CONNECT_SECONDS), min(READ_SECONDS, timeout or READ_SECONDS))
    try:
        with session.post(url, data=body, headers=headers, timeout=limits, **_always(session)) as answer:
            return _judge(answer, reports)
    except (import_requests().RequestException, OSError) as error:
        return Outcome("retry", type(error).__name__)


def download(session: requests.Session, url: str) -> str | None:
    """Get a text, or nothing if anything at all is wrong with it."""
    try:
        with session.get(url, timeout=(CONNECT_SECONDS, READ_SECONDS), **_always(session)) as answer:
            text = _bounded(answer) if answer.status_code == 200 else None
            return None if text is None else text.decode()
    except (import_requests().RequestException, OSError, UnicodeDecodeError):
        return None


def _always(session: requests.Session) -> dict[str, Any]:
    """What every request is told. `verify` is said again because the environment would win over the session's."""
    return {"allow_redirects": False, "stream": True, "verify": session.verify}


def _bounded(answer: requests.Response) -> bytes | None:
    """Read a body, or give up on one that is too long."""
    text = b""
    for chunk in answer.iter_content(1 << 14):
        text += chunk
        if len(text) > MAX_ANSWER_BYTES:
            return None
    return text


def _judge(answer: requests.Response, reports: int) -> Outcome:
    status = answer.status_code
    if status == 200:
        return _read_answer(answer, reports)
    if status == 413:
        return Outcome("split", "http_413")
    if 400 <= status < 500 and status not in RETRY_STATUS:
        return Outcome("drop", f"http_{status}")
    return Outcome("retry", f"http_{status}", retry_after=_retry_after(answer.headers.get("Retry-After")))


def _read_answer(answer: requests.Response, reports: int) -> Outcome:
    """Believe a 200 only if it speaks like a collector: a hotel's login page says 200, too."""
    text = _bounded(answer)
    if text is None:
        return Outcome("retry", "answer_too_long")
    try:
        told = _decode_answer(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Outcome("retry", "answer_not_understood")
    # Each report is rejected once, and reasons are words: a collector does not decide what the counters are called.
    reasons = {each.index: each.reason if _REASON.fullmatch(each.reason) else "other" for each in told.rejected}
    return Outcome("delivered", rejected=Counter(reason for index, reason in reasons.items() if 0 <= index < reports))


def _retry_after(header: str | None) -> float | None:
    """Read seconds or a date; what is neither counts as not said."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  (brings much along, and is seldom needed)

    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())
