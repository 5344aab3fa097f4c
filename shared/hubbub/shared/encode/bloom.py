"""Strings into a Bloom filter, one per cohort: the encoding of RAPPOR (Erlingsson, Pihur, Korolova 2014, section 2).

A string's 128-bit MurmurHash3 digest (x64 variant, seed 0) gives two 64-bit words, `start` and `stride`. The
positions of the string, over all cohorts and hashes, are the outputs of a SplitMix64 generator (Steele, Lea, Flood
2014) that begins at `start` and moves by `stride | 1`: a string is hashed once, each position is a little integer
arithmetic (the same lines run on Python integers and on numpy arrays of uint64), and two strings that collide in one
cohort do not collide in the next more often than any others. Plain double hashing, start + i * stride mod bits,
fails that: two strings that agree modulo `bits` collide everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import mmh3

from hubbub.shared.encode.encoding import Contrast, Encoding
from hubbub.shared.text import canonical_text

if TYPE_CHECKING:
    from hubbub.shared.response import Response

_WORD = (1 << 64) - 1

Word = TypeVar("Word")
"""An integer below 2^64, or a numpy array of them as uint64."""


def digest(value: object) -> tuple[int, int]:
    """Hash a string into its two words, `start` and `stride`."""
    start, stride = mmh3.mmh3_x64_128_utupledigest(canonical_text(value), 0)
    return start, stride | 1


def position(start: Word, stride: Word, index: Word, bits: int) -> Word:
    """Place a string's hash number `index` (cohort * hashes + hash) among `bits` bits."""
    mixed = start + index * stride & _WORD  # type: ignore[operator]
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
    # The high half scaled to the number of bits: no division, and no overflow of 64 bits on the way. SplitMix64 ends
    # with one more shift, which is for the low half.
    return (mixed >> 32) * bits >> 32  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Bloom(Encoding):
    """A Bloom filter of `bits` bits and `hashes` hash functions, different ones in each of `cohorts` cohorts."""

    bits: int
    hashes: int
    cohorts: int

    @property
    def size(self) -> int:
        """The whole filter."""
        return self.bits

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Two strings differ in at most `hashes` bits each way, fewer where the filter is too small for that.

        A filter of as many bits as hashes differs most from the null encoding.
        """
        most = self.hashes
        rest = min(most, self.bits - most)
        return ((most, rest), (rest, most)) if most != rest else ((most, most),)

    @property
    def natural_bound(self) -> None:
        """There is no end of strings."""
        return

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The size of the filter, and how many hash functions there are."""
        return self.bits, self.hashes, self.cohorts

    def variance(self, response: Response) -> float:
        """Of the share of a string that nothing collides with: the average of its `hashes` bits."""
        return response.variance / self.hashes

    def encode(self, value: object, cohort: int, offset: int) -> int:
        """Set the string's bits of this cohort."""
        start, stride = digest(value)
        encoded = 0
        for index in range(cohort * self.hashes, (cohort + 1) * self.hashes):
            encoded |= 1 << position(start, stride, index, self.bits)
        return encoded
