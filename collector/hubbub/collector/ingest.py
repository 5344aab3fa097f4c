"""Taking batches in: what is looked at, in which order, and what is answered. Free of any web server.

`hubbub.collector.front` puts it before Flask, for WSGI and for ASGI servers.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from hubbub.collector.acceptance import Rejected  # noqa: TC001  (msgspec reads the annotations)
from hubbub.collector.refusal import Refused
from hubbub.shared.errors import UnreadableError, WireError
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES, MSGPACK, decode_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from hubbub.collector.acceptance import Acceptance, Judged
    from hubbub.collector.token import Token
    from hubbub.shared.wire import MediaType

    Header = Callable[[str], str | None]
    """What a line of the head says, by its name in small letters."""

PATH = "/v1/batches"
MEDIA_TYPES = (JSON, MSGPACK)
_ALLOWED_TYPES = " or ".join(MEDIA_TYPES)
_GZIP = 16 + zlib.MAX_WBITS
_encode = msgspec.json.Encoder().encode


class Receipt(msgspec.Struct, frozen=True):
    """What the sender of a batch is told: only after it has been committed."""

    accepted: int
    duplicate: bool
    rejected: list[Rejected]


@dataclass(frozen=True, slots=True)
class Head:
    """How the body of a request is spelled."""

    media_type: MediaType
    compressed: bool


def look_at_head(header: Header, key: Token | None) -> Head:
    """Judge a request before its body is read, by lines of its head."""
    content_type, content_encoding = header("content-type"), header("content-encoding")
    content_length = header("content-length")
    if content_type == JSON and content_encoding is None and key is None and _short(content_length):
        return _PLAIN  # as nearly all are
    if key is not None and not key.opens(header("authorization")):
        raise Refused("token_wrong", "this collector takes batches only with its ingest key", BEARER)
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type not in MEDIA_TYPES:
        raise Refused("media_type", f"Content-Type: is not that of a batch; allowed: {_ALLOWED_TYPES}")
    encoding = (content_encoding or "identity").strip().lower()
    if encoding not in {"identity", "gzip"}:
        raise Refused("content_encoding", "Content-Encoding: is not known; allowed: gzip, or none", ACCEPT_GZIP)
    if not _short(content_length):
        raise too_large()
    return Head(media_type, encoding == "gzip")


_PLAIN = Head(JSON, compressed=False)


def _short(content_length: str | None) -> bool:
    """Whether a body may be read: the length that is announced is not too large, or there is none."""
    return not content_length or not content_length.isdecimal() or int(content_length[:19]) <= MAX_BATCH_BYTES


def read_batch(head: Head, body: bytes, acceptance: Acceptance) -> Judged:
    """Read a body and judge the reports in it."""
    if len(body) > MAX_BATCH_BYTES:
        raise too_large()
    if head.compressed:
        body = _expand(body)
    try:
        batch = decode_batch(body, head.media_type)
    except UnreadableError as error:
        raise Refused("not_readable", str(error)) from None
    except WireError as error:
        raise Refused("not_a_batch", str(error)) from None
    return acceptance.judge(batch)


def receipt(judged: Judged, *, new: bool) -> bytes:
    """Spell the answer to a batch that is on the disk, or of which nothing counts."""
    if new and not judged.rejected:
        return b'{"accepted":%d,"duplicate":false,"rejected":[]}' % len(judged.reports)
    return _encode(Receipt(len(judged.reports), bool(judged.reports) and not new, judged.rejected))


def too_large() -> Refused:
    """Refuse a body for its length."""
    return Refused("too_large", f"batch: is too long; allowed: up to {MAX_BATCH_BYTES} bytes, expanded or not")


def _expand(body: bytes) -> bytes:
    """Undo gzip, but never further than to the longest batch that is looked at: a bomb does not go off."""
    stream = zlib.decompressobj(_GZIP)
    try:
        expanded = stream.decompress(body, MAX_BATCH_BYTES + 1)
    except zlib.error:
        raise Refused("bad_gzip", "batch: is not gzip; allowed: one whole gzip member") from None
    if len(expanded) > MAX_BATCH_BYTES:
        raise too_large()
    if not stream.eof or stream.unused_data:
        raise Refused("bad_gzip", "batch: gzip ends too early or too late; allowed: one whole gzip member")
    return expanded


BEARER = (("WWW-Authenticate", "Bearer"),)
ACCEPT_GZIP = (("Accept-Encoding", "gzip"),)
