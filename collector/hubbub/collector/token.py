"""Tokens: compared in constant time, whatever their lengths."""

from __future__ import annotations

import hmac
from hashlib import sha256
from hmac import compare_digest

_SCHEME = "bearer "


class Token:
    """A secret that requests show as `Authorization: Bearer SECRET`; only its digest is kept."""

    def __init__(self, secret: str) -> None:
        self._digest = sha256(secret.encode()).digest()

    def key(self, purpose: bytes) -> bytes:
        """Derive a key for some purpose: the same on every replica that has this token, and gone with it."""
        return hmac.digest(self._digest, purpose, "sha256")

    def opens(self, authorization: str | None) -> bool:
        """Tell whether a header shows it. Digests are compared, so that not even the length can be timed."""
        header = authorization or ""
        shown = header[len(_SCHEME) :].strip()
        same = compare_digest(sha256(shown.encode("utf-8", "surrogateescape")).digest(), self._digest)
        return same and header[: len(_SCHEME)].lower() == _SCHEME
