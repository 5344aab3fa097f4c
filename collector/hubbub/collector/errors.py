"""Errors of the collector, all under HubbubError.

HubbubError
├── SettingsError            a configuration that cannot be used; `.problems` lists every fault in it
└── StoreError
├── StoreAddressError    an address that names no store
├── StoreRefusedError    a store that this collector must not write to: another schema, changed metrics
└── StoreUnavailableError  a store that cannot be reached now, and perhaps can later
"""

from __future__ import annotations

from hubbub.shared.errors import HubbubError


class SettingsError(HubbubError):
    """A configuration with faults: all of them, not only the first."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class StoreError(HubbubError):
    """Something about the store."""


class StoreAddressError(StoreError):
    """An address that names no store."""


class StoreRefusedError(StoreError):
    """A store that must not be written to; waiting does not help, an operator has to act."""


class StoreUnavailableError(StoreError):
    """A store that cannot be reached, is full, or is locked; trying again later may help."""
