"""Step one, encode: a value becomes a few bits. One file for each of the five ways."""

from __future__ import annotations

from hubbub.shared.encode.bit import Bit
from hubbub.shared.encode.bloom import Bloom
from hubbub.shared.encode.bucket import Bucket
from hubbub.shared.encode.encoding import NULL, Contrast, Encoding
from hubbub.shared.encode.one_hot import OneHot
from hubbub.shared.encode.rounding import Rounding

__all__ = ["NULL", "Bit", "Bloom", "Bucket", "Contrast", "Encoding", "OneHot", "Rounding"]
