"""A reference: what a batch is, and what of it counts, told once more and in another way."""

import base64
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import msgspec

from hubbub.collector.store import Store
from hubbub.shared import Registry
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES, MAX_REPORTS

DAY = date(2031, 12, 31)
"""The day it is: the last one of a metric of the example."""


class MalformedError(Exception):
    """What was sent is not a batch."""


def _need(sound: bool) -> None:
    if not sound:
        raise MalformedError


def _whole_number(low: int, high: int) -> Callable[[Any], None]:
    return lambda value: _need(type(value) is int and low <= value <= high)


def _pattern(pattern: str) -> Callable[[Any], None]:
    return lambda value: _need(type(value) is str and re.fullmatch(pattern, value, re.ASCII | re.DOTALL) is not None)


def _day(value: Any) -> None:
    _pattern(r"\d{4}-\d\d-\d\d")(value)
    try:
        date.fromisoformat(value)
    except ValueError:
        raise MalformedError from None


def _base64(value: Any) -> None:
    _pattern("[A-Za-z0-9_-]+")(value)
    _need(len(value) % 4 != 1 and base64.urlsafe_b64encode(_from_base64(value)).rstrip(b"=").decode() == value)


def _packed(value: Any) -> None:
    _need(type(value) is bytes and 1 <= len(value) <= 512)


def _from_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _fields(told: Any, checks: dict[str, Callable[[Any], None]]) -> dict[str, Any]:
    """Read an object, of which each key has been checked as often as it was said; the last one counts."""
    _need(type(told) is tuple)
    for key, value in told:
        _need(type(key) is str and key in checks)
        checks[key](value)
    found = dict(told)
    _need(found.keys() == checks.keys())
    return found


def _objects_as_pairs(value: Any) -> Any:
    if type(value) is dict:
        return tuple((key, _objects_as_pairs(each)) for key, each in value.items())
    return [_objects_as_pairs(each) for each in value] if type(value) is list else value


def _no_number(word: str) -> None:
    raise ValueError(word)


def read(body: bytes, media_type: str, compressed: bool) -> tuple[str, list[dict[str, Any]]]:
    """Read a batch without any of the collector's code."""
    try:
        if compressed:
            unpacker = zlib.decompressobj(31)
            body = unpacker.decompress(body, MAX_BATCH_BYTES + 1)
            _need(unpacker.eof and not unpacker.unused_data)
        _need(len(body) <= MAX_BATCH_BYTES)
        if media_type == JSON:
            told = json.loads(body.decode(), object_pairs_hook=tuple, parse_constant=_no_number)
            if b"\\u" in body:
                json.dumps(told, ensure_ascii=False).encode()  # a lone surrogate is no text
        else:
            told = _objects_as_pairs(msgspec.msgpack.decode(body))
    except (ValueError, TypeError, RecursionError, zlib.error, msgspec.MsgspecError):
        raise MalformedError from None
    report = {
        "metric": _pattern(".{1,64}"),
        "version": _whole_number(1, 2**31 - 1),
        "period": _day,
        "cohort": _whole_number(0, 1023),
        "bits": _pattern(".{2,683}") if media_type == JSON else _packed,
    }

    def reports(value: Any) -> None:
        _need(type(value) is list and len(value) <= MAX_REPORTS)
        for each in value:
            _fields(each, report)

    batch = _fields(told, {"batch": _pattern("[0-9a-f]{32}"), "reports": reports})
    found = [dict(each) for each in batch["reports"]]
    if media_type == JSON:
        for each in found:
            _base64(each["bits"])
    return batch["batch"], found


@dataclass
class Reference:
    """What the collector should have counted, from what it said."""

    registry: Registry
    counted: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    """Ids of batches that were said to have been counted before."""
    tallies: dict[tuple[str, date], dict[int, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    """By metric, period and cohort: the number of reports, and the number of ones at each bit."""

    def judge(self, told: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Sort reports into those that count and those that do not."""
        kept, rejected = [], []
        seen = set()
        for index, report in enumerate(told):
            reason = self._fault(report)
            key = report["metric"], report["period"]
            if reason is None and key in seen:
                reason = "repeated"
            if reason is None:
                seen.add(key)
                kept.append(report)
            else:
                rejected.append({"index": index, "reason": reason})
        return kept, rejected

    def _fault(self, report: dict[str, Any]) -> str | None:
        if report["metric"] not in self.registry:
            return "unknown_metric"
        metric = self.registry[report["metric"]]
        period = date.fromisoformat(report["period"])
        bits = int.from_bytes(_bits(report), "little")
        week = metric.every == "week"
        checks = {
            "unknown_version": report["version"] != metric.version,
            "bad_cohort": report["cohort"] >= metric.encoding.cohorts,
            "bad_bits": len(_bits(report)) != -(-metric.size // 8) or bits >> metric.size > 0,
            "bad_period": week and period.weekday() != 0,
            "expired": metric.expires is not None and period > metric.expires,
            "too_early": period > DAY + timedelta(days=1),
            "too_old": period < DAY - timedelta(days=14 + 6 * week),
        }
        return next((reason for reason, holds in checks.items() if holds), None)

    def count(self, identity: str, kept: list[dict[str, Any]]) -> None:
        """Count the reports of a batch."""
        assert identity not in self.counted, "counted twice"
        self.counted.add(identity)
        for report in kept:
            metric = self.registry[report["metric"]]
            counts = self.tallies[metric.name, date.fromisoformat(report["period"])]
            row = counts.setdefault(report["cohort"], [0] * (1 + metric.size))
            row[0] += 1
            for bit, byte in enumerate(f"{int.from_bytes(_bits(report), 'little'):0{metric.size}b}"[::-1], 1):
                row[bit] += byte == "1"

    def verify(self, store: Store) -> None:
        """Hold it against what is in the store."""
        assert self.claimed <= self.counted, "called a duplicate, and never counted"
        found = {}
        for metric in self.registry.values():
            for period in {period for _, period in self.tallies} | {DAY + timedelta(days=2)}:
                tally = store.tally(metric, period, period).document()
                if tally.cohorts:
                    found[metric.name, period] = {each.cohort: [each.n, *each.counts] for each in tally.cohorts}
        assert found == dict(self.tallies)
        total = sum(row[0] for cohorts in self.tallies.values() for row in cohorts.values())
        assert sum(each.reports for each in store.held()) == total, "reports of periods that nobody spoke of"
        assert total > 0


def _bits(report: dict[str, Any]) -> bytes:
    bits: bytes | str = report["bits"]
    return _from_base64(bits) if isinstance(bits, str) else bits
