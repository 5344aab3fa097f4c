"""Refusing a request: a status, a stable code, and a sentence, as application/problem+json (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

PROBLEM = "application/problem+json"

RETRY_SECONDS = 2
"""What Retry-After says while the store is down, the queue is full, or others are being decoded."""

MAX_DETAIL = 1000
"""The longest sentence, in characters: some repeat a part of the request, which may be a megabyte long."""

CODES: dict[str, int] = {
    "bad_gzip": 400,
    "bad_query": 400,
    "bad_request": 400,
    "not_readable": 400,
    "token_wrong": 401,
    "not_found": 404,
    "method_not_allowed": 405,
    "body_too_slow": 408,
    "no_candidates": 409,
    "too_large": 413,
    "media_type": 415,
    "content_encoding": 415,
    "not_a_batch": 422,
    "not_candidates": 422,
    "internal": 500,
    "store_down": 503,
    "queue_full": 503,
    "busy": 503,
    "decoding_failed": 503,
    "closing": 503,
}
"""Every code of a refusal, with its status. The words are part of the interface and never change their meaning."""


class ProblemDocument(msgspec.Struct, frozen=True):
    """A refusal as it is spelled in JSON."""

    title: str
    status: int
    code: str
    detail: str
    type: str = "about:blank"


class Refused(Exception):  # noqa: N818  (it is an answer, and no error of the collector)
    """A request that is not served, and why."""

    def __init__(self, code: str, detail: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.status = CODES[code]
        if self.status == 503:
            headers = (*headers, ("Retry-After", str(RETRY_SECONDS)))
        self.headers = headers

    def body(self) -> bytes:
        """Spell it."""
        return problem(self.status, self.code, self.detail)


def problem(status: int, code: str, detail: str) -> bytes:
    """Spell a refusal as problem+json."""
    return msgspec.json.encode(ProblemDocument(HTTPStatus(status).phrase, status, code, detail[:MAX_DETAIL]))
