"""A number as its bucket, of which a device shows only a few: the encoding of dBitFlip (Ding, Kulkarni, Yekhanin 2017).

Each cohort observes `sent` neighbouring buckets, from cohort * sent on, modulo the number of buckets. A report holds
one bit for each of them; it is 1 for the bucket the number fell in, and a device whose bucket is not observed sends
all zeros.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.shared.encode.encoding import ONE_BIT, TWO_BITS, Contrast, Encoding
from hubbub.shared.number import exact, finite_number, outside

if TYPE_CHECKING:
    from hubbub.shared.response import Response


@dataclass(frozen=True)
class Bucket(Encoding):
    """The bucket of a number among those between `edges`, seen through the `sent` buckets of the cohort.

    A bucket holds its lower edge; the last one holds both its edges.
    """

    edges: tuple[float, ...]
    sent: int
    cohorts: int

    @property
    def size(self) -> int:
        """One for each observed bucket."""
        return self.sent

    @property
    def buckets(self) -> int:
        """How many there are in all."""
        return len(self.edges) - 1

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Two observed buckets differ in two bits; where a cohort observes only one, in that one."""
        return TWO_BITS if self.sent > 1 else ONE_BIT

    @property
    def natural_bound(self) -> int:
        """One encoding for each observed bucket, and the null encoding, which also stands for the other buckets."""
        return self.sent + 1

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """How many buckets a cohort observes, how many cohorts there are, and the edges."""
        return self.sent, self.cohorts, *map(exact, self.edges)

    def variance(self, response: Response) -> float:
        """Of the share of a bucket, which only sent/buckets of the reports speak of."""
        return response.variance * self.buckets / self.sent

    def observed(self, cohort: int) -> tuple[int, ...]:
        """List the buckets that a cohort observes, in the order of its bits."""
        return tuple((cohort * self.sent + bit) % self.buckets for bit in range(self.sent))

    def encode(self, value: object, cohort: int, offset: int) -> int:
        """Set the bit of the number's bucket, if this cohort observes it."""
        number = finite_number(value, self.edges[0], self.edges[-1])
        bucket = min(bisect_right(self.edges, number) - 1, self.buckets - 1)
        bit = (bucket - cohort * self.sent) % self.buckets
        return 1 << bit if bit < self.sent else 0

    def clamps(self, value: object) -> bool:
        """Whether the number is outside all buckets, and counts in the nearer of the outer two."""
        return outside(value, self.edges[0], self.edges[-1])
