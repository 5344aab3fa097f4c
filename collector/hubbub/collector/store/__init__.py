"""Where tallies, batch ids and candidates are kept: SQLite or PostgreSQL, by SQLAlchemy Core. Knows nothing of HTTP."""

from hubbub.collector.store.store import Store

__all__ = ["Store"]
