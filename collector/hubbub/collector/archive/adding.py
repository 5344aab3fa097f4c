"""Putting what was counted of an archive into a store.

A store keeps no list of the files that were added to it: whoever adds them twice has them counted twice. What can be
known is refused: the files of a store's own archive are in its tallies already.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from hubbub.collector.errors import StoreRefusedError
from hubbub.collector.store.backend import reaching
from hubbub.collector.store.files import files, shape_of
from hubbub.collector.store.migrations import check_version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hubbub.collector.archive.file import FileHead
    from hubbub.collector.store import Store


def check_store(store: Store, head: FileHead, names: Iterable[str]) -> None:
    """Refuse a store that gives the reports another meaning, or has counted them itself."""
    with reaching(), store.engine.connect() as connection:
        check_version(connection)
        shape = shape_of(connection, head.metric, head.version)
        own = {file.name for file in files(connection, "open", "sealed", "written")}
    if shape is None or shape.fingerprint != head.fingerprint:
        fault = "does not know that metric" if shape is None else "gives it another meaning"
        raise StoreRefusedError(
            f"{head.metric} version {head.version}: the store {fault}; allowed: a store that was prepared with the "
            "registry the reports were collected with"
        )
    for name in names:
        if PurePosixPath(name).stem in own:
            raise StoreRefusedError(
                f"{name}: the store has counted these reports itself, this is its own archive; allowed: another store"
            )
