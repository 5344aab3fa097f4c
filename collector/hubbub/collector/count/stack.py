"""Counting many runs at once: they lie side by side in layers, and each operation of numpy works on all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.count.adders import add_up
from hubbub.collector.count.scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from bitarray import bitarray
    from numpy.typing import NDArray

    Digits = dict[int, list[NDArray[np.uint8]]]

FAN = 7
"""Parts that long runs are cut into: one less than a power of two, so that adders of three fit."""

FEW = 12
"""Runs of so many reports are cut into single ones, which are unpacked and summed."""

SMALL_BYTES, MOST = 256 << 10, 255
"""So are longer ones, if all is so small that adders would cost more; and if no sum is beyond a byte."""

UNPACKED = 96 << 10
"""Bits unpacked at a time: each takes a byte. Larger arrays would be given back to the system each time."""


class Stack(NamedTuple):
    """Layers of one shape, each with the same runs, cut into parts; a layer of level i counts 2^i times."""

    parts: NDArray[np.uint8]
    """By layer, part, run, and byte of the part."""
    levels: list[int]
    """Of each layer."""
    width: int
    """Bytes of a report."""
    turn: int = 0
    """Which memory it is in: a stack that is made from it has to be in the other."""

    @classmethod
    def new(cls, levels: list[int], runs: int, reports: int, width: int, turn: int = 0) -> Self:
        """Make one with room for so many reports of each run, with whatever is in it."""
        parts, size = _cut(reports)
        shape = (len(levels), parts, runs, size * width)
        return cls(scratch(f"stack {turn}", int(np.prod(shape))).reshape(shape), levels, width, turn)

    def lay(self, layer: int, run: slice, reports: NDArray[np.uint8]) -> None:
        """Lay runs of one length, by run and byte, into a layer, and fill them up with zeros."""
        parts, size = self.parts[layer, :, run], self.parts.shape[3]
        whole, rest = divmod(reports.shape[1], size)
        parts[:whole] = reports[:, : whole * size].reshape(len(reports), whole, size).transpose(1, 0, 2)
        if rest:
            parts[whole, :, :rest] = reports[:, whole * size :]
            parts[whole, :, rest:] = 0
            whole += 1
        parts[whole:] = 0

    def count_ones(self, bits: int) -> NDArray[np.int64]:
        """Count the ones of each run and bit; what is in the layers is lost."""
        stack = self
        while not _is_small(stack):
            levels, digits = stack.fold()
            runs, size = stack.parts.shape[2:]
            stack = Stack.new(levels, runs, size // self.width, self.width, 1 - stack.turn)
            for layer, digit in enumerate(digits):
                stack.lay(layer, slice(None), digit)
        return _unpack(stack)[:, :bits]

    def fold(self) -> tuple[list[int], list[NDArray[np.uint8]]]:
        """Add the parts of each run: layers, by run and byte of a part, and their levels. The parts are lost."""
        sums: Digits = {0: [self.parts[:, part] for part in range(self.parts.shape[1])]}
        add_up(sums)  # of all layers at once, and only then the layers
        digits: Digits = {}
        for more, found in sums.items():
            for each in found:
                for level, layer in zip(self.levels, each, strict=True):
                    digits.setdefault(level + more, []).append(layer)
        add_up(digits)
        left = [(level, digit) for level, same in digits.items() for digit in same]
        return [level for level, _ in left], [digit for _, digit in left]


def count_digits(sums: Sequence[Sequence[bitarray]], height: int, width: int) -> NDArray[np.int64]:
    """Count the ones of each sum and bit; of a sum, its digits are given, slabs of so many reports."""
    size = height * width
    stack = Stack.new(list(range(max(map(len, sums)))), len(sums), height, width)
    beside = scratch("beside", len(sums) * size)
    memory, nothing = beside.data, bytes(size)
    for level in stack.levels:
        for number, digits in enumerate(sums):
            slab = memoryview(digits[level]) if level < len(digits) else nothing
            memory[number * size : (number + 1) * size] = slab
        stack.lay(level, slice(None), beside.reshape(len(sums), size))
    return stack.count_ones(width * 8)


def _cut(reports: int) -> tuple[int, int]:
    """Into how many parts a run is cut, and how many reports each has."""
    return (reports, 1) if reports <= FEW else (FAN, -(-reports // FAN))


def _is_small(stack: Stack) -> bool:
    """Whether adders would cost more than they save."""
    _, parts, _, size = stack.parts.shape
    reports = parts * size // stack.width
    return reports <= FEW or (reports <= MOST and stack.parts.nbytes <= SMALL_BYTES)


def _unpack(stack: Stack) -> NDArray[np.int64]:
    """Count with a byte for each bit, some layers at a time."""
    layers, _, runs, size = stack.parts.shape
    total = np.zeros((runs, stack.width * 8), np.int64)
    step = max(UNPACKED * layers // (stack.parts.nbytes * 8), 1)
    for start in range(0, layers, step):
        ones = np.unpackbits(stack.parts[start : start + step], axis=3, bitorder="little")
        each = np.add.reduce(ones, axis=1, dtype=np.uint8).reshape(-1, runs, size // stack.width, stack.width * 8)
        sums = np.add.reduce(each, axis=2, dtype=np.uint8)
        for level, numbers in zip(stack.levels[start : start + step], sums, strict=True):
            total += numbers.astype(np.int64) << level
    return total
