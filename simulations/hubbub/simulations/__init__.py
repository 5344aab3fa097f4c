"""Whole populations of devices, from scripts."""

__all__: list[str] = []
