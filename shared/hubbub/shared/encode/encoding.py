"""What the five encodings have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hubbub.shared.response import Response

Contrast: TypeAlias = tuple[int, int]
"""How far apart two values can be: (a, b) if the one sets `a` bits that the other leaves clear, and the other `b`."""

ONE_BIT: tuple[Contrast, ...] = ((1, 0), (0, 1))
"""A single bit is set by the one value and not by the other."""

TWO_BITS: tuple[Contrast, ...] = ((1, 1),)
"""Each of the two values sets a bit of its own."""


NULL = 0
"""The null encoding: all bits clear. A device reports it where a value is invalid or may not be revealed."""


class Encoding(ABC):
    """A way to turn a value into a few bits; the values of a frozen dataclass say which."""

    hashes: int = 1
    """How many bits a value sets at most."""

    cohorts: int = 1
    """How many public groups of devices there are, each with an encoding of its own."""

    offsets: int = 1
    """How many private rounding offsets there are for a device to draw from; with 1 it needs none."""

    has_null: bool = True
    """Whether `NULL` means "no valid value" in a report, and not the lower of two values."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many bits a report has."""

    @property
    @abstractmethod
    def contrasts(self) -> tuple[Contrast, ...]:
        """The largest contrasts between two encodings, `NULL` included: all that an epsilon depends on."""

    @property
    @abstractmethod
    def natural_bound(self) -> int | None:
        """How many different encodings one device can have, `NULL` included, or None where there is no limit."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[int | str, ...]:
        """What tells this encoding from another of its kind, for the fingerprint of a metric."""

    @abstractmethod
    def encode(self, value: object, cohort: int, offset: int) -> int:
        """Turn a value into bits, bit i of the integer being bit i of the report.

        What cannot be encoded raises ValueRefusedError, with a message that does not repeat the value.
        """

    def variance(self, response: Response) -> float:
        """Variance of the estimate times the number of reports: of a share that is small, unless a kind says else."""
        return response.variance

    def clamps(self, value: object) -> bool:
        """Whether the value would be bent to fit: a number outside its range counts as the nearest one inside."""
        return False
