"""What travels: a report, a batch of them, and their spelling as JSON and as msgpack.

Both spellings have the same fields; only the bits differ: base64url without padding in JSON, plain bytes in msgpack.
Bit i of a report is bit i % 8, least significant first, of byte i // 8, and padding bits are zero.

Decoding is strict. The length of the whole is looked at first, and every part has a bound of its own, so that no
sender decides how much memory is taken.
"""

from __future__ import annotations

import binascii
import os
from base64 import urlsafe_b64encode
from datetime import date  # noqa: TC003  (msgspec reads the annotations)
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from hubbub.shared.errors import UnreadableError, WireError

MAX_BATCH_BYTES = 1 << 20
"""The longest batch that is looked at, after any compression has been undone."""

MAX_REPORTS = 1000
"""The most reports in one batch."""

MAX_BITS = 4096
MAX_COHORTS = 1024
MAX_NAME = 64
MAX_VERSION = (1 << 31) - 1

MediaType: TypeAlias = Literal["application/json", "application/msgpack"]
JSON: MediaType = "application/json"
MSGPACK: MediaType = "application/msgpack"

_BatchId: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{32}$", max_length=32)]
_Packed: TypeAlias = Annotated[bytes, Meta(min_length=1, max_length=MAX_BITS // 8)]
_Base64: TypeAlias = Annotated[str, Meta(min_length=2, max_length=(MAX_BITS // 8 * 4 + 2) // 3)]


class _Label(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What a report says about itself, besides its bits."""

    metric: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    version: Annotated[int, Meta(ge=1, le=MAX_VERSION)]
    period: date
    cohort: Annotated[int, Meta(ge=0, lt=MAX_COHORTS)]


class Report(_Label, frozen=True, forbid_unknown_fields=True, gc=False):
    """One metric, one period, one device: the noisy bits, and nothing else of the device but its cohort."""

    bits: _Packed


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    """Reports posted together under one random id, so that a batch sent again is counted once."""

    batch: _BatchId
    reports: Annotated[tuple[Report, ...], Meta(max_length=MAX_REPORTS)]


class JsonReport(_Label, frozen=True, forbid_unknown_fields=True, gc=False):
    """A report as JSON spells it: the bits are text."""

    bits: _Base64


class JsonBatch(Struct, frozen=True, forbid_unknown_fields=True):
    """A batch as JSON spells it."""

    batch: _BatchId
    reports: Annotated[tuple[JsonReport, ...], Meta(max_length=MAX_REPORTS)]


_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_LAST = (_ALPHABET, "", _ALPHABET[::16], _ALPHABET[::4])
"""Characters that may end a text, by its length modulo 4: those whose unused bits are zero."""

_PADDING = (b"", b"===", b"==", b"=")
"""What base64 has at the end of a text, by its length modulo 4."""

_TO_STANDARD = bytes.maketrans(b"-_+/", b"+/!!")
"""From base64url to base64, with what is base64 alone turned into what is neither."""

_decode_json = msgspec.json.Decoder(JsonBatch).decode
_decode_msgpack = msgspec.msgpack.Decoder(Batch).decode


def new_batch_id() -> str:
    """Draw an id that no other batch will ever have."""
    return os.urandom(16).hex()


def encode_batch(batch: Batch, media_type: MediaType = JSON) -> bytes:
    """Spell a batch."""
    if media_type == MSGPACK:
        return msgspec.msgpack.encode(batch)
    reports = tuple(
        JsonReport(report.metric, report.version, report.period, report.cohort, _to_base64(report.bits))
        for report in batch.reports
    )
    return msgspec.json.encode(JsonBatch(batch.batch, reports))


def decode_batch(body: bytes, media_type: MediaType = JSON) -> Batch:
    """Read a batch, or raise WireError saying where and how it is malformed."""
    if len(body) > MAX_BATCH_BYTES:
        raise WireError(f"batch: is {len(body)} bytes long; allowed: up to {MAX_BATCH_BYTES}")
    try:
        if media_type == MSGPACK:
            return _decode_msgpack(body)
        spelled = _decode_json(body)
        reports = [
            Report(report.metric, report.version, report.period, report.cohort, _from_base64(report.bits, index))
            for index, report in enumerate(spelled.reports)
        ]
    except msgspec.ValidationError as error:
        raise WireError(f"batch: {error}; allowed: the fields of a batch, as {media_type}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError(f"batch: {error}; allowed: {media_type}") from None
    return Batch(spelled.batch, tuple(reports))


def _to_base64(bits: bytes) -> str:
    return urlsafe_b64encode(bits).rstrip(b"=").decode("ascii")


def _from_base64(text: str, index: int) -> bytes:
    try:
        bits = binascii.a2b_base64(text.encode().translate(_TO_STANDARD) + _PADDING[len(text) % 4], strict_mode=True)
    except ValueError:
        bits = b""
    # One spelling only: the last character has no stray bits.
    if not bits or text[-1] not in _LAST[len(text) % 4]:
        raise WireError(f"batch: bits of report {index} are not base64url without padding; allowed: just that")
    return bits
