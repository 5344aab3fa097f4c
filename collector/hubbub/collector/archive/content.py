"""What is in a file: reports in their one order, and a digest of them, however Parquet spells them."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.archive.file import FileHead, Reports
from hubbub.collector.archive.place import ENDING
from hubbub.collector.store.parts import COHORT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hubbub.collector.store.files import Kept, Shape

DIGEST_BYTES = 16


def unpack(rows: bytes, width: int) -> Reports:
    """Read reports as the store keeps them, and put them in order: by cohort, then by their bytes."""
    size = COHORT_BYTES + width
    ordered = np.sort(np.frombuffer(rows, f"S{size}")).view(np.uint8).reshape(-1, size)
    cohorts = ordered[:, :COHORT_BYTES].copy().view(">u2").ravel().astype(np.uint32)
    return Reports(cohorts, np.ascontiguousarray(ordered[:, COHORT_BYTES:]))


def digest_of(groups: Iterable[Reports]) -> bytes:
    """Digest reports in their order, however many are given at a time."""
    cohorts, bits = blake2b(), blake2b()
    for group in groups:
        cohorts.update(group.cohorts.astype("<u4").data)
        bits.update(np.ascontiguousarray(group.packed).data)
    return blake2b(cohorts.digest() + bits.digest(), digest_size=DIGEST_BYTES).digest()


def head_of(kept: Kept, shape: Shape, reports: int) -> FileHead:
    """Tell what a file has to say about itself."""
    return FileHead(kept.metric, kept.version, kept.period, shape.bits, shape.cohorts, shape.fingerprint, reports)


def path_of(kept: Kept) -> str:
    """Where in the archive a file is."""
    return f"metric={kept.metric}/version={kept.version}/period={kept.period}/{kept.name}{ENDING}"
