"""The five kinds of metric, as a registry declares them: which keys each has, and the encoding they mean."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, cast

from hubbub.shared.declaration import is_finite
from hubbub.shared.encode import Bit, Bloom, Bucket, Encoding, OneHot, Rounding
from hubbub.shared.errors import ValueRefusedError
from hubbub.shared.text import canonical_text
from hubbub.shared.wire import MAX_BITS, MAX_COHORTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hubbub.shared.declaration import Declaration
    from hubbub.shared.metric import Kind


EVEN_ENOUGH = 16
"""How many cohorts observe each bucket at least, unless told: no bucket then gets 1/16 fewer reports than another."""


def default_cohorts(buckets: int, sent: int) -> int:
    """Choose the fewest cohorts that observe all buckets equally often, or nearly so where no power of two can."""
    cohorts = 1
    while cohorts < MAX_COHORTS and cohorts * sent % buckets and cohorts * sent < EVEN_ENOUGH * buckets:
        cohorts *= 2
    return cohorts


def _string(declared: Declaration) -> Encoding | None:
    bits = declared.integer("bits", 1, MAX_BITS)
    hashes = declared.integer("hashes", 1, MAX_BITS)
    cohorts = declared.power_of_two("cohorts", MAX_COHORTS)
    if declared.sound("bits", "hashes") and hashes > bits:
        declared.fault("hashes", f"is {hashes}, more than the {bits} bits", f"an integer from 1 to {bits}")
    return Bloom(bits, hashes, cohorts) if declared.sound("bits", "hashes", "cohorts") else None


def _category(declared: Declaration) -> Encoding | None:
    names = declared.items("categories", "strings, none empty or very long", _is_text, 2, MAX_BITS)
    categories = tuple(canonical_text(name).decode() for name in names)
    if len(set(categories)) < len(categories):
        declared.fault("categories", "holds the same category twice", "different strings (compared as Unicode NFC)")
    return OneHot(categories) if declared.sound("categories") else None


def _flag(declared: Declaration) -> Encoding:  # noqa: ARG001
    return Bit()


def _mean(declared: Declaration) -> Encoding | None:
    low, high = declared.number("low"), declared.number("high")
    if declared.sound("low", "high") and not (low < high and is_finite(high - low)):
        declared.fault("high", f"is {high} where low is {low}", "a number above low, the range not beyond floats")
    return Rounding(low, high) if declared.sound("low", "high") else None


def _histogram(declared: Declaration) -> Encoding | None:
    numbers = cast("tuple[float, ...]", declared.items("edges", "finite numbers", is_finite, 3, MAX_BITS + 1))
    edges = tuple(float(edge) for edge in numbers)
    if any(low >= high for low, high in pairwise(edges)):
        declared.fault("edges", "is not sorted, or holds the same edge twice", "finite numbers, each above the last")
    buckets = len(edges) - 1
    sent = declared.integer("sent", 1, MAX_BITS)
    if declared.sound("edges", "sent") and sent > buckets:
        declared.fault("sent", f"is {sent}, more than the {buckets} buckets", f"an integer from 1 to {buckets}")
    sound = declared.sound("edges", "sent")
    cohorts = declared.power_of_two("cohorts", MAX_COHORTS, default_cohorts(buckets, sent) if sound else 1)
    if sound and declared.sound("cohorts") and cohorts * sent < buckets:
        declared.fault(
            "cohorts" if "cohorts" in declared else "sent",
            f"leaves buckets that nobody observes: {cohorts} cohorts of {sent} for {buckets} buckets",
            "powers of two up to 1024 for cohorts, with cohorts times sent at least the number of buckets",
        )
    return Bucket(edges, sent, cohorts) if declared.sound("edges", "sent", "cohorts") else None


ENCODING_OF: dict[Kind, Callable[[Declaration], Encoding | None]] = {
    "string": _string,
    "category": _category,
    "flag": _flag,
    "mean": _mean,
    "histogram": _histogram,
}
"""How to read the encoding of each kind; None means that problems have been noted."""


def _is_text(value: object) -> bool:
    try:
        return bool(canonical_text(value))
    except ValueRefusedError:
        return False
