"""The address of an archive that is to be kept: looked at before a collector starts."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from hubbub.collector.archive.libraries import library
from hubbub.collector.errors import ArchiveError

ALLOWED = "a folder, or an address of fsspec whose files outlive the process"


def check_address(address: str) -> None:
    """Refuse an address that can never be right; one that only cannot be reached now is not refused."""
    library("pyarrow")
    library("pyarrow.parquet")
    fsspec = library("fsspec")
    shown = shown_address(address)
    try:
        system, root = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        told = str(error).replace(address, shown)
        raise ArchiveError(f"archive: {shown} cannot be used: {told}; allowed: {ALLOWED}") from None
    except Exception:  # noqa: BLE001  (some connect at once, and raise what they like if they cannot)
        return
    if isinstance(system, fsspec.get_filesystem_class("memory")):
        raise ArchiveError(f"archive: {shown} would be gone with the process; allowed: {ALLOWED}")
    if isinstance(system, fsspec.get_filesystem_class("file")) and Path(root).is_file():
        raise ArchiveError(f"archive: {shown} is a file; allowed: {ALLOWED}")


def shown_address(address: str) -> str:
    """Spell an address without a password."""
    try:
        parts = urlsplit(address)
        password = parts.password
    except ValueError:
        return "the address"
    if password is None:
        return address
    named, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{named.partition(':')[0]}:***@{host}").geturl()
