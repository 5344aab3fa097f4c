"""Errors of the collector, all under HubbubError.

HubbubError
├── SettingsError            a configuration that cannot be used; `.problems` lists every fault in it
├── ArchiveError             a place or a file that no archive can be kept in, or counted from
├── ClusterError             workers, here or on a Dask cluster, that cannot be reached or were lost
└── StoreError
├── StoreAddressError    an address that names no store
├── StoreRefusedError    a store that this collector must not write to: another schema, changed metrics
└── StoreUnavailableError  a store that cannot be reached now, and perhaps can later
    └── StoreConflictError   a transaction that the database undid in favour of another
"""

from __future__ import annotations

from hubbub.shared.errors import HubbubError


class SettingsError(HubbubError):
    """A configuration with faults: all of them, not only the first."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class ArchiveError(HubbubError):
    """A place or a file that no archive can be kept in, or counted from; the message names it."""


class ClusterError(HubbubError, RuntimeError):
    """Workers, here or on a Dask cluster, that cannot be reached or were lost."""


class StoreError(HubbubError):
    """Something about the store."""


class StoreAddressError(StoreError):
    """An address that names no store."""


class StoreRefusedError(StoreError):
    """A store that must not be written to; waiting does not help, an operator has to act."""


class StoreUnavailableError(StoreError):
    """A store that cannot be reached, is full, or is locked; trying again later may help."""


class StoreConflictError(StoreUnavailableError):
    """A transaction that the database undid in favour of another; nothing of it was kept, so it may be done again."""
