"""The vectors in shared/vectors: what the specification says, and what the implementation does."""

import json
import struct
from typing import Any

import pytest

from hubbub.shared.encode import Bit, Bloom, Bucket, Encoding, OneHot, Rounding
from hubbub.shared.encode.bloom import digest
from hubbub.shared.metric import Metric
from hubbub.shared.packing import pack, unpack
from hubbub.shared.permanent import permanent_response, rounding_offset
from hubbub.shared.response import Response
from hubbub.shared.secret import Secret
from shared import reference


def vectors(file: str) -> list[Any]:
    loaded = json.loads((reference.VECTORS / file).read_text())
    assert loaded
    return list(loaded)


@pytest.mark.parametrize("file", sorted(reference.FILES))
def test_files_are_what_the_specification_says(file: str) -> None:
    assert vectors(file) == reference.FILES[file]()


def test_bloom_vectors() -> None:
    for vector in vectors("bloom.json"):
        start, stride = (int(word, 16) for word in vector["digest"])
        assert digest(vector["value"]) == (start, stride | 1)
        encoded = Bloom(vector["bits"], vector["hashes"], 1024).encode(vector["value"], vector["cohort"], 0)
        assert encoded == sum(1 << place for place in set(vector["positions"]))


def test_fingerprint_vectors() -> None:
    for vector in vectors("fingerprint.json"):
        name, version, kind, every, parameters, response, values, combine, default = json.loads(vector["meaning"])
        metric = Metric(
            name, "", kind, every, encoding_of(kind, parameters), Response(*response), version, values, combine,
            number(default) if kind in ("mean", "histogram") and default is not None else default,
        )  # fmt: skip
        assert metric.fingerprint == metric.identity.hex() == vector["fingerprint"]


def number(exact: str) -> float:
    [value] = struct.unpack(">d", bytes.fromhex(exact))
    return float(value)


def encoding_of(kind: str, parameters: list[Any]) -> Encoding:
    match kind:
        case "string":
            return Bloom(*parameters)
        case "category":
            return OneHot(tuple(parameters))
        case "mean":
            low, high, offsets = parameters
            return Rounding(number(low), number(high), offsets)
        case "histogram":
            sent, cohorts, *edges = parameters
            return Bucket(tuple(map(number, edges)), sent, cohorts)
        case _:
            return Bit()


def bound_to(fingerprint: str, encoding: Encoding, response: Response) -> Metric:
    """A metric whose draws are those of a fingerprint."""
    metric = Metric("it", "", "string", "day", encoding, response)
    object.__setattr__(metric, "identity", bytes.fromhex(fingerprint))
    return metric


def test_secret_vectors() -> None:
    for vector in vectors("secret.json"):
        secret = Secret(bytes.fromhex(vector["secret"]))
        assert secret.number == vector["cohort_number"]
        for draw in vector["offsets"]:
            metric = bound_to(draw["fingerprint"], Rounding(0.0, 1.0), Response.rappor(0.5))
            assert rounding_offset(metric, secret) == draw["offset"]


def test_permanent_vectors() -> None:
    for vector in vectors("permanent.json"):
        size = vector["size"]
        encoding = Bloom(size, 1, 1024) if size > 1 else Bit()
        metric = bound_to(vector["fingerprint"], encoding, Response(vector["p1"], vector["q1"], 65536, 0))
        encoded = int.from_bytes(bytes.fromhex(vector["encoded"]), "little")
        answer = permanent_response(metric, Secret(bytes.fromhex(vector["secret"])), vector["cohort"], encoded)
        assert pack(answer, size) == bytes.fromhex(vector["permanent"])
        assert [int(bit) for bit in unpack(bytes.fromhex(vector["permanent"]), size)] == [
            answer >> bit & 1 for bit in range(size)
        ]
