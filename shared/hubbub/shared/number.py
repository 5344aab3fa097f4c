"""Numbers that a metric can take: real, and not NaN or infinite."""

from __future__ import annotations

import math
import struct
from numbers import Real
from typing import cast

from hubbub.shared.errors import ValueRefusedError


def finite_number(value: object, low: float, high: float) -> float:
    """Bring a number into [low, high], or refuse what is no number, without repeating it."""
    number = _number(value)
    if number is None:
        raise ValueRefusedError(f"is of type {type(value).__name__}; allowed: a number")
    # Compared before it is converted: an integer may be too large for a float, and comparing is exact.
    if number != number or number in (-math.inf, math.inf):  # noqa: PLR0124  (only NaN differs from itself)
        raise ValueRefusedError("is NaN or infinite; allowed: a finite number")
    return low if number <= low else high if number >= high else float(number)


def outside(value: object, low: float, high: float) -> bool:
    """Whether `finite_number` has to bend the number to bring it into [low, high]."""
    number = _number(value)
    return number is not None and not low <= number <= high


def exact(number: float) -> str:
    """Format a number so that every platform gives the same text: its 64 bits, IEEE 754, as hexadecimal digits."""
    return struct.pack(">d", number + 0.0).hex()  # + 0.0 turns -0.0 into 0.0


def _number(value: object) -> float | None:
    """The value as it is if it is a real number of any library, but not a truth value."""
    if isinstance(value, bool) or not isinstance(value, (float, int, Real)):
        return None
    return cast("float", value)
