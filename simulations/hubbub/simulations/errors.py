"""The errors that simulations add to the tree.

HubbubError
├── UnknownExperimentError   a name that no experiment has
├── OutputError              a folder that the results cannot be written to
├── ClusterError             workers, here or on a Dask cluster, that cannot be reached or were lost
├── LiveError                a collector that does not start, or reports that do not get through to it
└── AuditError               a client whose reports are not even of the declared form
"""

from __future__ import annotations

from hubbub.collector.errors import ClusterError
from hubbub.shared.errors import HubbubError

__all__ = ["AuditError", "ClusterError", "LiveError", "OutputError", "UnknownExperimentError"]


class UnknownExperimentError(HubbubError, KeyError):
    """A name that no experiment has."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put quotes around our sentence.
        return str(self.args[0])


class OutputError(HubbubError, OSError):
    """A folder that the results cannot be written to."""


class LiveError(HubbubError, RuntimeError):
    """A collector that does not start, or reports that do not get through to it."""


class AuditError(HubbubError, ValueError):
    """A client whose reports are not even of the declared form."""
