"""Counting many runs at once: they lie side by side in layers, and each operation of numpy works on all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.collector.count.adders import add_up
from hubbub.collector.count.scratch import scratch

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    Digits = dict[int, list[NDArray[np.uint8]]]

FAN = 7
"""Parts that long runs are cut into: one less than a power of two, so that adders of three fit."""

FEW = 31
"""Runs of so many reports are cut into single ones; also, no sum of them is beyond a byte."""

UNPACKED = 32 << 10
"""Bits unpacked at a time: each takes a byte. Larger arrays would be given back to the system each time."""


class Stack(NamedTuple):
    """Layers of one shape, each with the same runs, cut into parts; a layer of level i counts 2^i times."""

    parts: NDArray[np.uint8]
    """By layer, part, run, and byte of the part."""
    levels: list[int]
    """Of each layer, the highest first."""
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

    @classmethod
    def of_whole_runs(cls, levels: list[int], runs: int, reports: int, width: int) -> tuple[Self, NDArray[np.uint8]]:
        """Make one whose runs lie in one piece, and give these as well: by layer, run, and byte of the run."""
        parts, size = _cut(reports)
        memory = scratch("stack 0", len(levels) * runs * parts * size * width)
        in_parts = memory.reshape(len(levels), runs, parts, size * width).transpose(0, 2, 1, 3)
        return cls(in_parts, levels, width), memory.reshape(len(levels), runs, -1)

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
        while stack.parts.shape[3] > self.width:
            levels, digits = stack.fold()
            runs, size = stack.parts.shape[2:]
            stack = Stack.new(levels, runs, size // self.width, self.width, 1 - stack.turn)
            stack.lay_all(slice(None), digits)
        return _count(stack.sums(), stack.levels)[:, :bits]

    def fold(self) -> tuple[list[int], list[NDArray[np.uint8]]]:
        """Add the parts of each run: layers, by run and byte of a part, and their levels. The parts are lost."""
        digits: Digits = {}
        for more, found in self.sums().items():
            for each in found:
                for level, layer in zip(self.levels, each, strict=True):
                    digits.setdefault(level + more, []).append(layer)
        add_up(digits)
        left = [(level, digit) for level in sorted(digits, reverse=True) for digit in digits[level]]
        return [level for level, _ in left], [digit for _, digit in left]

    def lay_all(self, runs: slice, digits: list[NDArray[np.uint8]]) -> None:
        """Lay what a fold gave into the layers."""
        for layer, digit in enumerate(digits):
            self.lay(layer, runs, digit)

    def sums(self) -> Digits:
        """Add the parts of each run, and leave the layers apart: by level, at most two of each. The parts are lost."""
        sums: Digits = {0: [self.parts[:, part] for part in range(self.parts.shape[1])]}
        add_up(sums)
        return sums


def _cut(reports: int) -> tuple[int, int]:
    """Into how many parts a run is cut, and how many reports each has."""
    return (reports, 1) if reports <= FEW else (FAN, -(-reports // FAN))


def _count(sums: Digits, levels: list[int]) -> NDArray[np.int64]:
    """Turn sums of single reports, by layer and run, into numbers, and add the layers, the highest level first."""
    layers, runs, width = sums[0][0].shape
    total = np.zeros((runs, width * 8), np.int64)
    step = max(UNPACKED // total.size, 1)
    reached = levels[0]
    for start in range(0, layers, step):
        some = slice(start, start + step)
        for level, numbers in zip(levels[some], _numbers(sums, some), strict=True):
            total <<= reached - level
            total += numbers
            reached = level
    total <<= reached
    return total


def _numbers(sums: Digits, some: slice) -> NDArray[np.uint8]:
    """Turn the binary digits of some layers into numbers: a byte for each bit."""
    layers, runs, width = sums[0][0][some].shape
    numbers = np.zeros((layers, runs, width * 8), np.uint8)
    for level in sorted(sums, reverse=True):
        numbers += numbers
        for digit in sums[level]:
            numbers += np.unpackbits(digit[some], axis=2, bitorder="little")
    return numbers
