"""Consent: what the user said through the environment wins over what the app says."""

from __future__ import annotations

import logging
import os

VARIABLES = ("DO_NOT_TRACK", "HUBBUB_DISABLED")
"""Set to 1 (or true, yes, on), each of them switches the client off."""

_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"", "0", "false", "no", "off"})

logger = logging.getLogger("hubbub.client")


def switched_off() -> bool:
    """Whether the environment forbids collecting; a value that is neither yes nor no is logged, and ignored."""
    off = False
    for name in VARIABLES:
        value = os.environ.get(name, "").strip().lower()
        off = off or value in _YES
        if value not in _YES | _NO:
            logger.warning("%s has a value that is ignored; allowed: 1 or 0", name)
    return off
