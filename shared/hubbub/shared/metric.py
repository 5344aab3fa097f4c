"""A metric: one declared thing to measure, with all that client and collector must agree on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec

from hubbub.shared.errors import ValueRefusedError
from hubbub.shared.number import exact

if TYPE_CHECKING:
    from datetime import date

    from hubbub.shared.encode import Encoding
    from hubbub.shared.period import Every
    from hubbub.shared.response import Response

Kind: TypeAlias = Literal["string", "category", "flag", "mean", "histogram"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Combine: TypeAlias = Literal["last", "sum", "max", "mean"]
"""What becomes of several numbers recorded in one period."""

COMBINE: tuple[Combine, ...] = get_args(Combine)


@dataclass(frozen=True)
class Metric:
    """One metric of a registry, checked and solved: immutable, and complete."""

    name: str
    description: str
    kind: Kind
    every: Every
    encoding: Encoding
    response: Response
    version: int = 1
    lifetime_values: int | None = None
    """How many different encodings one device may ever reveal, the null encoding included; None: there is no limit."""
    combine: Combine | None = None
    default: str | bool | float | None = None
    """The value of a period in which the client ran and nothing was recorded; None: there is no report then."""
    owner: str | None = None
    expires: date | None = None

    # Known from the rest, and kept because every report asks for them:

    size: int = field(init=False, repr=False, compare=False)
    """How many bits a report has."""
    width: int = field(init=False, repr=False, compare=False)
    """How many bytes they are packed into."""
    fingerprint: str = field(init=False, repr=False, compare=False)
    """A digest of everything that gives a report its meaning: it may not change while the version stays."""
    identity: bytes = field(init=False, repr=False, compare=False)
    """The fingerprint as bytes. Every draw from a secret is bound to it, so no two declarations share a draw."""

    def __post_init__(self) -> None:
        digest = sha256(self._meaning())
        object.__setattr__(self, "size", self.encoding.size)
        object.__setattr__(self, "width", (self.encoding.size + 7) // 8)
        object.__setattr__(self, "fingerprint", digest.hexdigest())
        object.__setattr__(self, "identity", digest.digest())

    def _meaning(self) -> bytes:
        """Format the declaration as docs/design/encoding.md says: compact JSON without floating-point numbers."""
        response, default = self.response, self.default
        return msgspec.json.encode(
            [
                self.name,
                self.version,
                self.kind,
                self.every,
                self.encoding.parameters,
                (response.p1, response.q1, response.p2, response.q2),
                self.lifetime_values,
                self.combine,
                exact(default) if isinstance(default, float) else default,
            ]
        )

    @property
    def encodings(self) -> int | None:
        """How many different encodings one device reveals at most; None: there is no limit.

        A repeated metric with a null encoding has room for it and for one value at least.
        """
        if self.lifetime_values == 1 and self.every != "once" and self.encoding.has_null:
            return 2
        return self.lifetime_values

    @property
    def max_epsilon(self) -> float:
        """The most that the values of one device can ever cost: each encoding a lifetime epsilon."""
        return math.inf if self.encodings is None else self.encodings * self.epsilon(math.inf)

    def epsilon(self, reports: float = 1) -> float:
        """Exact epsilon of some number of reports of one value by one device; `math.inf` for a lifetime of them."""
        return self.response.epsilon(self.encoding.contrasts, reports)

    @property
    def variance(self) -> float:
        """Variance of the estimate, times the number of reports."""
        return self.encoding.variance(self.response)

    def encode(self, value: object, cohort: int, offset: int) -> int:
        """Turn a value into bits; an error names the metric and never the value."""
        try:
            return self.encoding.encode(value, cohort, offset)
        except ValueRefusedError as error:
            fault = str(error)
        # Raised out here so that nothing of the value can travel along as the error's context.
        raise ValueRefusedError(f'metric "{self.name}": the value {fault}')
