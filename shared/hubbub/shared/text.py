"""Strings in the one spelling that is hashed: Unicode NFC, then UTF-8."""

from __future__ import annotations

from unicodedata import normalize

from hubbub.shared.errors import ValueRefusedError

MAX_TEXT_BYTES = 4096
"""The longest string that is encoded, in bytes of UTF-8."""


def canonical_text(value: object) -> bytes:
    """Spell a string as bytes that are the same on every platform, or refuse it without repeating it."""
    if not isinstance(value, str):
        raise ValueRefusedError(f"is of type {type(value).__name__}; allowed: a string")
    # Looked at before normalising, which takes time and seldom makes a string shorter.
    if not 0 < len(value) <= MAX_TEXT_BYTES:
        raise ValueRefusedError(f"is empty or too long; allowed: 1 to {MAX_TEXT_BYTES} bytes of UTF-8")
    try:
        data = normalize("NFC", value).encode()
    except UnicodeEncodeError:
        # Nothing is raised in here: this error carries the value, and would travel along as the new one's context.
        data = b""
    if not data:
        raise ValueRefusedError("holds a lone surrogate; allowed: text that UTF-8 can spell")
    if len(data) > MAX_TEXT_BYTES:
        raise ValueRefusedError(f"is too long; allowed: 1 to {MAX_TEXT_BYTES} bytes of UTF-8")
    return data
