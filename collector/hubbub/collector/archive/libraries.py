"""The libraries of the extra `cluster`: only archives need them, so they are imported when one is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hubbub.collector.errors import ArchiveError


def library(name: str) -> Any:
    """Import a library, or say in one line what to install."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = f'archive: needs {error.name}, which is not installed: pip install "hubbub[cluster]"'
        raise ArchiveError(missing) from None
