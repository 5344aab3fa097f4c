"""The specification of docs/design/encoding.md once more, as plainly as it can be written, and the vectors it gives.

Nothing here is shared with the implementation but mmh3 and hashlib. `python tests/shared/reference.py` writes the
JSON files in shared/vectors; a test compares them with what this file says and with what the implementation does.
"""

import hashlib
import json
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


def identity(name: str, version: int) -> bytes:
    return name.encode("ascii") + b"\0" + version.to_bytes(4, "little")


def cohort_number(secret: bytes) -> int:
    return int.from_bytes(stream(secret, b"cohort\0", 2), "little")


def rounding_offset(secret: bytes, name: str, version: int) -> int:
    return int.from_bytes(stream(secret, b"offset\0" + identity(name, version), 8), "little") % 2**32


def packed(bits: list[int]) -> bytes:
    data = bytearray((len(bits) + 7) // 8)
    for index, bit in enumerate(bits):
        data[index // 8] |= bit << index % 8
    return bytes(data)


def permanent_bits(
    secret: bytes, name: str, version: int, cohort: int, p1: int, q1: int, encoded: list[int]
) -> list[int]:
    message = b"permanent\0" + identity(name, version) + cohort.to_bytes(2, "little") + packed(encoded)
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


def secret_vectors() -> list[dict[str, Any]]:
    return [
        {
            "secret": secret.hex(),
            "cohort_number": cohort_number(secret),
            "offsets": [
                {"metric": name, "version": version, "offset": rounding_offset(secret, name, version)}
                for name, version in [("minutes_used", 1), ("minutes_used", 2), ("other", 1)]
            ],
        }
        for secret in SECRETS
    ]


def permanent_vectors() -> list[dict[str, Any]]:
    vectors = []
    for secret in SECRETS:
        for p1, q1 in [(49152, 16384), (32768, 1179), (57723, 7813), (65535, 1), (40000, 39999)]:
            for name, version, cohort, encoded in [
                ("homepage", 1, 17, [int(index in {5, 77}) for index in range(128)]),
                ("homepage", 2, 17, [int(index in {5, 77}) for index in range(128)]),
                ("theme", 1, 0, [0, 1, 0]),
                ("crashed", 1, 0, [1]),
                ("startup_ms", 1, 1000, [0, 0, 0, 0, 0, 0, 0, 0, 1]),
            ]:
                answer = permanent_bits(secret, name, version, cohort, p1, q1, encoded)
                vectors.append(
                    {
                        "secret": secret.hex(),
                        "metric": name,
                        "version": version,
                        "cohort": cohort,
                        "p1": p1,
                        "q1": q1,
                        "size": len(encoded),
                        "encoded": packed(encoded).hex(),
                        "permanent": packed(answer).hex(),
                    }
                )
    return vectors


FILES = {"bloom.json": bloom_vectors, "secret.json": secret_vectors, "permanent.json": permanent_vectors}

if __name__ == "__main__":
    for file, make in FILES.items():
        (VECTORS / file).write_text(json.dumps(make(), indent=1, ensure_ascii=True) + "\n")
