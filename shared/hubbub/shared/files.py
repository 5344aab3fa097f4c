"""Files that are there as a whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path


def check_folder(folder: Path) -> None:
    """Find out before the work whether its results can be written here: an OSError tells why not."""
    with tempfile.TemporaryFile(dir=folder):
        pass


def replace_file(path: Path, content: bytes) -> None:
    """Write a file at once: whoever reads it meanwhile finds the old content or the new, never a part."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.close()
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
