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

from collector import oddities
from hubbub.shared import Registry
from hubbub.shared.wire import JSON, MSGPACK

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
            encoding = random.choice(oddities.ENCODINGS)
        if random.random() < 0.06:
            media_type = random.choice(oddities.MEDIA_TYPES)
        headers = [("content-type", media_type)] * (random.random() < 0.99)
        headers += [("content-encoding", encoding)] * bool(encoding)
        headers += self._length(body)
        headers += self._authorization(self._key, 0.95)
        headers += self._noise()
        method = "POST" if random.random() < 0.98 else random.choice(oddities.METHODS)
        query = b"" if random.random() < 0.95 else random.choice(oddities.QUERIES)
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
            place["period"] = random.choice(oddities.DAYS)
        elif action < 0.5 and "version" in place:
            place["version"] += random.choice((-1, 1))
        elif action < 0.65 and "cohort" in place:
            place["cohort"] += random.choice((-1, 1, 8, 64, 1024))
            place["bits"] = random.choice((place["bits"] + b"\0", place["bits"][:-1], b"\xff" * len(place["bits"])))
        else:
            place[key] = random.choice(oddities.VALUES)
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
        return body[:place] + self._random.choice(oddities.BYTES) + body[place:]

    def _swap_text(self, body: bytes) -> bytes:
        """Put a JSON value where another one was."""
        values = [b'"metric":"', b'"cohort":', b'"version":', b'"period":', b'"bits":', b'"batch":', b'"reports":']
        key = self._random.choice(values)
        place = body.find(key, self._random.randrange(len(body) + 1))
        if place < 0:
            return body
        place += len(key)
        end = min([each for each in (body.find(b",", place), body.find(b"}", place)) if each > 0], default=place)
        return body[:place] + self._random.choice(oddities.JSON_VALUES) + body[end:]

    def _repeat_key(self, body: bytes) -> bytes:
        """Say a key twice: as it was, or with another value before or behind it."""
        pair = b'"' + self._random.choice((b"cohort", b"version", b"batch", b"metric", b"period", b"bits")) + b'":'
        place = body.find(pair)
        if place < 0:
            return body
        end = body.find(b",", place)
        again = body[place:end] if self._random.random() < 0.4 else pair + self._random.choice(oddities.JSON_VALUES)
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
            return random.choice(oddities.BOMBS)
        return random.choice((self._flip, self._truncate, self._insert))(packed)

    # Everything else.

    def _question(self) -> Request:
        random = self._random
        name = random.choice(self._metrics).name.encode() if random.random() < 0.8 else random.choice(oddities.NAMES)
        path = random.choice(oddities.ROUTES).replace(b"NAME", name)
        if random.random() < 0.1:
            path = random.choice(oddities.PATHS)
        if random.random() < 0.05:
            path = b"/" + self._flip(path)[1:].translate(None, b"?# ")
        method = "GET"
        if random.random() < 0.25:
            method = random.choice(oddities.METHODS)
        body = b""
        if b"candidates" in path and random.random() < 0.5:
            method = random.choice(("PUT", "PUT", "DELETE"))
            lines = oddities.LINES if random.random() < 0.3 else oddities.SOUND_LINES
            body = b"".join(random.choice(lines) + b"\n" for _ in range(random.choice((0, 1, 3, 30))))
        headers = self._authorization(self._token, 0.7)
        media_type = "text/plain" if random.random() < 0.6 else random.choice(oddities.CANDIDATE_TYPES)
        headers += [("content-type", media_type)] * (random.random() < 0.9)
        headers += self._length(body) + self._noise()
        query = b"&".join(random.choice(oddities.QUERIES) for _ in range(random.choice((0, 0, 1, 1, 2))))
        return Request(method, path, query, tuple(headers), self._parts(body), random.random() < 0.95)

    # Heads.

    def _length(self, body: bytes) -> list[tuple[str, str]]:
        random = self._random
        if random.random() < 0.94:
            return [("content-length", str(len(body)))]
        given = random.choice((*oddities.LENGTHS, None, str(len(body) - 1), str(len(body) + 1), f"+{len(body)}"))
        return [] if given is None else [("content-length", given)] * random.choice((1, 1, 2))

    def _authorization(self, secret: str | None, right: float) -> list[tuple[str, str]]:
        if self._random.random() < right:
            return [] if secret is None else [("authorization", f"Bearer {secret}")]
        given = self._random.choice(
            (*oddities.AUTHORIZATIONS, f"Bearer {secret}x", f"Basic {secret}", f"Bearer{secret}")
        )
        return [("authorization", given)]

    def _noise(self) -> list[tuple[str, str]]:
        return [self._random.choice(oddities.HEADERS)] if self._random.random() < 0.1 else []

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


def _to_base64(bits: object) -> str:
    assert isinstance(bits, bytes)
    return urlsafe_b64encode(bits).rstrip(b"=").decode()
