"""Oddities that hostile requests are made of: whatever may stand where a sound value should, and bodies that swell."""

import gzip
import zlib
from datetime import date
from typing import Any

from hubbub.shared.wire import MAX_BATCH_BYTES


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


METHODS = (
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
MEDIA_TYPES = (
    "", " ", "application/json; charset=utf-8", "APPLICATION/JSON", "application/json;", " application/msgpack ",
    "application/msgpack; x=\x00", "application/x-msgpack", "text/plain", "application/json, application/json",
    "multipart/form-data; boundary=x", "é", "a" * 10_000, "*/*",
)  # fmt: skip
ENCODINGS = (
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
LENGTHS = (
    "", "-1", "-0", "0", "00000000000000000000000000001", "9" * 5000, str(MAX_BATCH_BYTES + 1), str(1 << 40), "1e3",
    "0x10", "1_0", "١٢", "²", "1 2", "5, 5", "NaN", "\x00",
)  # fmt: skip
AUTHORIZATIONS = ("", "Bearer", "Bearer ", "bearer é", "Bearer \x00", "Basic Og==", "Bearer " + "x" * 10_000, "\xff")
HEADERS = (
    ("transfer-encoding", "chunked"), ("expect", "100-continue"), ("host", ""), ("host", "evil.example:99999999"),
    ("host", "[::1"), ("host", "a b"), ("cookie", "a=é; b=\x00"), ("accept", "*/*;q=x"),
    ("accept", "application/x-ndjson"), ("accept", "é" * 100), ("if-none-match", "*"), ("if-none-match", '"1'),
    ("if-modified-since", "yesterday"), ("range", "bytes=0-"),
    ("range", "bytes=9-1,é"), ("origin", "https://app.example"), ("origin", "null"),
    ("x-forwarded-for", "127.0.0.1"), ("x-http-method-override", "DELETE"), ("content-md5", "x"), ("te", "gzip"),
    ("user-agent", ""), ("x" * 300, "y"), ("connection", "upgrade"), ("upgrade", "h2c"),
)  # fmt: skip
DAYS = (
    date.min.isoformat(), date.max.isoformat(), "0001-01-02", "9999-12-27", "0000-00-00", "2031-02-29", "2031-13-01",
    "2031-12-31T00:00:00", "2031-12-31\n", "+2031-12-31", "31-12-31", "20311231", "2032-W01-1", "\uff12031-12-31", "",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.0, 1.5, 1e300, 2**31 - 1, 2**31, 2**63 - 1, 2**64 - 1, -(2**63), "", "\x00", "é",
    "\ud800", "x" * 65, "x" * 10_000, [], {}, [[]], [None], {"a": {"b": [{}]}}, float("nan"), float("inf"), b"",
    b"\xff", b"\0" * 513, "0" * 32, "0" * 31, "G" * 32, "A" * 32, "homepage", "startup_ms",
)  # fmt: skip
JSON_VALUES = (
    b"null", b"true", b"0", b"-0", b"-1", b"1.0", b"1e0", b"1e400", b"-1e400", b"1E-400", b"NaN", b"-Infinity",
    b"9" * 25, b"1" * 5000, b"0" * 100, b"01", b"+1", b".5", b"0x1", b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"',
    b'"\xed\xa0\x80"', b'"\xff"', b'"\\x"', b'"\x00"', b"[", b"[" * 3000, b'{"a":' * 3000, b"[]", b"{}", b"[{}]", b'"',
    b"'a'", b"/**/1", b"1,", b"", b'"AA=="', b'"AA\\n"', b'"_-"', b'"+/"', b'"A"', b'"AB"', b'"homep\\u0061ge"',
    b'"2031-12-31"', b'"9999-12-31"', b'"0001-01-01"', b'"2031-12-31Z"', b"1924905600",
)  # fmt: skip
BYTES = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc0\x80", b"\n", b" " * 100, b"{", b"}", b"]", b'"', b"\\", b"[" * 1000, b",",
    b"\xdd\xff\xff\xff\xff", b"\xc1", b"\xc7\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
)  # fmt: skip
BOMBS = (
    bomb(16 << 20),
    gzip.compress(b" " * MAX_BATCH_BYTES, mtime=0),
    gzip.compress(b" " * (MAX_BATCH_BYTES + 1), mtime=0),
    gzip.compress(b"[" * MAX_BATCH_BYTES, mtime=0),
    gzip.compress(b"\x91" * MAX_BATCH_BYTES, mtime=0),
    gzip.compress(gzip.compress(bytes(1 << 20), mtime=0), mtime=0),
)
ROUTES = (
    b"/v1/registry", b"/v1/metrics", b"/v1/metrics/NAME/tally", b"/v1/metrics/NAME/tally",
    b"/v1/metrics/NAME/candidates", b"/v1/metrics/NAME/candidates", b"/livez", b"/readyz",
    b"/metrics", b"/openapi.json",
)  # fmt: skip
NAMES = (
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
PATHS = (
    b"/", b"//", b"*", b"//v1/batches", b"/v1//batches", b"/v1/batches/", b"/V1/batches", b"/v1/batches%00",
    b"/v1/metrics/", b"/%76%31/metrics", b"/v1/metrics/..%2f..%2fetc/tally", b"/../v1/metrics", b"/v1/metrics;x=1",
    b"/%", b"/%zz",
    b"/v1/metrics%0d%0aX:%20y", b"/\xff\xfe", b"/static/x", b"/favicon.ico", b"/v1/metrics//tally", b"///livez",
)  # fmt: skip
QUERIES = (
    b"start=2031-12-20", b"end=2031-12-31", b"start=0001-01-01", b"end=9999-12-31", b"start=0000-00-00", b"start=",
    b"start=2031-12-20T00:00", b"end=%ff", b"end=\xc3\xa9", b"\xff=\xfe", b"%00=%00", b"x=1", b"=", b"&&&",
    b"start[]=1",
    b"start=2031-12-31%0a", b"a=1&" * 500, b"start=" + b"9" * 5000, b"%", b"%u1234", b"+", b"start=%ef%bc%92031-12-31",
)  # fmt: skip
CANDIDATE_TYPES = (
    "text/plain", "application/x-ndjson", "text/plain; charset=utf-16", "TEXT/PLAIN", "application/json", "é",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=", "multipart/form-data",
)  # fmt: skip
SOUND_LINES = (b"example.org", b"xn--", b'"a"', b"\xc3\xa9")
LINES = (
    *SOUND_LINES, b'"a\\nb"', b'"\\ud800"', b"\xff", b"", b"e\xcc\x81", b"\0", b"a\rb",
    b"x" * 5000, b'"' + b"\\u0041" * 4096 + b'"', b"[1]", b"null",
)  # fmt: skip
