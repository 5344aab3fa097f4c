"""Figures for dashboard, command line and simulations: described in plain values, drawn by one function."""

from __future__ import annotations

from hubbub.collector.charts.draw import Form, draw
from hubbub.collector.charts.figure import Axis, Figure, Look, Panel, Series

__all__ = ["Axis", "Figure", "Form", "Look", "Panel", "Series", "draw"]
