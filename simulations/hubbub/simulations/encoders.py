"""Step one for many devices at once: the encodings of `hubbub.shared.encode`, on arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.shared.encode import NULL, Bloom, Bucket, Rounding
from hubbub.shared.encode.bloom import digest, position
from hubbub.simulations.packed_bits import WORD, Words, words_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hubbub.shared.metric import Metric

Indices: TypeAlias = NDArray[np.int64]

Encoder: TypeAlias = Callable[[Indices, Indices, Indices], Words]
"""Encodes for each device: the number of its value, its cohort and its rounding offset become a row of words."""


def encoder_of(metric: Metric, values: Sequence[Any]) -> Encoder:
    """Return the function that encodes these values as the client does; None stands for no valid value."""
    encoding = metric.encoding
    if encoding.has_null and None in values:
        return _with_null(metric, values)
    if isinstance(encoding, Bloom):
        return _bloom(encoding, values)
    if isinstance(encoding, Rounding):
        places = np.array([encoding.place(value) for value in values], np.int64)
        return lambda held, _, offsets: (places[held] + offsets >= encoding.offsets).astype(np.uint64)[:, None]
    words = words_for(metric.size)
    if isinstance(encoding, Bucket):
        buckets, sent = bucket_numbers(encoding, values), encoding.sent

        def bucket(held: Indices, cohorts: Indices, _: Indices) -> Words:
            bits = (buckets[held] - cohorts * sent) % encoding.buckets
            return _set_bits(np.zeros((len(held), words), np.uint64), np.where(bits < sent, bits, -1))

        return bucket
    # One encoding for all cohorts, of one bit at most: that of the category, or of a flag that is true.
    numbers = np.array([metric.encode(value, 0, 0).bit_length() - 1 for value in values], np.int64)
    return lambda held, _, __: _set_bits(np.zeros((len(held), words), np.uint64), numbers[held])


def _with_null(metric: Metric, values: Sequence[Any]) -> Encoder:
    """Encode the valid values as usual, and None as the null encoding."""
    is_null = np.array([value is None for value in values])
    valid = [value for value in values if value is not None]
    encode, numbers = encoder_of(metric, valid), np.cumsum(~is_null) - 1

    def encode_or_null(held: Indices, cohorts: Indices, offsets: Indices) -> Words:
        encoded: Words = np.full((len(held), words_for(metric.size)), NULL, np.uint64)
        who = np.flatnonzero(~is_null[held])
        encoded[who] = encode(numbers[held[who]], cohorts[who], offsets[who])
        return encoded

    return encode_or_null


def bucket_numbers(encoding: Bucket, values: Sequence[Any]) -> Indices:
    """Tell the bucket of each number: the bit it would set if all buckets were observed."""
    whole = replace(encoding, sent=encoding.buckets, cohorts=1)
    return np.array([whole.encode(value, 0, 0).bit_length() - 1 for value in values], np.int64)


def _bloom(encoding: Bloom, values: Sequence[Any]) -> Encoder:
    starts, strides = np.array([digest(value) for value in values], np.uint64).reshape(-1, 2).T
    words = words_for(encoding.size)

    def encode(held: Indices, cohorts: Indices, _: Indices) -> Words:
        encoded = np.zeros((len(held), words), np.uint64)
        for number in range(encoding.hashes):
            index = (cohorts * encoding.hashes + number).astype(np.uint64)
            places = position(starts[held], strides[held], index, encoding.bits)
            _set_bits(encoded, places.astype(np.int64))
        return encoded

    return encode


def _set_bits(rows: Words, bits: Indices) -> Words:
    """Set one bit in each row, none where it is negative."""
    which = np.flatnonzero(bits >= 0)
    word, place = np.divmod(bits[which], WORD)
    rows[which, word] |= np.uint64(1) << place.astype(np.uint64)
    return rows
