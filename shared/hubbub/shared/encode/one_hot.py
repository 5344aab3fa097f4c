"""One bit for each of a declared list of categories: the encoding of Basic RAPPOR (Erlingsson et al. 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hubbub.shared.encode.encoding import TWO_BITS, Contrast, Encoding
from hubbub.shared.errors import ValueRefusedError
from hubbub.shared.text import canonical_text

SHOWN = 10
"""How many categories an error lists."""


@dataclass(frozen=True)
class OneHot(Encoding):
    """A declared category sets its own bit."""

    categories: tuple[str, ...]

    @property
    def size(self) -> int:
        """One for each category."""
        return len(self.categories)

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Two categories differ in the bit of the one and the bit of the other."""
        return TWO_BITS

    @property
    def natural_bound(self) -> int:
        """One encoding for each category, and the null encoding."""
        return len(self.categories) + 1

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The categories, in order."""
        return self.categories

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {canonical_text(category): number for number, category in enumerate(self.categories)}

    def encode(self, value: object, cohort: int, offset: int) -> int:
        """Set the bit of the category."""
        number = self._numbers.get(canonical_text(value))
        if number is None:
            some = ", ".join(self.categories[:SHOWN])
            rest = len(self.categories) - SHOWN
            more = f" and {rest} more" if rest > 0 else ""
            raise ValueRefusedError(f"is not one of the declared categories; allowed: {some}{more}")
        return 1 << number
