"""Errors of the client, all below HubbubError.

    HubbubError
    └── StateError           the state file cannot be used; nothing in it has been changed
        └── SecretLostError  the state file is there, but the device's secret is not

`Client.record` raises neither: a problem with the state shows in `stats()` and in one log line.
"""

from __future__ import annotations

from hubbub.shared.errors import HubbubError


class StateError(HubbubError):
    """The state file cannot be read or written."""


class SecretLostError(StateError):
    """The secret is missing or damaged. A new one would spend privacy again, so none is made silently."""
