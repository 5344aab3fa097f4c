"""Why bits are integers made by a table look-up: the ways to answer 128 bits, side by side."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from bitarray import bitarray

from benchmarks.ratios import fastest, show
from hubbub.shared.bernoulli import DIGITS, Draw, random_step

if TYPE_CHECKING:
    from collections.abc import Callable

    Way = Callable[[int, int], Callable[[], object]]

SIZE = 128
CLASSIC = (49152, 32768)
SOLVED = (48475, 17061)
_SYSTEM = random.SystemRandom()


def table_and_integers(when_set: int, when_clear: int, draw: Draw = os.urandom) -> Callable[[], object]:
    """hubbub's own step."""
    step, bits = random_step(when_set, when_clear), random.getrandbits(SIZE)
    return lambda: step(bits, SIZE, draw)


def table_and_bitarray(when_set: int, when_clear: int, draw: Draw = os.urandom) -> Callable[[], object]:
    """The same table, its answers packed by bitarray. High bytes only: faster than an exact one would be."""
    bits = bitarray(os.urandom(SIZE // 8), "little")
    tables = [bytes(byte < threshold >> 8 for byte in range(256)) for threshold in (when_set, when_clear)]

    def answer() -> bitarray:
        numbers = draw(SIZE)
        if_set, always = bitarray(endian="little"), bitarray(endian="little")
        if_set.pack(numbers.translate(tables[0]))
        always.pack(numbers.translate(tables[1]))
        if_set &= bits
        if_set |= always
        return if_set

    return answer


def folded_bitarrays(when_set: int, when_clear: int, draw: Draw = os.urandom) -> Callable[[], object]:
    """A random plane for each binary digit of the probabilities, folded with AND and OR."""
    bits = bitarray(os.urandom(SIZE // 8), "little")
    spare = ((when_set | when_clear) & -(when_set | when_clear)).bit_length() - 1
    digits = [(when_set >> place & 1, when_clear >> place & 1) for place in range(spare, DIGITS)]

    def answer() -> bitarray:
        planes = bitarray(draw(SIZE // 8 * len(digits)), "little")
        if_set, always, start = bitarray(SIZE, "little"), bitarray(SIZE, "little"), 0
        for digit_set, digit_clear in digits:
            plane = planes[start : start + SIZE]
            start += SIZE
            if_set = if_set | plane if digit_set else if_set & plane
            always = always | plane if digit_clear else always & plane
        return always | bits & if_set

    return answer


def bit_by_bit(when_set: int, when_clear: int) -> Callable[[], object]:
    """A loop over SystemRandom, as the reference client of RAPPOR has it."""
    bits = random.getrandbits(SIZE)

    def answer() -> int:
        result = 0
        for bit in range(SIZE):
            threshold = when_set if bits >> bit & 1 else when_clear
            if _SYSTEM.getrandbits(DIGITS) < threshold:
                result |= 1 << bit
        return result

    return answer


def main() -> None:
    """Print both tables."""
    for name, numbers in (("RAPPOR's p = 1/2, q = 3/4", CLASSIC), ("16 digits", SOLVED)):
        ways: dict[str, Way] = {
            "hubbub": table_and_integers,
            "byte table, bitarray (8 digits)": table_and_bitarray,
            "planes folded, bitarray": folded_bitarrays,
        }
        best = fastest({label: way(*numbers) for label, way in ways.items()})
        best |= fastest({"bit by bit, SystemRandom": bit_by_bit(*numbers)}, rounds=20, calls=50)
        show(f"128 random bits, {name}", "hubbub", best)
