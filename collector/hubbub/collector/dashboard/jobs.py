"""How the workshop does what it is told: it reads tallies, adds them up, decodes and draws.

All of this runs in its process, one job at a time. What is read and decoded is kept by version, so that looking again
costs a count of reports.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, reduce
from hashlib import blake2b
from operator import add
from typing import TYPE_CHECKING

import msgspec

from hubbub.collector.dashboard.background import Kept
from hubbub.collector.dashboard.orders import Drawing, Glance, Glimpse, History, Look, Looked, Order
from hubbub.collector.decode import Estimates, decode
from hubbub.collector.decode.process import spell
from hubbub.collector.store import Store
from hubbub.collector.store.by_period import Counted, KeptTallies, reports_by_period
from hubbub.collector.store.candidates import get_revision
from hubbub.collector.tally import Tally
from hubbub.shared.registry import Registry

if TYPE_CHECKING:
    from hubbub.collector.store.candidates import Revision
    from hubbub.shared.metric import Metric

KEPT_ESTIMATES = 1000
"""Of whole metrics and of single periods."""

KEPT_PLACES = 8
"""Registries and stores. A process that serves has one of each."""

_OF_ALL_CANDIDATES = {"explained", "listed", "misfit"}
"""Diagnostics that say something only where all candidates were asked about."""

_tallies = KeptTallies()
_estimates: Kept[object, Estimates] = Kept(KEPT_ESTIMATES)
_registry = lru_cache(KEPT_PLACES)(Registry.parse)
_store = lru_cache(KEPT_PLACES)(Store)


def work(order: Order) -> bytes:
    """Do a job, and spell what came of it."""
    if isinstance(order, Drawing):
        return _draw(order)
    registry, store = _registry(order.place.registry), _store(order.place.store)
    try:
        if isinstance(order, Glance):
            return msgspec.msgpack.encode(_glance(order, registry, store))
        if isinstance(order, Look):
            return msgspec.msgpack.encode(_look(order, registry[order.name], store))
        return msgspec.msgpack.encode(_history(order, registry[order.name], store))
    finally:
        store.close()  # no connection is held while nobody looks, nor one to a file that has been replaced


def _glance(order: Glance, registry: Registry, store: Store) -> dict[str, Glimpse]:
    every = reports_by_period(store)
    found: dict[str, Glimpse] = {}
    for name, metric in registry.items():
        counted = every.get((name, metric.version), {})
        listed = alarms = None
        if metric.kind == "string":
            listed = get_revision(store.engine, name)
        elif counted:
            alarms = _decode(Look(order.place, name), metric, store, counted).alarms
        found[name] = Glimpse(counted, listed, alarms)
    return found


def _look(order: Look, metric: Metric, store: Store) -> Looked:
    counted = reports_by_period(store, metric.name).get((metric.name, metric.version), {})
    inside = {day: n for day, n in counted.items() if (order.start or day) <= day <= (order.end or day)}
    listed = get_revision(store.engine, metric.name) if metric.kind == "string" else None
    looked = Looked(counted, listed, _periods(metric, inside), _version(order, metric, inside, listed))
    if looked.version == order.known:
        return looked
    if metric.kind != "string":
        body = spell(_decode(order, metric, store, inside), "application/json", undetected=False)
        return msgspec.structs.replace(looked, body=body)
    if inside and listed is not None and listed != order.settled:
        return msgspec.structs.replace(looked, tally=_total(order, metric, store, inside).json())
    return looked


def _history(order: History, metric: Metric, store: Store) -> list[Estimates]:
    tallies = _tallies.read(store, metric, order.counted)
    return [_decode_period(order, metric, tally) for tally in tallies.values()]


def _draw(order: Drawing) -> bytes:
    from hubbub.collector.charts import draw  # noqa: PLC0415  (it takes a second to load, and other jobs do not need it)
    from hubbub.collector.pictures import of_estimates, of_history  # noqa: PLC0415

    if order.history:
        figure = of_history(order.estimates, values=order.values)
    else:
        [estimates] = order.estimates
        figure = of_estimates(estimates)
        if order.candidates is not None and estimates.reports:
            told = f"{len(estimates.detected):,} of {order.candidates:,} candidates found"
            figure = replace(figure, title=f"{estimates.metric}: {told}")
    return draw(figure, order.form, dark=order.dark, narrow=order.narrow)


def _decode(order: Look, metric: Metric, store: Store, inside: Counted) -> Estimates:
    """Decode what is no string."""
    version = _version(order, metric, inside, None)
    estimates = _estimates.get(version)
    if estimates is None:
        tally = _total(order, metric, store, inside)
        periods = _periods(metric, inside)
        estimates = decode(metric, tally, confidence=order.confidence, control=order.control, periods=periods)
        _estimates.put(version, estimates)
    return estimates


def _decode_period(order: History, metric: Metric, tally: Tally) -> Estimates:
    """Decode one period. Most have ended long ago, and are the same as when they were decoded last."""
    key = (metric.fingerprint, tally.start, _digest(tally), order.values, order.confidence, order.control)
    estimates = _estimates.get(key)
    if estimates is None:
        asked = order.values if metric.kind == "string" else None
        estimates = decode(
            metric, tally, candidates=asked, confidence=order.confidence, control=order.control, periods=1
        )
        if metric.kind == "string":
            # Only the strings found over the whole time are asked about, so that something is left over is no news.
            looks = tuple(each for each in estimates.diagnostics if each.name not in _OF_ALL_CANDIDATES)
            estimates = msgspec.structs.replace(estimates, diagnostics=looks)
        _estimates.put(key, estimates)
    return estimates


def _total(order: Look, metric: Metric, store: Store, inside: Counted) -> Tally:
    """Add up what was asked about; it covers the days that were named, or else those that there are."""
    tally = reduce(add, _tallies.read(store, metric, inside).values(), Tally.empty(metric))
    return replace(tally, start=order.start or tally.start, end=order.end or tally.end)


def _periods(metric: Metric, inside: Counted) -> int:
    """How many reports may be of one device."""
    return 1 if metric.every == "once" else max(len(inside), 1)


def _version(order: Look, metric: Metric, inside: Counted, listed: Revision | None) -> str:
    asked = (order.start, order.end, order.confidence, order.control)
    known = (order.place.store, metric.fingerprint, sorted(inside.items()), listed, asked)
    return blake2b(msgspec.msgpack.encode(known), digest_size=16).hexdigest()


def _digest(tally: Tally) -> bytes:
    return blake2b(tally.n.tobytes() + tally.counts.tobytes(), digest_size=16).digest()
