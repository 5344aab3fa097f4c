"""The web service: ingest, count, store, decode, show."""

__all__: list[str] = []
