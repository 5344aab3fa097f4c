"""What several private mechanisms cost together: over metrics, over values, over devices.

Pure epsilons simply add up (`basic`). Allowing a small delta, the chance of a bound not holding, buys a smaller total:

* `exact`: the true total of k mechanisms of the same epsilon (Kairouz, Oh, Viswanath 2015, theorem 3.3);
* `renyi`: sums of Renyi divergences of randomised response, the worst of all pure mechanisms (Mironov 2017), turned
  into (epsilon, delta) by Canonne, Kamath, Steinke (2020), proposition 12;
* `zcdp`: the same with one number, rho = epsilon tanh(epsilon/2) (Bun, Steinke 2016).

All are upper bounds, so the smallest is as true as the others.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ORDERS = tuple(1 + 10 ** (step / 50) for step in range(-150, 251))
"""Renyi orders to try, from 1.001 to 100,001: any gives a valid bound, the best of these nearly the best of all."""


@dataclass(frozen=True)
class Composition:
    """The smallest total found, how it was found, and what the other ways gave."""

    epsilon: float
    delta: float
    method: str
    totals: dict[str, float]


def compose(epsilons: Iterable[float], delta: float = 0.0) -> Composition:
    """Compose pure mechanisms of these epsilons and say which bound is the best."""
    if not 0 <= delta < 1:
        raise ParameterError(f"delta = {delta}; allowed: a number from 0 to below 1")
    spent = Counter(epsilons)
    if not all(0 <= epsilon < math.inf for epsilon in spent):
        raise ParameterError("an epsilon to compose is negative, infinite or NaN; allowed: finite numbers from 0")
    del spent[0]
    totals = {"basic": basic(spent)}
    if delta > 0 and spent:
        if len(spent) == 1:
            [(epsilon, count)] = spent.items()
            totals["exact"] = exact(epsilon, count, delta)
        totals["renyi"] = renyi(spent, delta)
        totals["zcdp"] = zcdp(spent, delta)
    method = min(totals, key=totals.__getitem__)
    return Composition(totals[method], delta if method != "basic" else 0.0, method, totals)


def basic(spent: Counter[float]) -> float:
    """The plain sum."""
    return math.fsum(epsilon * count for epsilon, count in spent.items())


def exact(epsilon: float, count: int, delta: float) -> float:
    """The smallest total epsilon that holds for `count` mechanisms of the same epsilon except with chance delta."""
    return _smallest(lambda total: exact_delta(epsilon, count, total) <= delta, epsilon * count)


def exact_delta(epsilon: float, count: int, total: float) -> float:
    """The chance that a total fails to hold: delta(e') = sum_j C(k,j) [e^((k-j)e) - e^(e'+j e)]_+ / (1+e^e)^k."""
    # In logarithms, with e^((k-j)e) taken out of the bracket: every factor stays between 0 and 1.
    scale = math.lgamma(count + 1) - count * _log_add(0.0, epsilon)
    terms = []
    for j in range(count // 2 + 1):
        excess = (count - 2 * j) * epsilon - total
        if excess > 0:
            log_weight = scale - math.lgamma(j + 1) - math.lgamma(count - j + 1) + (count - j) * epsilon
            terms.append(math.exp(log_weight) * -math.expm1(-excess))
    return math.fsum(terms)


def renyi(spent: Counter[float], delta: float) -> float:
    """The best total over the Renyi orders."""
    return max(0.0, min(_renyi_at(order, spent, delta) for order in _ORDERS))


def _renyi_at(order: float, spent: Counter[float], delta: float) -> float:
    divergence = math.fsum(
        count * (_log_add(order * epsilon, (1 - order) * epsilon) - _log_add(0.0, epsilon)) / (order - 1)
        for epsilon, count in spent.items()
    )
    return divergence + math.log((order - 1) / order) - (math.log(delta) + math.log(order)) / (order - 1)


def zcdp(spent: Counter[float], delta: float) -> float:
    """The total by zero-concentrated privacy: rho + 2 sqrt(rho ln(1/delta))."""
    rho = math.fsum(count * epsilon * math.tanh(epsilon / 2) for epsilon, count in spent.items())
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def group(epsilon: float, size: int, delta: float = 0.0) -> tuple[float, float]:
    """What (epsilon, delta) for one device means for `size` of them that answer alike, or for sets of `size` values."""
    if size < 1:
        raise ParameterError(f"size = {size}; allowed: an integer from 1")
    scale = math.expm1(size * epsilon) / math.expm1(epsilon) if delta and epsilon else float(size)
    return size * epsilon, min(1.0, delta * scale)


def _smallest(holds: Callable[[float], bool], high: float) -> float:
    """The smallest number up to `high` for which something holds, never on the wrong side of it."""
    low = 0.0
    if holds(low):
        return low
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _log_add(a: float, b: float) -> float:
    """ln(e^a + e^b) without overflow."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))
