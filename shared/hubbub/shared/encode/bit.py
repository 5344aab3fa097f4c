"""True or false as one bit: Warner's question (1965), Basic RAPPOR with a single bit."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.shared.encode.encoding import ONE_BIT, Contrast, Encoding
from hubbub.shared.errors import ValueRefusedError


@dataclass(frozen=True)
class Bit(Encoding):
    """The truth value itself."""

    has_null = False

    @property
    def size(self) -> int:
        """The one."""
        return 1

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """True and false differ in the one bit."""
        return ONE_BIT

    @property
    def natural_bound(self) -> int:
        """True or false."""
        return 2

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """None."""
        return ()

    def encode(self, value: object, cohort: int, offset: int) -> int:
        """Set the bit for True."""
        if not isinstance(value, bool):
            raise ValueRefusedError(f"is of type {type(value).__name__}; allowed: True or False")
        return int(value)
