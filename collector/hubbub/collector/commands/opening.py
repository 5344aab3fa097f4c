"""The store that a command is about."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from hubbub.collector.settings import SETTINGS
from hubbub.collector.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., None])

BY_NAME = {setting.name: setting for setting in SETTINGS}
STORE = BY_NAME["store"]


def store_option(command: Command) -> Command:
    """Give a command the store that it is about."""
    return click.option("--store", metavar="ADDRESS", help=f"{STORE.meaning}  [default: {STORE.default}]")(command)


def store_at(address: str | None) -> Store:
    """Name a store as `hubbub serve` would find it."""
    return Store(address or os.environ.get(STORE.variable) or STORE.default)


def open_store(address: str | None) -> Store:
    """Name a store that has to be there: a file that is not is not made by asking about it."""
    store = store_at(address)
    url = store.engine.url
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise click.ClickException(f"store: {url.database} is not there")
    return store
