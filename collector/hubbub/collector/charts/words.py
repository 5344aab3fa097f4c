"""Strings and numbers as they stand in a picture. Labels may be anybody's strings."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from datetime import date, timedelta

MOST_LETTERS = 60
"""A label longer than this is cut: one string should not push the picture off the page."""

LETTER = 0.53
"""The width of an ordinary letter, as a share of its size."""

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_REPLACEMENT = "\ufffd"
_BREAKS = re.compile(r"[^\S\xa0\u202f]+")


def plain(text: str) -> str:
    """Replace what XML cannot hold, and line breaks by spaces; spaces that keep words together stay."""
    spaced = " ".join(filter(None, _BREAKS.split(text)))
    return "".join(_REPLACEMENT if _unprintable(letter) else letter for letter in spaced)


def _unprintable(letter: str) -> bool:
    return unicodedata.category(letter) in {"Cc", "Cs"} or letter in "\ufffe\uffff"


def label(text: str, most: int = MOST_LETTERS) -> str:
    """Clean a label and cut it where it is too long."""
    clean = plain(text)
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def wrapped(text: str, inches: float, size: float) -> str:
    """Break a text into lines of about so many inches, for letters of ordinary width."""
    letters = max(12, int(inches * 72 / (size * LETTER)))
    return "\n".join(textwrap.wrap(plain(text), letters))


def number(value: float) -> str:
    """Write a number as a person would: 0.25, 20,000, 3·10⁻⁷."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    if -4 <= exponent < 7:
        return f"{value:,.{max(0, 5 - exponent)}f}".rstrip("0").rstrip(".") if exponent < 5 else f"{value:,.0f}"
    factor = f"{value / 10.0**exponent:.4g}"
    return power(exponent) if factor == "1" else f"{factor}·{power(exponent)}"


def power(exponent: int) -> str:
    """Write a power of ten."""
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def day(number: float) -> str:
    """Write a number of days since 1970-01-01 as a date, or as nothing where the calendar ends."""
    try:
        return str(date(1970, 1, 1) + timedelta(days=round(number)))
    except OverflowError:
        return ""


def percent(value: float) -> str:
    """Write a share in per cent."""
    return f"{number(round(100 * value, 12))} %"
