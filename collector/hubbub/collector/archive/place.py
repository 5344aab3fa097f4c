"""The place where an archive is: a folder, or whatever else fsspec has an address for."""

from __future__ import annotations

import errno
import os
import re
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hubbub.collector.archive.libraries import library
from hubbub.collector.errors import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDING = ".parquet"
UNFINISHED = ".part"
"""What ends the name of a file that is being written, or whose writer was ended."""


class Listed(NamedTuple):
    """A file of a place."""

    name: str
    size: int


class Place:
    """A folder of files, or a single one; a name is a path inside it, with slashes."""

    def __init__(self, address: str) -> None:
        fsspec = library("fsspec")
        try:
            self._system, root = fsspec.core.url_to_fs(address)
        except Exception as error:  # noqa: BLE001  (some connect at once, and raise what they like if they cannot)
            shown = re.sub("//[^/]*@", "//", address)  # a password may be in it
            told = str(error).replace(address, shown)
            raise ArchiveError(f"archive {shown}: {told}; allowed: a folder, or an address of fsspec") from None
        self._root: str = root.rstrip("/")
        self._only: str | None = None
        self.local: bool = isinstance(self._system, fsspec.get_filesystem_class("file"))
        """Whether it is a folder of this machine."""
        self.faults: type[Exception] = OSError if self.local else Exception
        """What may be raised by whoever looks at it: libraries of places far away have errors of their own."""
        self.address: str = root if self.local else address  # whoever is told it may be in another folder
        self.reachable: bool = not isinstance(self._system, fsspec.get_filesystem_class("memory"))
        """Whether another process sees the same files at this address."""
        if self._kind() == "file":
            self._root, _, self._only = self._root.rpartition("/")

    def __reduce__(self) -> tuple[type[Place], tuple[str]]:
        return Place, (self.address,)  # connections do not travel to another process; they are made anew there

    def path(self, name: str) -> str:
        """Spell where a file is, for people and for the file system."""
        return f"{self._root}/{name}" if name else self._root

    def exists(self) -> bool:
        """Whether there is anything at the address; that it may not be looked at is an error."""
        return self._only is not None or self._kind() == "directory"

    def _kind(self) -> str | None:
        with self._asking(""):
            try:
                kind: str = self._system.info(self._root)["type"]
            except FileNotFoundError:
                return None
            return kind

    def files(self) -> list[Listed]:
        """List the finished files, by name."""
        return [file for file in self._all() if file.name.endswith(ENDING)]

    def unfinished(self) -> list[Listed]:
        """List what is being written, and what a writer that was ended has left."""
        return [file for file in self._all() if file.name.endswith(UNFINISHED)]

    def _all(self) -> list[Listed]:
        if self._only is not None:
            with self._asking(self._only):
                return [Listed(self._only, int(self._system.size(self.path(self._only))))]
        found, folders = [], [self._root] if self.exists() else []
        while folders:
            # Not by `find` or `walk`, which pass over a folder that may not be looked into: what it holds would be
            # missing from every count.
            for info in self._look(folders.pop()):
                if info["type"] == "directory":
                    folders.append(info["name"])
                else:
                    found.append(Listed(info["name"].rstrip("/")[len(self._root) :].lstrip("/"), int(info["size"])))
        return sorted(found)

    def _look(self, folder: str) -> list[dict[str, Any]]:
        with self._asking(folder[len(self._root) :].lstrip("/")):
            listed: list[dict[str, Any]] = self._system.ls(folder, detail=True)
            # Some systems list a folder in itself.
            return [info for info in listed if info["name"].rstrip("/") != folder.rstrip("/")]

    @contextmanager
    def open(self, name: str) -> Iterator[Any]:
        """Open a file to read parts of it: one of Python, or, here, one that pyarrow reads into memory of its own.

        Not by mapping it into memory: a file that is cut off meanwhile would end the process.
        """
        with self._asking(name):
            file = (
                library("pyarrow").OSFile(self.path(name)) if self.local else self._system.open(self.path(name), "rb")
            )
        with file:
            yield file

    def read(self, name: str) -> bytes:
        """Read a whole file."""
        with self._asking(name):
            content: bytes = self._system.cat_file(self.path(name))
            return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file at once and durably: whoever looks finds all of it or nothing."""
        with self._asking(name):
            if self.local:
                _write_local(Path(self.path(name)), content)
            else:
                self._make_far_folders(self.path(name).rpartition("/")[0])
                self._system.pipe_file(self.path(name), content)

    def _make_far_folders(self, folder: str) -> None:
        """Make a folder and those above it, but nothing that is in no folder: that may be a bucket, and is not ours."""
        missing = []
        while "/" in folder.strip("/") and not self._system.isdir(folder):
            missing.append(folder)
            folder = folder.rpartition("/")[0]
        for each in reversed(missing):
            with suppress(FileExistsError):  # somebody else may be as far
                self._system.mkdir(each, create_parents=False)

    def delete(self, name: str) -> None:
        """Delete a file; one that is gone already is fine."""
        with self._asking(name):
            try:
                self._system.rm_file(self.path(name))
            except FileNotFoundError:
                return

    @contextmanager
    def _asking(self, name: str) -> Iterator[None]:
        try:
            self._system.invalidate_cache()  # others write there too, and some systems remember what a folder held
            yield
        except self.faults as error:
            path = self.path(name)
            fault = _fault(error, path)
            raise ArchiveError(f"{path}: {fault}; allowed: a place that can be reached and used") from None


def _fault(error: Exception, path: str) -> str:
    """Tell what went wrong: by number where there is one, for pyarrow tells the path again; so do some who miss it."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    told = in_one_line(error)
    return os.strerror(errno.ENOENT) if isinstance(error, FileNotFoundError) and told == path else told


def in_one_line(error: Exception) -> str:
    """What an error says, or what it is called if it says nothing."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _write_local(path: Path, content: bytes) -> None:
    _make_folders(path.parent)
    # Several writers may write one file at the same time, all the same content: each has a part of its own.
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _make_folders(folder: Path) -> None:
    """Make a folder and those above it; a new name is durable once the folder that holds it is."""
    if folder.is_dir():
        return
    _make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    if os.name == "nt":
        return  # folders cannot be opened there
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
