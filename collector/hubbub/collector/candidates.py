"""Lists of candidates: read line by line as they arrive, and kept in compressed chunks."""

from __future__ import annotations

import tempfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import msgspec

from hubbub.shared.errors import ParameterError, ValueRefusedError
from hubbub.shared.text import MAX_TEXT_BYTES, canonical_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_CANDIDATES = 1_000_000
MAX_CANDIDATES_BYTES = 128 << 20
"""The longest list, in bytes as it arrives."""

CHUNK = 10_000
"""Strings that are kept together."""

TEXT = "text/plain"
LINES = "application/x-ndjson"
MEDIA_TYPES = (TEXT, LINES)
"""One string a line: as it is, or as a JSON string, for those that contain line breaks."""

_MAX_LINE = 6 * MAX_TEXT_BYTES + 3  # every byte spelled as \u00xx in JSON, two quotes and a line break


class TooManyCandidatesError(ParameterError):
    """A list that is longer than is kept."""


@dataclass(frozen=True)
class Spooled:
    """A list that was read, checked and compressed, on its way into the store."""

    file: IO[bytes]
    sizes: list[int]
    strings: int

    def chunks(self) -> Iterator[bytes]:
        """Give the compressed chunks, one at a time."""
        self.file.seek(0)
        for size in self.sizes:
            yield self.file.read(size)


@contextmanager
def spooling(stream: IO[bytes], media_type: str) -> Iterator[Spooled]:
    """Read a list, however long, in little memory; an error tells the line."""
    with tempfile.SpooledTemporaryFile(max_size=1 << 20) as file:
        sizes: list[int] = []
        strings = 0
        for chunk in _chunks(stream, media_type):
            sizes.append(file.write(zlib.compress(msgspec.json.encode(chunk))))
            strings += len(chunk)
        if not strings:
            raise ParameterError("candidates: the list is empty; allowed: at least one, or DELETE to have none")
        yield Spooled(file, sizes, strings)


def _chunks(stream: IO[bytes], media_type: str) -> Iterator[list[str]]:
    chunk: list[str] = []
    number = length = 0
    while line := stream.readline(_MAX_LINE):
        number += 1
        length += len(line)
        if number > MAX_CANDIDATES or length > MAX_CANDIDATES_BYTES:
            raise TooManyCandidatesError(
                f"candidates: more than {MAX_CANDIDATES} or {MAX_CANDIDATES_BYTES} bytes; allowed: up to that"
            )
        chunk.append(_read_line(line, number, media_type))
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def unpack(chunks: Iterable[bytes]) -> Iterator[list[str]]:
    """Read the strings of chunks back, some thousand at a time."""
    for chunk in chunks:
        yield msgspec.json.decode(zlib.decompress(chunk), type=list[str])


def spell(chunks: Iterable[bytes], media_type: str) -> Iterator[bytes]:
    """Spell a list as it would be uploaded; in plain text only if no string has a line break in it."""
    for strings in unpack(chunks):
        if media_type == TEXT:
            yield "".join(f"{string}\n" for string in strings).encode()
        else:
            yield b"".join(msgspec.json.encode(string) + b"\n" for string in strings)


def _read_line(line: bytes, number: int, media_type: str) -> str:
    try:
        if media_type == LINES:
            string = msgspec.json.decode(line, type=str)
        else:
            string = line.decode().removesuffix("\n").removesuffix("\r")
        canonical_text(string)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        fault = "is not a JSON string" if media_type == LINES else "is not UTF-8"
    except ValueRefusedError as error:
        fault = str(error)
    else:
        return string
    raise ParameterError(f"candidates: line {number} {fault}") from None
