"""Whole populations of devices, from scripts."""

from hubbub.simulations.aggregate import simulate_tally
from hubbub.simulations.devices import Devices, Simulated, simulate_devices
from hubbub.simulations.population import Life
from hubbub.simulations.work import Work

__all__ = ["Devices", "Life", "Simulated", "Work", "simulate_devices", "simulate_tally"]
