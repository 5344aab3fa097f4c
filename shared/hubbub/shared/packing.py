"""Bits as bytes: bit i is bit i % 8, least significant first, of byte i // 8, and padding bits are zero."""

from __future__ import annotations

from bitarray import bitarray

from hubbub.shared.errors import WireError


def pack(bits: int, size: int) -> bytes:
    """Spell a vector of `size` bits, held as an integer, as bytes."""
    return bits.to_bytes((size + 7) // 8, "little")


def unpack(packed: bytes, size: int) -> bitarray:
    """Read a vector of `size` bits back, for whoever looks at single bits; wrong lengths and padding are refused."""
    bits = bitarray(packed, "little")
    if len(packed) != (size + 7) // 8 or bits.find(1, size) != -1:
        raise WireError(
            f"bits: {len(packed)} bytes do not spell {size} bits; allowed: {(size + 7) // 8} bytes, padding bits zero"
        )
    del bits[size:]
    return bits
