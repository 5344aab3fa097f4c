"""Errors of the client, all below HubbubError.

    HubbubError
    └── StateError            the state file cannot be used; nothing in it has been changed
        ├── SecretLostError   the state file exists, but the device's secret does not
        └── CopiedStateError  the state file was made on another device

`Client.record` raises neither: a problem with the state shows in `stats()` and in one log line.
"""

from __future__ import annotations

from hubbub.shared.errors import HubbubError


class StateError(HubbubError):
    """The state file cannot be read or written."""


class SecretLostError(StateError):
    """The secret is missing or damaged. A new one would spend privacy again, so none is made silently."""


class CopiedStateError(StateError):
    """The state file was copied from another device, whose answers it would repeat: the app has to decide."""
