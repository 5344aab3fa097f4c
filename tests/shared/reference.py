"""The specification of docs/design/encoding.md once more, as plainly as it can be written, and the vectors it gives.

Nothing here is shared with the implementation but mmh3 and hashlib. `python tests/shared/reference.py` writes the
JSON files in shared/vectors; a test compares them with what this file says and with what the implementation does.
"""

import hashlib
import json
import struct
import unicodedata
from pathlib import Path
from typing import Any

import mmh3

VECTORS = Path(__file__).parents[2] / "shared" / "vectors"
SECRETS = [bytes(range(32)), bytes(32), hashlib.sha256(b"a device").digest()]
STRINGS = ["a", "example.org", "café", "cafe\u0301", "日本語", "🦉", " ", "\0", "x" * 4096]


def words(value: str) -> tuple[int, int]:
    digest = mmh3.hash_bytes(unicodedata.normalize("NFC", value).encode("utf-8"), seed=0, x64arch=True)
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def bloom_positions(value: str, bits: int, hashes: int, cohort: int) -> list[int]:
    start, stride = words(value)
    positions = []
    for number in range(hashes):
        z = (start + (cohort * hashes + number) * (stride | 1)) % 2**64
        z = ((z ^ (z // 2**30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z // 2**27)) * 0x94D049BB133111EB) % 2**64
        positions.append((z // 2**32) * bits // 2**32)
    return positions


def stream(secret: bytes, message: bytes, length: int) -> bytes:
    return hashlib.shake_256(secret + message).digest(length)


def exact(number: float) -> str:
    return struct.pack(">d", number).hex()


def meaning(
    name: str,
    version: int,
    kind: str,
    every: str,
    parameters: list[Any],
    response: list[int],
    lifetime_values: int | None = None,
    combine: str | None = None,
    default: Any = None,
) -> str:
    fields = [name, version, kind, every, parameters, response, lifetime_values, combine, default]
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def fingerprint(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8")).digest()


def cohort_number(secret: bytes) -> int:
    return int.from_bytes(stream(secret, b"cohort\0", 2), "little")


def rounding_offset(secret: bytes, identity: bytes) -> int:
    return int.from_bytes(stream(secret, b"offset\0" + identity, 8), "little") % 2**32


def packed(bits: list[int]) -> bytes:
    data = bytearray((len(bits) + 7) // 8)
    for index, bit in enumerate(bits):
        data[index // 8] |= bit << index % 8
    return bytes(data)


def permanent_bits(secret: bytes, identity: bytes, cohort: int, p1: int, q1: int, encoded: list[int]) -> list[int]:
    message = b"permanent\0" + identity + cohort.to_bytes(2, "little") + packed(encoded)
    size = len(encoded)
    short = p1 % 256 == 0 and q1 % 256 == 0
    numbers = stream(secret, message, size if short else 2 * size)
    answer = []
    for index, bit in enumerate(encoded):
        place = size - 1 - index
        number = 256 * numbers[place] + (0 if short else numbers[size + place])
        if p1 + q1 == 2**16:
            answer.append(1 - bit if number < q1 else bit)
        else:
            answer.append(1 if number < (p1 if bit else q1) else 0)
    return answer


def bloom_vectors() -> list[dict[str, Any]]:
    vectors = []
    for value in STRINGS:
        start, stride = words(value)
        for bits, hashes, cohort in [(128, 1, 0), (128, 2, 17), (32, 4, 63), (4096, 2, 1023), (100, 3, 5)]:
            vectors.append(
                {
                    "value": value,
                    "digest": [f"{start:016x}", f"{stride:016x}"],
                    "bits": bits,
                    "hashes": hashes,
                    "cohort": cohort,
                    "positions": bloom_positions(value, bits, hashes, cohort),
                }
            )
    return vectors


MEANINGS = {
    "homepage": meaning("homepage", 1, "string", "day", [128, 1, 64], [32768, 1179, 53219, 12317], 8),
    "homepage 2": meaning("homepage", 2, "string", "day", [128, 1, 64], [32768, 1179, 53219, 12317], 8),
    "theme": meaning("theme", 1, "category", "week", ["light", "dark", 'naïve "日本"'], [32768, 7813, 49152, 16384], 4),
    "crashed": meaning("crashed", 1, "flag", "day", [], [57723, 7813, 49152, 16384], 2, None, False),
    "minutes": meaning(
        "minutes", 1, "mean", "day", [exact(0.0), exact(1440.0), 2**32], [49152, 16384, 58982, 6554],
        2, "sum", exact(0.1),
    ),
    "startup_ms": meaning(
        "startup_ms", 1, "histogram", "day", [2, 4, *map(exact, (-1.0, 0.0, 0.1, 1e300))], [32768, 1179, 53219, 12317],
        3, "last",
    ),
    "language": meaning("language", 3, "string", "once", [64, 2, 8], [49152, 16384, 65536, 0], 1, None, "eo"),
}  # fmt: skip
"""Declarations as docs/design/encoding.md spells them for the fingerprint."""


def fingerprint_vectors() -> list[dict[str, Any]]:
    return [{"meaning": text, "fingerprint": fingerprint(text).hex()} for text in MEANINGS.values()]


def secret_vectors() -> list[dict[str, Any]]:
    return [
        {
            "secret": secret.hex(),
            "cohort_number": cohort_number(secret),
            "offsets": [
                {"fingerprint": fingerprint(text).hex(), "offset": rounding_offset(secret, fingerprint(text))}
                for text in (MEANINGS["minutes"], MEANINGS["minutes"].replace('"sum"', '"max"'))
            ],
        }
        for secret in SECRETS
    ]


def permanent_vectors() -> list[dict[str, Any]]:
    vectors = []
    for secret in SECRETS:
        for p1, q1 in [(49152, 16384), (32768, 1179), (57723, 7813), (65535, 1), (40000, 39999)]:
            for name, cohort, encoded in [
                ("homepage", 17, [int(index in {5, 77}) for index in range(128)]),
                ("homepage", 17, [0] * 128),
                ("homepage 2", 17, [int(index in {5, 77}) for index in range(128)]),
                ("theme", 0, [0, 1, 0]),
                ("crashed", 0, [1]),
                ("startup_ms", 1000, [0, 0, 0, 0, 0, 0, 0, 0, 1]),
            ]:
                identity = fingerprint(MEANINGS[name])
                answer = permanent_bits(secret, identity, cohort, p1, q1, encoded)
                vectors.append(
                    {
                        "secret": secret.hex(),
                        "fingerprint": identity.hex(),
                        "cohort": cohort,
                        "p1": p1,
                        "q1": q1,
                        "size": len(encoded),
                        "encoded": packed(encoded).hex(),
                        "permanent": packed(answer).hex(),
                    }
                )
    return vectors


FILES = {
    "bloom.json": bloom_vectors,
    "fingerprint.json": fingerprint_vectors,
    "secret.json": secret_vectors,
    "permanent.json": permanent_vectors,
}

if __name__ == "__main__":
    for file, make in FILES.items():
        (VECTORS / file).write_text(json.dumps(make(), indent=1, ensure_ascii=True) + "\n")
