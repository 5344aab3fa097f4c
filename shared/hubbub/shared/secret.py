"""The device's secret, and everything that is drawn from it for ever.

Each draw is SHAKE256 (FIPS 202) of the 32 secret bytes, then a message that says what the draw is for. As a keyed
function with an output as long as one likes it remembers every permanent answer without a table: the same question
gives the same answer after any restart, and nothing about a value is ever written down.
"""

from __future__ import annotations

import os
from hashlib import shake_256
from typing import TYPE_CHECKING

from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from hubbub.shared.bernoulli import Draw

SECRET_BYTES = 32


class Secret:
    """32 random bytes of a device. They never leave it, and are shown nowhere."""

    __slots__ = ("_key", "number")

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != SECRET_BYTES:
            raise ParameterError(f"a secret has the wrong type or length; allowed: {SECRET_BYTES} bytes")
        self._key = key
        self.number = int.from_bytes(self.stream(b"cohort\0")(2), "little")
        """The one number that decides the device's cohort in every metric."""

    @classmethod
    def generate(cls) -> Secret:
        """Draw a new one from the operating system."""
        return cls(os.urandom(SECRET_BYTES))

    @property
    def key(self) -> bytes:
        """The bytes, for whoever has to store them."""
        return self._key

    def stream(self, message: bytes) -> Draw:
        """Answer a message with random bytes, as many as are asked for: for this secret always the same."""
        return shake_256(self._key + message).digest

    def __repr__(self) -> str:
        return "Secret(hidden)"
