"""Rows of bits as rows of 64-bit words, and random responses to all of them at once.

A bit that is 1 with probability j/2^16 comes of 16 fair bits: going through the binary digits of j from the last to
the first, one joins what is kept with a fresh bit, by `or` where the digit is 1 and by `and` where it is 0. Each step
halves the probability so far and adds half the digit. On words that is 64 bits at a time, as exact as the client's own
draws (`hubbub.shared.bernoulli`), and zeros at the end of j take no draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.shared.bernoulli import DIGITS, ONE

if TYPE_CHECKING:
    from hubbub.shared.response import Response

WORD = 64

Words: TypeAlias = NDArray[np.uint64]
"""One row of words for each row of bits; bit i is bit i % 64 of word i // 64."""


def words_for(size: int) -> int:
    """How many words hold a row of `size` bits."""
    return -(-size // WORD)


def permanent_words(bits: Words, response: Response, rng: np.random.Generator) -> Words:
    """Draw the answers that are kept."""
    return respond_to_words(bits, response.p1, response.q1, rng)


def instantaneous_words(bits: Words, response: Response, rng: np.random.Generator) -> Words:
    """Draw the answers that are sent."""
    return respond_to_words(bits, response.p2, response.q2, rng)


def respond_to_words(bits: Words, when_set: int, when_clear: int, rng: np.random.Generator) -> Words:
    """Let set bits come out as 1 with probability `when_set`/2^16, clear ones with `when_clear`/2^16.

    Bits behind the last one of a row are answered like any other; `packed` leaves them out.
    """
    if when_set == ONE:
        # Certainty has no 16 digits. Only a set bit can be sure of itself.
        return bits | _drawn(bits, when_clear, when_clear, rng)
    if when_set + when_clear == ONE:
        return bits ^ _drawn(bits, when_clear, when_clear, rng)
    return _drawn(bits, when_set, when_clear, rng)


def _drawn(bits: Words, when_set: int, when_clear: int, rng: np.random.Generator) -> Words:
    kept = np.zeros_like(bits)
    both = when_set | when_clear
    first = (both & -both).bit_length() - 1 if both else DIGITS
    for digit in range(first, DIGITS):
        fresh = rng.integers(1 << WORD, size=bits.shape, dtype=np.uint64)
        set_digit, clear_digit = when_set >> digit & 1, when_clear >> digit & 1
        if set_digit == clear_digit:
            (np.bitwise_or if set_digit else np.bitwise_and)(kept, fresh, out=kept)
        else:
            # `or` for the bits whose digit is 1, `and` for the others: the majority of three.
            either = (kept | fresh) & (bits if set_digit else ~bits)
            kept &= fresh
            kept |= either
    return kept


def packed(words: Words, size: int) -> NDArray[np.uint8]:
    """Spell rows of words as the bytes of reports, padding bits zero."""
    rows = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)[:, : (size + 7) // 8]
    if size % 8:
        rows = rows.copy()
        rows[:, -1] &= (1 << size % 8) - 1
    return rows
