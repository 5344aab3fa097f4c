"""`hubbub demo`: a crowd of devices, a real collector, and what is learnt beside what is true."""

from hubbub.simulations.demo.command import demo

__all__ = ["demo"]
