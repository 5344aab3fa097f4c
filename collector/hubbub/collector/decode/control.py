"""How many false discoveries to put up with: a share of those reported, or a chance that there is any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from msgspec import Struct

from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from hubbub.collector.decode.noise import Numbers

Method: TypeAlias = Literal["fdr", "family-wise"]
METHODS: tuple[Method, ...] = get_args(Method)


class Control(Struct, frozen=True):
    """False discovery rate (Benjamini and Hochberg 1995) or family-wise error (Bonferroni), and its level."""

    method: Method
    level: float

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ParameterError(f"control: level = {self.level}; allowed: a number above 0 and below 1")

    @classmethod
    def parse(cls, text: str) -> Control:
        """Read `fdr:0.1` or `family-wise:0.05`."""
        method, _, level = text.partition(":")
        for known in METHODS:
            if method == known:
                try:
                    return cls(known, float(level))
                except ValueError:
                    break
        raise ParameterError(f"control: {text!r} is not known; allowed: fdr:LEVEL or family-wise:LEVEL, as in fdr:0.1")

    def bar(self, chances: Numbers) -> float:
        """The largest p-value that is, or would be, a discovery among all these."""
        if not len(chances):
            return 0.0
        level = MARGIN * self.level
        if self.method == "family-wise":
            return level / len(chances)
        ordered = np.sort(chances)
        lines = level * np.arange(1, len(ordered) + 1) / len(ordered)
        passing = np.flatnonzero(ordered <= lines)
        return float(lines[passing[-1]]) if len(passing) else level / len(ordered)

    def __str__(self) -> str:
        return f"{self.method}:{self.level:g}"


MARGIN = 0.9
"""The bar is set for this part of the wanted level: the tails that it is read off are close, but not exact."""

DEFAULT_CONTROL = Control("fdr", 0.1)
"""One in ten of the strings reported may be false."""
