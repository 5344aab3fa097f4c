"""The design: which bits each candidate sets, in each cohort, as a sparse matrix of a column for each candidate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mmh3
import numpy as np
from scipy import sparse

from hubbub.shared.encode.bloom import Bloom, position
from hubbub.shared.text import canonical_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hubbub.collector.decode.noise import Numbers

CHUNK = 65536
"""Candidates that are hashed at once: what is in hand stays in the processor's cache."""


@dataclass(frozen=True)
class Design:
    """One row for each cohort and bit, one column for each candidate; candidates with the same bits share a column."""

    matrix: sparse.csc_array
    cohorts: int
    bits: int
    hashes: int
    column: NDArray[np.int64]
    """The column of each candidate that was asked about."""
    first: NDArray[np.int64]
    """The first candidate of each column."""

    @property
    def equations(self) -> int:
        """How many bits there are in all cohorts together."""
        return self.cohorts * self.bits

    @property
    def columns(self) -> int:
        """How many candidates can be told apart."""
        return len(self.first)

    @property
    def spread(self) -> float:
        """The chance that a string nobody has asked about sets a given bit."""
        return 1 - (1 - 1 / self.bits) ** self.hashes

    @property
    def set_bits_variance(self) -> float:
        """Variance of the number of bits that a string sets: its hashes can hit the same bit."""
        one, two = ((1 - number / self.bits) ** self.hashes for number in (1, 2))
        mean = self.bits * (1 - one)
        variance = self.bits * (self.bits - 1) * (1 - 2 * one + two) + mean - mean**2
        return max(variance, 0.0) if min(self.hashes, self.bits) > 1 else 0.0

    @property
    def same_bits(self) -> float:
        """The chance that two strings set the same bits in a cohort, if all of their bits are different ones."""
        return 1 / math.comb(self.bits, min(self.hashes, self.bits))

    def scores(self, weights: Numbers) -> Numbers:
        """Add up what each candidate's bits weigh, less what an unknown string's would on average."""
        total: Numbers = self.matrix.T @ weights - self.spread * weights.sum()
        return total

    def rows_of(self, cohorts: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell which rows belong to some of the cohorts."""
        return np.repeat(cohorts, self.bits)


def bloom_design(encoding: Bloom, candidates: Sequence[str]) -> Design:
    """Hash candidates as the client does."""
    words = np.array(
        [mmh3.mmh3_x64_128_utupledigest(canonical_text(candidate), 0) for candidate in candidates], dtype=np.uint64
    ).reshape(-1, 2)
    indices = np.arange(encoding.cohorts * encoding.hashes, dtype=np.uint64)
    offsets = (indices // np.uint64(encoding.hashes) * np.uint64(encoding.bits)).astype(np.int32)
    rows = np.empty((len(words), len(indices)), np.int32)
    for start in range(0, len(words), CHUNK):
        some = words[start : start + CHUNK]
        places = position(some[:, :1], some[:, 1:] | np.uint64(1), indices, encoding.bits)
        rows[start : start + CHUNK] = places.astype(np.int32) + offsets
    return design(rows, encoding.cohorts, encoding.bits, encoding.hashes)


def design(rows: NDArray[np.int32], cohorts: int, bits: int, hashes: int) -> Design:
    """Make the matrix from the rows that each candidate sets, cohort * bits + bit, repeated ones allowed."""
    rows = np.sort(rows, axis=1)
    first, column = _distinct(rows)
    rows = rows[first]
    # A bit that two hashes agree on is set once.
    ones = np.ones(rows.shape, np.float64)
    ones[:, 1:] = rows[:, 1:] != rows[:, :-1]
    pointers = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    if pointers[-1] < np.iinfo(np.int32).max:
        pointers = pointers.astype(np.int32)
    matrix = sparse.csc_array((ones.ravel(), rows.ravel(), pointers), shape=(cohorts * bits, len(rows)))
    return Design(matrix, cohorts, bits, hashes, column, first)


def _distinct(rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the first of each group of equal rows, and the group of each row.

    By 64 bits of each: a million candidates have a chance of 3 in 10^8 that two different ones are taken for equal.
    """
    keys = np.zeros(len(rows), np.uint64)
    for start in range(0, len(rows), CHUNK):
        some = rows[start : start + CHUNK]
        mixed = np.zeros(len(some), np.uint64)
        previous = np.full(len(some), -1, np.int32)
        for value in some.T:
            # As a set: what is repeated counts once. The multiplier is that of Knuth's generator MMIX.
            word = (mixed ^ value.astype(np.uint64)) * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            mixed = np.where(value == previous, mixed, word ^ word >> np.uint64(29))
            previous = value
        keys[start : start + CHUNK] = mixed
    _, first, column = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[column]
