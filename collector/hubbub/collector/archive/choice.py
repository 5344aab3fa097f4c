"""Which files of an archive to count, and making sure that nobody writes to them meanwhile."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.collector.archive.file import folders_of
from hubbub.collector.errors import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from hubbub.collector.archive.file import FileHead
    from hubbub.collector.archive.place import Listed, Place


@dataclass(frozen=True)
class Choice:
    """What to count of an archive; None: whatever there is."""

    metric: str | None = None
    version: int | None = None
    start: date | None = None
    end: date | None = None

    def holds(self, head: FileHead) -> bool:
        """Whether a file is to be counted."""
        return self._holds(head.metric, head.version, str(head.period))

    def may_hold(self, path: str) -> bool:
        """Whether a file in such folders may be to be counted: one that is not what they say is refused when opened."""
        told = dict(part.split("=", 1) for part in folders_of(path))
        return self._holds(told.get("metric"), told.get("version"), told.get("period"))

    def _holds(self, metric: str | None, version: int | str | None, period: str | None) -> bool:
        """Compare what is known; dates are compared as they are spelled, year first."""
        return (
            (self.metric is None or metric in {None, self.metric})
            and (self.version is None or version is None or str(version) == str(self.version))
            and (self.start is None or period is None or str(self.start) <= period)
            and (self.end is None or period is None or period <= str(self.end))
        )

    def __str__(self) -> str:
        told = [f"metric {self.metric}"] if self.metric else []
        told += [f"version {self.version}"] if self.version else []
        told += [f"from {self.start}"] if self.start else []
        told += [f"to {self.end}"] if self.end else []
        return ", ".join(told) or "any metric"


@contextmanager
def unchanged(place: Place, choice: Choice) -> Iterator[list[Listed]]:
    """List the files that may have to be counted, and make sure at the end that they are still the same."""
    before = list_files(place, choice)
    yield before
    changed = set(before) ^ set(list_files(place, choice))
    if changed:
        raise ArchiveError(
            f"{place.path(min(changed).name)}: has come, gone or changed during the count; allowed: an archive, or "
            "periods of one (--start, --end), that nobody writes to"
        )


def list_files(place: Place, choice: Choice) -> list[Listed]:
    """List the files that may have to be counted; refuse any that is not finished."""
    for name, _ in place.unfinished():
        if choice.may_hold(place.path(name)):
            raise ArchiveError(
                f"{place.path(name)}: is being written, or was left behind by a writer that was ended; allowed: "
                "periods without such files (--start, --end), or an archive that `hubbub store check` has repaired"
            )
    return [file for file in place.files() if choice.may_hold(place.path(file.name))]
