"""Requests that nobody should send: valid ones with something done to them, and plain noise. The same for a seed."""

import gzip
import json
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Any

import msgspec

from hubbub.shared import Registry
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES, MSGPACK

PATH = b"/v1/batches"
FRESH = 0.7
"""How often a batch has an id that was not seen before."""

_MEMORY = 64


@dataclass(frozen=True, slots=True)
class Request:
    """A request, free of any web server."""

    method: str
    path: bytes
    """As it stands in the first line."""
    query: bytes
    headers: tuple[tuple[str, str], ...]
    parts: tuple[bytes, ...]
    """The body, as it arrives."""
    whole: bool = True
    """Whether the sender stays until the end of its body."""

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    def given(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key == name]


class Hostile:
    """Makes requests, one after the other."""

    def __init__(self, seed: int, registry: Registry, day: date, token: str, ingest_key: str | None) -> None:
        self._random = Random(seed)
        self._metrics = list(registry.values())
        self._day = day
        self._token = token
        self._key = ingest_key
        self._ids = ["00" * 16]
        self._bodies: list[tuple[bytes, str]] = []

    def request(self) -> Request:
        """Make one: most are batches, because these may change something."""
        return self._upload() if self._random.random() < 0.85 else self._question()

    # Batches.

    def _upload(self) -> Request:
        random = self._random
        body, media_type = self._body()
        encoding = ""
        if random.random() < 0.25:
            body, encoding = self._compressed(body), "gzip"
        if random.random() < 0.04:
            encoding = random.choice(_ENCODINGS)
        if random.random() < 0.06:
            media_type = random.choice(_MEDIA_TYPES)
        headers = [("content-type", media_type)] * (random.random() < 0.99)
        headers += [("content-encoding", encoding)] * bool(encoding)
        headers += self._length(body)
        headers += self._authorization(self._key, 0.95)
        headers += self._noise()
        method = "POST" if random.random() < 0.98 else random.choice(_METHODS)
        query = b"" if random.random() < 0.95 else random.choice(_QUERIES)
        whole = random.random() < 0.97
        if not whole:
            body = body[: random.randrange(len(body) + 1)]
        return Request(method, PATH, query, tuple(headers), self._parts(body), whole)

    def _body(self) -> tuple[bytes, str]:
        """Give a body and its media type."""
        random = self._random
        if self._bodies and random.random() < 0.04:
            return random.choice(self._bodies)
        media_type = JSON if random.random() < 0.6 else MSGPACK
        batch = self._batch()
        if random.random() < 0.3:
            batch = self._bent(batch)
        spelled = spell(batch, media_type)
        if spelled is None:
            return b"", media_type
        if len(spelled) < 10_000:
            self._bodies = [*self._bodies[-_MEMORY:], (spelled, media_type)]
        for _ in range(random.choice((0, 0, 1, 1, 1, 2))):
            spelled = random.choice(self._damages(media_type))(spelled)
        return spelled, media_type

    def _batch(self) -> dict[str, Any]:
        random = self._random
        if random.random() < FRESH:
            self._ids = [*self._ids[-_MEMORY:], f"{random.getrandbits(128):032x}"]
            identity = self._ids[-1]
        else:
            identity = random.choice(self._ids)
        reports = [self._report() for _ in range(random.choice((0, 1, 1, 2, 3, 5, 8)))]
        if random.random() < 0.002:
            reports *= random.choice((200, 1000))
        return {"batch": identity, "reports": reports}

    def _report(self) -> dict[str, Any]:
        random = self._random
        metric = random.choice(self._metrics)
        period = self._day - timedelta(days=random.choice((-2, -1, 0, 0, 1, 2, 3, 7, 14, 15)))
        if metric.every == "week" and random.random() < 0.9:
            period -= timedelta(days=period.weekday())
        bits = random.getrandbits(metric.size).to_bytes(metric.width, "little")
        cohort = random.randrange(metric.encoding.cohorts)
        return {
            "metric": metric.name,
            "version": metric.version,
            "period": period.isoformat(),
            "cohort": cohort,
            "bits": bits,
        }

    def _bent(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Put something else where something was."""
        random = self._random
        place = random.choice([batch, *batch["reports"]])
        key = random.choice([*place, "", "metric", "bits", "\x00", "é"])
        action = random.random()
        if action < 0.15:
            place.pop(key, None)
        elif action < 0.25:
            place[key] = [place.get(key)] * random.choice((0, 1, 2, 1001))
        elif action < 0.45 and "period" in place:
            place["period"] = random.choice(_DAYS)
        elif action < 0.5 and "version" in place:
            place["version"] += random.choice((-1, 1))
        elif action < 0.65 and "cohort" in place:
            place["cohort"] += random.choice((-1, 1, 8, 64, 1024))
            place["bits"] = random.choice((place["bits"] + b"\0", place["bits"][:-1], b"\xff" * len(place["bits"])))
        else:
            place[key] = random.choice(_VALUES)
        return batch

    def _damages(self, media_type: str) -> list[Callable[[bytes], bytes]]:
        damages: list[Callable[[bytes], bytes]] = [
            self._flip,
            self._flip,
            self._flip,
            self._truncate,
            self._splice,
            self._repeat,
            self._insert,
        ]
        if media_type == JSON:
            damages += [self._swap_text, self._swap_text, self._repeat_key]
        return damages

    def _flip(self, body: bytes) -> bytes:
        changed = bytearray(body)
        for _ in range(self._random.choice((1, 1, 2, 8)) if body else 0):
            changed[self._random.randrange(len(body))] ^= 1 << self._random.randrange(8)
        return bytes(changed)

    def _truncate(self, body: bytes) -> bytes:
        return body[: self._random.randrange(len(body) + 1)]

    def _splice(self, body: bytes) -> bytes:
        other, _ = self._random.choice(self._bodies) if self._bodies else (body, "")
        return body[: self._random.randrange(len(body) + 1)] + other[self._random.randrange(len(other) + 1) :]

    def _repeat(self, body: bytes) -> bytes:
        first, last = sorted(self._random.randrange(len(body) + 1) for _ in range(2))
        return body[:last] + body[first:last] * self._random.choice((1, 1, 2, 50)) + body[last:]

    def _insert(self, body: bytes) -> bytes:
        place = self._random.randrange(len(body) + 1)
        return body[:place] + self._random.choice(_BYTES) + body[place:]

    def _swap_text(self, body: bytes) -> bytes:
        """Put a JSON value where another one was."""
        values = [b'"metric":"', b'"cohort":', b'"version":', b'"period":', b'"bits":', b'"batch":', b'"reports":']
        key = self._random.choice(values)
        place = body.find(key, self._random.randrange(len(body) + 1))
        if place < 0:
            return body
        place += len(key)
        end = min([each for each in (body.find(b",", place), body.find(b"}", place)) if each > 0], default=place)
        return body[:place] + self._random.choice(_JSON_VALUES) + body[end:]

    def _repeat_key(self, body: bytes) -> bytes:
        """Say a key twice: as it was, or with another value before or behind it."""
        pair = b'"' + self._random.choice((b"cohort", b"version", b"batch", b"metric", b"period", b"bits")) + b'":'
        place = body.find(pair)
        if place < 0:
            return body
        end = body.find(b",", place)
        again = body[place:end] if self._random.random() < 0.4 else pair + self._random.choice(_JSON_VALUES)
        if self._random.random() < 0.5 and end > 0:
            return body[:end] + b"," + again + body[end:]
        return body[:place] + again + b"," + body[place:]

    def _compressed(self, body: bytes) -> bytes:
        random = self._random
        level = random.choice((0, 1, 6, 9))
        packed = gzip.compress(body, level, mtime=0)
        chance = random.random()
        if chance < 0.6:
            return packed
        if chance < 0.65:
            return packed + random.choice((packed, b"\0", b"\x1f\x8b", gzip.compress(b"", mtime=0)))
        if chance < 0.7:
            return random.choice((zlib.compress(body), body, b"", packed[:10], packed[:-8], packed[:-1]))
        if chance < 0.75:
            return random.choice(_BOMBS)
        return random.choice((self._flip, self._truncate, self._insert))(packed)

    # Everything else.

    def _question(self) -> Request:
        random = self._random
        name = random.choice(self._metrics).name.encode() if random.random() < 0.8 else random.choice(_NAMES)
        path = random.choice(_ROUTES).replace(b"NAME", name)
        if random.random() < 0.1:
            path = random.choice(_PATHS)
        if random.random() < 0.05:
            path = b"/" + self._flip(path)[1:].translate(None, b"?# ")
        method = "GET"
        if random.random() < 0.25:
            method = random.choice(_METHODS)
        body = b""
        if b"candidates" in path and random.random() < 0.5:
            method = random.choice(("PUT", "PUT", "DELETE"))
            lines = _LINES if random.random() < 0.3 else _SOUND_LINES
            body = b"".join(random.choice(lines) + b"\n" for _ in range(random.choice((0, 1, 3, 30))))
        headers = self._authorization(self._token, 0.7)
        media_type = "text/plain" if random.random() < 0.6 else random.choice(_CANDIDATE_TYPES)
        headers += [("content-type", media_type)] * (random.random() < 0.9)
        headers += self._length(body) + self._noise()
        query = b"&".join(random.choice(_QUERIES) for _ in range(random.choice((0, 0, 1, 1, 2))))
        return Request(method, path, query, tuple(headers), self._parts(body), random.random() < 0.95)

    # Heads.

    def _length(self, body: bytes) -> list[tuple[str, str]]:
        random = self._random
        if random.random() < 0.94:
            return [("content-length", str(len(body)))]
        given = random.choice((*_LENGTHS, None, str(len(body) - 1), str(len(body) + 1), f"+{len(body)}"))
        return [] if given is None else [("content-length", given)] * random.choice((1, 1, 2))

    def _authorization(self, secret: str | None, right: float) -> list[tuple[str, str]]:
        if self._random.random() < right:
            return [] if secret is None else [("authorization", f"Bearer {secret}")]
        given = self._random.choice((*_AUTHORIZATIONS, f"Bearer {secret}x", f"Basic {secret}", f"Bearer{secret}"))
        return [("authorization", given)]

    def _noise(self) -> list[tuple[str, str]]:
        return [self._random.choice(_HEADERS)] if self._random.random() < 0.1 else []

    def _parts(self, body: bytes) -> tuple[bytes, ...]:
        """Cut a body, as a network would."""
        random = self._random
        cuts = sorted(random.randrange(len(body) + 1) for _ in range(random.choice((0, 0, 0, 0, 1, 2, 5))))
        return tuple(body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True))


def spell(batch: dict[str, Any], media_type: str) -> bytes | None:
    """Spell what may or may not be a batch; None if that cannot even be spelled."""
    try:
        if media_type == MSGPACK:
            return msgspec.msgpack.encode(batch)
        return json.dumps(batch, separators=(",", ":"), default=_to_base64).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, msgspec.MsgspecError):
        return None


def bomb(size: int) -> bytes:
    """A gzip member of zeros; some kilobytes for each million of them."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    zeros = bytes(1 << 20)
    million = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    times = size >> 20
    check = 0
    for _ in range(times):
        check = zlib.crc32(zeros, check)
    tail = packer.flush() + check.to_bytes(4, "little") + ((times << 20) & 0xFFFFFFFF).to_bytes(4, "little")
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + million * times + tail


def _to_base64(bits: object) -> str:
    assert isinstance(bits, bytes)
    return urlsafe_b64encode(bits).rstrip(b"=").decode()


_METHODS = (
    "GET",
    "HEAD",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "get",
    "PÖST",
    "POST" * 100,
    "P\0ST",
)
_MEDIA_TYPES = (
    "", " ", "application/json; charset=utf-8", "APPLICATION/JSON", "application/json;", " application/msgpack ",
    "application/msgpack; x=\x00", "application/x-msgpack", "text/plain", "application/json, application/json",
    "multipart/form-data; boundary=x", "é", "a" * 10_000, "*/*",
)  # fmt: skip
_ENCODINGS = (
    "gzip",
    "GZIP",
    " gzip ",
    "identity",
    "x-gzip",
    "gzip, gzip",
    "deflate",
    "br",
    "zstd",
    "é",
    "\x00",
    "a" * 999,
)
_LENGTHS = (
    "", "-1", "-0", "0", "00000000000000000000000000001", "9" * 5000, str(MAX_BATCH_BYTES + 1), str(1 << 40), "1e3",
    "0x10", "1_0", "١٢", "²", "1 2", "5, 5", "NaN", "\x00",
)  # fmt: skip
_AUTHORIZATIONS = ("", "Bearer", "Bearer ", "bearer é", "Bearer \x00", "Basic Og==", "Bearer " + "x" * 10_000, "\xff")
_HEADERS = (
    ("transfer-encoding", "chunked"), ("expect", "100-continue"), ("host", ""), ("host", "evil.example:99999999"),
    ("host", "[::1"), ("host", "a b"), ("cookie", "a=é; b=\x00"), ("accept", "*/*;q=x"),
    ("accept", "application/x-ndjson"), ("accept", "é" * 100), ("if-none-match", "*"), ("if-none-match", '"1'),
    ("if-modified-since", "yesterday"), ("range", "bytes=0-"),
    ("range", "bytes=9-1,é"), ("origin", "https://app.example"), ("origin", "null"),
    ("x-forwarded-for", "127.0.0.1"), ("x-http-method-override", "DELETE"), ("content-md5", "x"), ("te", "gzip"),
    ("user-agent", ""), ("x" * 300, "y"), ("connection", "upgrade"), ("upgrade", "h2c"),
)  # fmt: skip
_DAYS = (
    date.min.isoformat(), date.max.isoformat(), "0001-01-02", "9999-12-27", "0000-00-00", "2031-02-29", "2031-13-01",
    "2031-12-31T00:00:00", "2031-12-31\n", "+2031-12-31", "31-12-31", "20311231", "2032-W01-1", "\uff12031-12-31", "",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.0, 1.5, 1e300, 2**31 - 1, 2**31, 2**63 - 1, 2**64 - 1, -(2**63), "", "\x00", "é",
    "\ud800", "x" * 65, "x" * 10_000, [], {}, [[]], [None], {"a": {"b": [{}]}}, float("nan"), float("inf"), b"",
    b"\xff", b"\0" * 513, "0" * 32, "0" * 31, "G" * 32, "A" * 32, "homepage", "startup_ms",
)  # fmt: skip
_JSON_VALUES = (
    b"null", b"true", b"0", b"-0", b"-1", b"1.0", b"1e0", b"1e400", b"-1e400", b"1E-400", b"NaN", b"-Infinity",
    b"9" * 25, b"1" * 5000, b"0" * 100, b"01", b"+1", b".5", b"0x1", b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"',
    b'"\xed\xa0\x80"', b'"\xff"', b'"\\x"', b'"\x00"', b"[", b"[" * 3000, b'{"a":' * 3000, b"[]", b"{}", b"[{}]", b'"',
    b"'a'", b"/**/1", b"1,", b"", b'"AA=="', b'"AA\\n"', b'"_-"', b'"+/"', b'"A"', b'"AB"', b'"homep\\u0061ge"',
    b'"2031-12-31"', b'"9999-12-31"', b'"0001-01-01"', b'"2031-12-31Z"', b"1924905600",
)  # fmt: skip
_BYTES = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc0\x80", b"\n", b" " * 100, b"{", b"}", b"]", b'"', b"\\", b"[" * 1000, b",",
    b"\xdd\xff\xff\xff\xff", b"\xc1", b"\xc7\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
)  # fmt: skip
_BOMBS = (
    bomb(16 << 20),
    gzip.compress(b" " * MAX_BATCH_BYTES, mtime=0),
    gzip.compress(b" " * (MAX_BATCH_BYTES + 1), mtime=0),
    gzip.compress(b"[" * MAX_BATCH_BYTES, mtime=0),
    gzip.compress(b"\x91" * MAX_BATCH_BYTES, mtime=0),
    gzip.compress(gzip.compress(bytes(1 << 20), mtime=0), mtime=0),
)
_ROUTES = (
    b"/v1/registry", b"/v1/metrics", b"/v1/metrics/NAME/tally", b"/v1/metrics/NAME/tally",
    b"/v1/metrics/NAME/candidates", b"/v1/metrics/NAME/candidates", b"/livez", b"/readyz",
    b"/metrics", b"/openapi.json",
)  # fmt: skip
_NAMES = (
    b"",
    b"%00",
    b"%ff",
    b"%ed%a0%80",
    b"%2f",
    b"..",
    b"%2e%2e",
    b"HOMEPAGE",
    b"a" * 5000,
    b"%C3%A9",
    b"\xc3\xa9",
    b"'",
)
_PATHS = (
    b"/", b"//", b"*", b"//v1/batches", b"/v1//batches", b"/v1/batches/", b"/V1/batches", b"/v1/batches%00",
    b"/v1/metrics/", b"/%76%31/metrics", b"/v1/metrics/..%2f..%2fetc/tally", b"/../v1/metrics", b"/v1/metrics;x=1",
    b"/%", b"/%zz",
    b"/v1/metrics%0d%0aX:%20y", b"/\xff\xfe", b"/static/x", b"/favicon.ico", b"/v1/metrics//tally", b"///livez",
)  # fmt: skip
_QUERIES = (
    b"start=2031-12-20", b"end=2031-12-31", b"start=0001-01-01", b"end=9999-12-31", b"start=0000-00-00", b"start=",
    b"start=2031-12-20T00:00", b"end=%ff", b"end=\xc3\xa9", b"\xff=\xfe", b"%00=%00", b"x=1", b"=", b"&&&",
    b"start[]=1",
    b"start=2031-12-31%0a", b"a=1&" * 500, b"start=" + b"9" * 5000, b"%", b"%u1234", b"+", b"start=%ef%bc%92031-12-31",
)  # fmt: skip
_CANDIDATE_TYPES = (
    "text/plain", "application/x-ndjson", "text/plain; charset=utf-16", "TEXT/PLAIN", "application/json", "é",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=", "multipart/form-data",
)  # fmt: skip
_SOUND_LINES = (b"example.org", b"xn--", b'"a"', b"\xc3\xa9")
_LINES = (
    *_SOUND_LINES, b'"a\\nb"', b'"\\ud800"', b"\xff", b"", b"e\xcc\x81", b"\0", b"a\rb",
    b"x" * 5000, b'"' + b"\\u0041" * 4096 + b'"', b"[1]", b"null",
)  # fmt: skip
