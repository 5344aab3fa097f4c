"""The sizes of population that an experiment tries, the smallest first."""

from __future__ import annotations

FEWEST = 100
"""Reports below which no string is found at all."""
FEWEST_NUMBERS = 10
"""The same of numbers, of which a mean is taken."""


def spaced(devices: int, decades: int, per_decade: int) -> list[int]:
    """Populations up to the largest, equally far apart on a logarithmic axis."""
    steps = range(decades * per_decade, -1, -1)
    wanted = (round(devices / 10 ** (step / per_decade)) for step in steps)
    return sorted({number for number in wanted if number >= FEWEST} | {devices})


def to_a_thousandth(devices: int) -> list[int]:
    """All devices, a tenth, a hundredth and a thousandth of them, but a few at least."""
    return sorted({max(devices // part, FEWEST_NUMBERS) for part in (1000, 100, 10, 1)})
