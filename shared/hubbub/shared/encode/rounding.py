"""A number as one bit, by randomised rounding to the ends of its range: one-bit mean (Ding, Kulkarni, Yekhanin 2017).

The number is placed on a grid 0..M of its range, and the device's secret offset, uniform on 0..M-1, decides: the bit
is 1 if and only if place + offset >= M. Exactly `place` of the M offsets say so: the chance is place/M, which makes
the bit unbiased on the grid. Offsets from 1..M-1 with "<=", or integer offsets with real numbers, are found in print
and are biased; tests/shared/test_rounding.py keeps them out.

Ding et al. call the rounding alpha-point rounding: because the offset stays, a number that drifts changes its bit at
most once on its way through the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.shared.encode.encoding import ONE_BIT, Contrast, Encoding
from hubbub.shared.number import exact, finite_number, outside

if TYPE_CHECKING:
    from hubbub.shared.response import Response

GRID = 1 << 32
"""How many steps a range is divided into: rounding to it moves a number by less than 2e-10 of the range."""


@dataclass(frozen=True)
class Rounding(Encoding):
    """A number between `low` and `high`, rounded at random to one of them."""

    low: float
    high: float
    offsets: int = GRID

    has_null = False

    @property
    def size(self) -> int:
        """The one."""
        return 1

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The one bit is surely clear at `low` and surely set at `high`."""
        return ONE_BIT

    @property
    def natural_bound(self) -> int:
        """However a number moves, it is rounded down or up."""
        return 2

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The range, and the size of its grid."""
        return exact(self.low), exact(self.high), self.offsets

    def variance(self, response: Response) -> float:
        """Of the mean, at worst: of numbers in the middle of the range, whose bits are toss-ups before any noise."""
        return (self.high - self.low) ** 2 / 4 / (response.truth_is_sent - response.noise_is_sent) ** 2

    def place(self, value: object) -> int:
        """Put a number on the grid."""
        number = finite_number(value, self.low, self.high)
        return round((number - self.low) / (self.high - self.low) * self.offsets)

    def encode(self, value: object, cohort: int, offset: int) -> int:
        """Round up if and only if the place and the device's offset together reach the end of the grid."""
        return int(self.place(value) + offset >= self.offsets)

    def clamps(self, value: object) -> bool:
        """Whether the number is outside its range, and counts as the nearer end of it."""
        return outside(value, self.low, self.high)
