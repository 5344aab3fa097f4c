"""From decoded estimates to figures, for dashboard, command line and demo alike. Nothing is drawn here: see charts."""

from __future__ import annotations

from hubbub.collector.pictures.comparison import Compared, of_comparison
from hubbub.collector.pictures.estimates import of_estimates
from hubbub.collector.pictures.history import of_history
from hubbub.collector.pictures.sparkline import sparkline

__all__ = ["Compared", "of_comparison", "of_estimates", "of_history", "sparkline"]
