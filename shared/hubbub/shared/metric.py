"""A metric: one declared thing to measure, with all that client and collector must agree on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec

from hubbub.shared.errors import ValueRefusedError

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
    """How many different encodings one device may ever reveal; None: there is no limit."""
    combine: Combine | None = None
    owner: str | None = None
    expires: date | None = None

    # Known from the rest, and kept because every report asks for them:

    size: int = field(init=False, repr=False, compare=False)
    """How many bits a report has."""
    width: int = field(init=False, repr=False, compare=False)
    """How many bytes they are packed into."""
    identity: bytes = field(init=False, repr=False, compare=False)
    """Name and version as the secret's draws are told them: no two metrics, and no two versions, share a draw."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.encoding.size)
        object.__setattr__(self, "width", (self.encoding.size + 7) // 8)
        object.__setattr__(self, "identity", self.name.encode() + b"\0" + self.version.to_bytes(4, "little"))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that gives a report its meaning: it may not change while the version stays."""
        meaning = {
            "name": self.name,
            "version": self.version,
            "kind": self.kind,
            "every": self.every,
            "encoding": asdict(self.encoding),  # type: ignore[call-overload]  # each is a frozen dataclass
            "response": (self.response.p1, self.response.q1, self.response.p2, self.response.q2),
            "lifetime_values": self.lifetime_values,
            "combine": self.combine,
        }
        return sha256(msgspec.json.encode(meaning, order="sorted")).hexdigest()

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
