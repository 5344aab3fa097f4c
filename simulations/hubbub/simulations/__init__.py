"""Whole populations of devices, from scripts."""

from hubbub.simulations.aggregate import simulate_tally

__all__ = ["simulate_tally"]
