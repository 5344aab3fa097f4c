"""google/rappor's own files: parameters, counts and map, as its tools write them, read strictly.

* parameters: `k,h,m,p,q,f`, in any order, and a line of their values;
* counts: a line for each cohort, how many reports it sent, then how often each of the k bits was set;
* map: a line for each string, then h indices for each of the m cohorts, cohort * k + bit + 1.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hubbub.shared.errors import ParameterError
from hubbub.shared.text import MAX_TEXT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import IO

    from numpy.typing import NDArray

NAMES = ("k", "h", "m", "p", "q", "f")
MOST_REPORTS = 1 << 53
"""Beyond it a count is no longer exact as a floating-point number."""

MOST_INDICES = 1 << 24
"""The most numbers on one line of a map."""

CHUNK = 1 << 22
"""Bytes of numbers that are read at once."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_MOST_DIGITS = 32
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Parameters:
    """RAPPOR's parameters by the names of the paper; p = Pr[1 | 0] and q = Pr[1 | 1] of the instantaneous response."""

    k: int
    h: int
    m: int
    p: float
    q: float
    f: float


@dataclass(frozen=True)
class Counts:
    """Reports of each cohort, and how often each bit was set: a row for each cohort."""

    reports: NDArray[np.int64]
    bits: NDArray[np.int64]


@dataclass(frozen=True)
class Map:
    """Strings, and the bits that each sets: cohort * k + bit, h for each cohort."""

    strings: list[str]
    rows: NDArray[np.int32]


@dataclass(frozen=True)
class _Place:
    """Where in a file something stands."""

    path: Path
    line: int
    column: int | str = 1

    def fault(self, fault: str, allowed: str) -> ParameterError:
        return ParameterError(f"{self.path}, line {self.line}, column {self.column}: {fault}; allowed: {allowed}")


def read_parameters(path: Path) -> Parameters:
    """Read the file of parameters."""
    lines = [(number, _fields(_Place(path, number), row)) for number, row in _rows(path, len(NAMES))]
    allowed = f"a header {','.join(NAMES)}, in any order, and one line of values"
    if not lines:
        raise _Place(path, 1).fault("the header is missing", allowed)
    number, header = lines[0]
    header = [name.strip() for name in header]
    for column, name in enumerate(header, 1):
        if name not in NAMES or name in header[: column - 1]:
            fault = "is there twice" if name in NAMES else "is not a parameter"
            raise _Place(path, number, column).fault(f"{_shown(name)} {fault}", allowed)
    for name in NAMES:
        if name not in header:
            raise _Place(path, number, name).fault("is missing", allowed)
    if len(lines) != 2:
        line = number + 1 if len(lines) < 2 else lines[2][0]
        raise _Place(path, line).fault("is missing" if len(lines) < 2 else "is one line too many", allowed)
    number, values = lines[1]
    _check_width(_Place(path, number), len(values), len(NAMES), "a value for each of the header's columns")
    given = dict(zip(header, values, strict=True))
    places = {name: _Place(path, number, name) for name in NAMES}
    k, h, m = (_whole(places[name], given[name], 1, (1 << 31) - 1) for name in ("k", "h", "m"))
    p, q, f = (_number(places[name], given[name], "a number from 0 to 1") for name in ("p", "q", "f"))
    if not 0 <= f < 1:
        raise places["f"].fault(f"is {f:g}", "0 and above, below 1")
    for name, value in (("p", p), ("q", q)):
        if not 0 <= value <= 1:
            raise places[name].fault(f"is {value:g}", "a number from 0 to 1")
    if not p < q:
        raise places["q"].fault(f"is {q:g}, and p is {p:g}", "q above p")
    if k * m >= 1 << 31:
        raise places["m"].fault(f"k * m is {k * m}", "below 2^31")
    if h * m > MOST_INDICES:
        raise places["m"].fault(f"h * m is {h * m}", f"up to {MOST_INDICES}")
    return Parameters(k, h, m, p, q, f)


def read_counts(path: Path, parameters: Parameters) -> Counts:
    """Read the file of counts."""
    k, m = parameters.k, parameters.m
    allowed = f"a line for each of the m = {m} cohorts"
    found: list[NDArray[np.int64]] = []
    reports = line = 0
    for line, row in _rows(path, k + 1):
        place = _Place(path, line)
        if len(found) == m:
            raise place.fault("is one line too many", allowed)
        numbers = None if isinstance(row, list) else _parse([row], k + 1)
        if numbers is None:
            spelled = _fields(place, row)
            _check_width(place, len(spelled), k + 1, f"how many reports, and the counts of {k} bits")
            numbers = np.array([_each(place, spelled, 1, 0, MOST_REPORTS)])
        [counts] = numbers
        reports += int(counts[0])
        if reports > MOST_REPORTS:
            raise place.fault(f"there are {reports} reports up to here", f"up to {MOST_REPORTS}")
        above = np.flatnonzero(counts[1:] > counts[0])
        if len(above):
            bit = int(above[0])
            place = _Place(path, line, bit + 2)
            raise place.fault(f"{counts[bit + 1]} is above the {counts[0]} reports of its cohort", f"0 to {counts[0]}")
        found.append(counts)
    if len(found) < m:
        raise _Place(path, line + 1).fault(f"is missing, there are {len(found)} lines", allowed)
    together = np.stack(found)
    return Counts(together[:, 0].copy(), together[:, 1:].copy())


def read_map(path: Path, parameters: Parameters) -> Map:
    """Read the file of strings; one that is there twice with the same bits counts once."""
    width = parameters.h * parameters.m
    first = np.repeat(np.arange(parameters.m, dtype=np.int64) * parameters.k + 1, parameters.h)
    strings: dict[str, int] = {}
    repeated: list[tuple[int, int, int]] = []
    parts: list[NDArray[np.int32]] = []
    lines: list[int] = []
    tails: list[bytes] = []
    size = read = 0

    def take() -> None:
        numbers = _parse(tails, width)
        if numbers is None:
            numbers = _parse_carefully(path, lines, tails, width)
        _check_blocks(path, lines, numbers, first, parameters.k)
        parts.append((numbers - 1).astype(np.int32))

    for line, row in _rows(path, width + 1, MAX_TEXT_BYTES):
        name, tail = _split(_Place(path, line), row, width)
        before = strings.setdefault(name, read)
        if before != read:
            repeated.append((before, read, line))
        read += 1
        lines.append(line)
        tails.append(tail)
        size += len(tail)
        if size >= CHUNK:
            take()
            lines, tails, size = [], [], 0
    if not read:
        raise _Place(path, 1).fault("the map is empty", "a string and its indices on each line, at least one line")
    if tails:
        take()
    rows = np.concatenate(parts)
    for before, again, line in repeated:
        if set(rows[before].tolist()) != set(rows[again].tolist()):
            fault = "the string is there already, with other indices"
            raise _Place(path, line).fault(fault, "each string once, or with the same bits")
    if repeated:
        rows = rows[np.array(list(strings.values()))]
    return Map(list(strings), rows)


def _split(place: _Place, row: bytes | list[str], width: int) -> tuple[str, bytes]:
    """Take a line of a map apart: its string, and its numbers as they are spelled."""
    if isinstance(row, list):
        name = row[0]
        _check_width(place, len(row), width + 1, f"a string and {width} indices, h for each cohort")
        _whole_fields(place, row)
        tail = ",".join(row[1:]).encode()
    else:
        spelled, _, tail = row.partition(b",")
        _check_width(place, row.count(b",") + 1, width + 1, f"a string and {width} indices, h for each cohort")
        name = _text(place, spelled)
    if not name:
        raise place.fault("the string is empty", f"1 to {MAX_TEXT_BYTES} bytes")
    # A character has one byte or more, and seldom is a string near the limit.
    if 4 * len(name) > MAX_TEXT_BYTES and len(name.encode()) > MAX_TEXT_BYTES:
        raise place.fault("the string is too long", f"1 to {MAX_TEXT_BYTES} bytes")
    return name, tail


def _whole_fields(place: _Place, fields: Sequence[str]) -> None:
    """Refuse a comma inside a quoted number, which would look like two numbers once the quotes are gone."""
    for column, field in enumerate(fields[1:], 2):
        if "," in field:
            raise _Place(place.path, place.line, column).fault(f"{_shown(field)} is not a number", "a whole number")


def _check_blocks(
    path: Path, lines: list[int], numbers: NDArray[np.int64], first: NDArray[np.int64], bits: int
) -> None:
    """Refuse an index that is not one of its cohort's."""
    wrong = (numbers < first) | (numbers >= first + bits)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        low = int(first[column])
        raise _Place(path, lines[row], column + 2).fault(
            f"{numbers[row, column]} is not an index of cohort {(low - 1) // bits}", f"{low} to {low + bits - 1}"
        )


def _parse(tails: list[bytes], width: int) -> NDArray[np.int64] | None:
    """Read lines of whole numbers, all at once; None if anything is there but digits and the right commas."""
    joined = b",".join(tails)
    plain = (
        all(tail.count(b",") == width - 1 for tail in tails)
        and not joined.translate(None, b"0123456789,")
        and b",," not in joined
        and not joined.startswith(b",")
        and not joined.endswith(b",")
        and len(joined) > 0
    )
    if not plain:
        return None
    # What is too large for 64 bits becomes the largest number there is, which no limit lets through.
    return np.fromstring(joined, np.int64, sep=",").reshape(len(tails), width)


def _parse_carefully(path: Path, lines: list[int], tails: list[bytes], width: int) -> NDArray[np.int64]:
    """Read lines of numbers one by one, and tell which is none."""
    numbers = np.empty((len(tails), width), np.int64)
    for row, (line, tail) in enumerate(zip(lines, tails, strict=True)):
        place = _Place(path, line)
        numbers[row] = _each(place, _text(place, tail, 2).split(","), 2, 1, (1 << 31) - 1)
    return numbers


def _each(place: _Place, fields: Sequence[str], column: int, low: int, high: int) -> list[int]:
    """Read whole numbers that stand from a column on."""
    return [_whole(_Place(place.path, place.line, at), field, low, high) for at, field in enumerate(fields, column)]


def _whole(place: _Place, field: str, low: int, high: int) -> int:
    """Read a whole number; R spells a hundred thousand 1e+05, which is one."""
    allowed = f"a whole number from {low} to {high}"
    number = _number(place, field, allowed)
    if not number.is_integer() or not low <= number <= high:
        raise place.fault(f"is {field.strip()}", allowed)
    return int(number)


def _number(place: _Place, field: str, allowed: str) -> float:
    text = field.strip()
    if not text:
        raise place.fault("is empty", allowed)
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        raise place.fault(f"{_shown(text)} is not a number", allowed)
    number = float(text)
    if not math.isfinite(number):
        raise place.fault(f"{_shown(text)} is not a finite number", allowed)
    return number


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MOST_DIGITS else text[:_MOST_DIGITS] + "...")


def _check_width(place: _Place, found: int, wanted: int, allowed: str) -> None:
    if found != wanted:
        place = _Place(place.path, place.line, min(found, wanted) + 1)
        fault = "is missing" if found < wanted else "is one too many"
        raise place.fault(f"{fault}, the line has {found} fields", f"{wanted}: {allowed}")


def _fields(place: _Place, row: bytes | list[str]) -> list[str]:
    return row if isinstance(row, list) else _text(place, row).split(",")


def _text(place: _Place, spelled: bytes, column: int = 1) -> str:
    """Read UTF-8 that stands from a column on."""
    try:
        return spelled.decode()
    except UnicodeDecodeError as error:
        at = _Place(place.path, place.line, column + spelled.count(b",", 0, error.start))
        byte = spelled[error.start]
    raise at.fault(f"byte 0x{byte:02x} is not UTF-8", "text in UTF-8")


def _rows(path: Path, fields: int, text_bytes: int = 0) -> Iterator[tuple[int, bytes | list[str]]]:
    """Give each line and its number, as bytes, or as fields where there are quotes; empty lines only at the end."""
    longest = 2 * text_bytes + fields * (_MOST_DIGITS + 3) + 64
    empty = None
    try:
        with path.open("rb") as file:
            lines = _Lines(path, file, longest)
            for line in lines:
                row = line.rstrip(b"\r\n")
                if not row.strip():
                    empty = empty or lines.number
                    continue
                if empty is not None:
                    raise _Place(path, empty).fault("the line is empty", "empty lines at the end of the file only")
                if b'"' in row:
                    number = lines.number
                    yield number, lines.quoted(line)
                else:
                    yield lines.number, row
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read: {error.strerror}; allowed: a readable file") from None


class _Lines:
    """The lines of a file, numbered, none of them longer than is sane."""

    def __init__(self, path: Path, file: IO[bytes], longest: int) -> None:
        self._path = path
        self._file = file
        self._longest = longest
        self.number = 0

    def __iter__(self) -> Iterator[bytes]:
        longest, read = self._longest, self._file.readline
        while line := read(longest):
            self.number += 1
            if self.number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if len(line) == longest and not line.endswith(b"\n"):
                place = _Place(self._path, self.number, line.count(b",") + 1)
                raise place.fault("the line is too long", f"up to {longest} bytes")
            yield line

    def quoted(self, line: bytes) -> list[str]:
        """Read a line with quotes in it, and those after it that its quotes take in."""
        start, size = self.number, len(line)

        def texts() -> Iterator[str]:
            nonlocal size
            yield _text(_Place(self._path, start), line)
            for further in self:
                size += len(further)
                if size > self._longest:
                    raise _Place(self._path, start).fault(
                        "a quote is not closed, or too late", f"up to {self._longest} bytes"
                    )
                yield _text(_Place(self._path, self.number), further)

        try:
            return next(csv.reader(texts(), strict=True))
        except csv.Error as error:
            place = _Place(self._path, start, line.count(b",", 0, line.index(b'"')) + 1)
            raise place.fault(f"is not CSV: {error}", "quotes around a field, doubled inside it") from None
