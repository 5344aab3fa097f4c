"""The experiments by name, each in a module of the same name; one is imported only when it is run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hubbub.simulations.errors import UnknownExperimentError

if TYPE_CHECKING:
    from hubbub.simulations.experiment import Experiment

PUBLISHED = (
    "rappor-normal",
    "rappor-exponential",
    "rappor-detection",
    "rappor-variants",
    "optimal-response",
    "one-bit-mean",
    "rounding",
    "histogram",
    "central-vs-local",
    "longitudinal",
)
ATTACKS = ("averaging-attack", "tracking-attack", "drift-attack", "poisoning")
OWN = "your-metric"
NAMES = (*PUBLISHED, *ATTACKS, OWN)


def experiment(name: str) -> Experiment:
    """Find an experiment."""
    if name not in NAMES:
        raise UnknownExperimentError(f'experiment: "{name}" is none; allowed: {", ".join(NAMES)}')
    found: Experiment = import_module(f"{__name__}.{name.replace('-', '_')}").EXPERIMENT
    return found
