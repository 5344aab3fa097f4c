"""The two-stage randomised response: four probabilities, exact, and how to choose them.

    p1 = Pr[permanent bit 1 | encoded bit 1]     p2 = Pr[sent bit 1 | permanent bit 1]
    q1 = Pr[permanent bit 1 | encoded bit 0]     q2 = Pr[sent bit 1 | permanent bit 0]

They are integers over 2^16, rounded once, here, always towards more noise. The rounded numbers are the ones that are
drawn, that every epsilon is computed from and that the decoder inverts.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hubbub.shared.bernoulli import ONE, Step, random_step
from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hubbub.shared.encode import Contrast

MAX_EPSILON = 20.0
"""The largest epsilon one may ask for: odds of e^20 are certainty, and asking for more is a mistake."""

HALF = ONE // 2


@dataclass(frozen=True)
class Response:
    """A response that keeps some privacy for ever and lets some truth through; no other can be made."""

    p1: int
    q1: int
    p2: int
    q2: int

    permanent: Step = field(init=False, repr=False, compare=False)
    """The step whose answers are remembered."""
    instantaneous: Step = field(init=False, repr=False, compare=False)
    """The step that is drawn anew for every report."""

    def __post_init__(self) -> None:
        if not 0 < self.q1 < self.p1 < ONE:
            raise ParameterError(
                f"permanent response: p1 = {self.p1}/{ONE}, q1 = {self.q1}/{ONE}; allowed: 0 < q1 < p1 < 1, "
                "or the answer says nothing, or tells the truth for ever"
            )
        if not 0 <= self.q2 < self.p2 <= ONE:
            raise ParameterError(
                f"instantaneous response: p2 = {self.p2}/{ONE}, q2 = {self.q2}/{ONE}; allowed: 0 <= q2 < p2 <= 1, "
                "or the answer says nothing"
            )
        object.__setattr__(self, "permanent", random_step(self.p1, self.q1))
        object.__setattr__(self, "instantaneous", random_step(self.p2, self.q2))

    def __reduce__(self) -> tuple[type[Response], tuple[int, int, int, int]]:
        # The steps are functions, which do not travel to another process; they are made anew there.
        return Response, (self.p1, self.q1, self.p2, self.q2)

    @classmethod
    def rappor(cls, f: float, p: float = 0.0, q: float = 1.0) -> Response:
        """RAPPOR's own parameters (Erlingsson et al. 2014): f for the permanent step, p and q for the instantaneous.

        A permanent 1 is sent as 1 with probability q, a permanent 0 with probability p, not the other way round.
        Without p and q it is the one-time variant.
        """
        _require("f", f, 0 < f < 1, "a number above 0 and below 1")
        _require("p", p, 0 <= p < 1, "a number from 0 to below 1")
        _require("q", q, p < q <= 1, "a number above p and up to 1")
        lie = _up(f / 2)
        return cls(p1=ONE - lie, q1=lie, p2=_down(q), q2=_up(p))

    @classmethod
    def least_variance(cls, report: float, lifetime: float, contrasts: tuple[Contrast, ...]) -> Response:
        """The least noisy response that spends `report` on one report and `lifetime` on all reports of one value.

        For encodings where two values differ in pairs of bits: p1 = 1/2 and q2 = 1 - p2. The one-report variance is
        that of optimal unary encoding (Wang et al. 2017) at `report`, whatever the lifetime. Where they differ in a
        single bit, both steps are symmetric.
        """
        _require_epsilon("lifetime", lifetime)
        _require("report", report, 0 < report < lifetime, "a number above 0 and below lifetime")
        p1, q1 = _permanent(lifetime, contrasts)
        p2 = _last(
            range(HALF + 1, ONE),
            lambda p2: cls(p1, q1, p2, ONE - p2).epsilon(contrasts, reports=1) <= report,
            f"report = {report}",
        )
        return cls(p1, q1, p2, ONE - p2)

    @classmethod
    def classic(cls, report: float, lifetime: float, contrasts: tuple[Contrast, ...]) -> Response:
        """RAPPOR's parameters for two given epsilons: p = 1/2 as in the paper while that can reach `report`, or 1 - q.

        At (1.0743, 4.3944) with two hashes it is the paper's own f = 1/2, p = 1/2, q = 3/4. For comparison only: the
        least-variance response is better at every point.
        """
        _require_epsilon("lifetime", lifetime)
        _require("report", report, 0 < report < lifetime, "a number above 0 and below lifetime")
        p1 = _symmetric(lifetime, contrasts)
        half_suffices = cls(p1, ONE - p1, ONE, HALF).epsilon(contrasts, reports=1) >= report
        p2 = _last(
            range(HALF + 1, ONE),
            lambda p2: cls(p1, ONE - p1, p2, HALF if half_suffices else ONE - p2).epsilon(contrasts, 1) <= report,
            f"report = {report}",
        )
        return cls(p1, ONE - p1, p2, HALF if half_suffices else ONE - p2)

    @classmethod
    def one_time(cls, epsilon: float, contrasts: tuple[Contrast, ...]) -> Response:
        """The least noisy response for a value that is reported once: the permanent answer is sent as it is."""
        _require_epsilon("epsilon", epsilon)
        p1, q1 = _permanent(epsilon, contrasts)
        return cls(p1, q1, p2=ONE, q2=0)

    @classmethod
    def flipping(cls, epsilon: float, gamma: float, contrasts: tuple[Contrast, ...]) -> Response:
        """Microsoft's response (Ding et al. 2017): a symmetric memoised bit, flipped at each report with chance gamma.

        One-bit mean and dBitFlip with d = 1 spend all of epsilon on their one bit, dBitFlip with more bits half of it
        on each of the two that can differ.
        """
        _require_epsilon("epsilon", epsilon)
        _require("gamma", gamma, 0 <= gamma < 0.5, "a number from 0 to below 0.5")
        p1 = _symmetric(epsilon, contrasts)
        flip = _up(gamma)
        return cls(p1, ONE - p1, p2=ONE - flip, q2=flip)

    @property
    def is_one_time(self) -> bool:
        """Whether the permanent answer is sent unchanged."""
        return self.p2 == ONE and self.q2 == 0

    @property
    def truth_is_sent(self) -> float:
        """P = Pr[sent bit 1 | encoded bit 1], exact: its numerator over 2^32 fits a float."""
        return (self.p1 * self.p2 + (ONE - self.p1) * self.q2) / ONE**2

    @property
    def noise_is_sent(self) -> float:
        """Q = Pr[sent bit 1 | encoded bit 0], exact."""
        return (self.q1 * self.p2 + (ONE - self.q1) * self.q2) / ONE**2

    @property
    def variance(self) -> float:
        """Variance of one device's debiased bit that is truly 0, the usual case: Q(1 - Q)/(P - Q)^2."""
        return self.noise_is_sent * (1 - self.noise_is_sent) / (self.truth_is_sent - self.noise_is_sent) ** 2

    @property
    def change_epsilon(self) -> float:
        """The most that one report can tell about a permanent bit: what hides that a value changed, and when."""
        p2, q2 = self.p2 / ONE, self.q2 / ONE
        return max(math.log(p2 / q2), math.log((1 - q2) / (1 - p2))) if q2 > 0 and p2 < 1 else math.inf

    def evidence(self, reports: float) -> tuple[float, float]:
        """How strongly some number of reports of one bit can speak for its being set, and for its being clear.

        Natural logarithms of the largest likelihood ratios. After T reports the one for a set bit belongs to T ones,
        the one for a clear bit to T zeros, because the ratio grows with the number of ones; `math.inf` reports leave
        the permanent bit bare.
        """
        p1, q1, p2, q2 = self.p1 / ONE, self.q1 / ONE, self.p2 / ONE, self.q2 / ONE
        ones = (q2 / p2) ** reports
        zeros = ((1 - p2) / (1 - q2)) ** reports
        for_set = math.log((p1 + (1 - p1) * ones) / (q1 + (1 - q1) * ones))
        for_clear = math.log((1 - q1 + q1 * zeros) / (1 - p1 + p1 * zeros))
        return for_set, for_clear

    def epsilon(self, contrasts: tuple[Contrast, ...], reports: float) -> float:
        """Exact epsilon of some number of reports of one value (`math.inf`: of a lifetime of them)."""
        for_set, for_clear = self.evidence(reports)
        return max(a * for_set + b * for_clear for a, b in contrasts)


def _permanent(epsilon: float, contrasts: tuple[Contrast, ...]) -> tuple[int, int]:
    """The permanent step of least variance: 1/2 against 1/(e^epsilon + 1) for pairs of bits, else symmetric."""
    if not all(min(contrast) for contrast in contrasts):
        p1 = _symmetric(epsilon, contrasts)
        return p1, ONE - p1
    noise = _last(
        range(HALF - 1, 0, -1),
        lambda q1: Response(HALF, q1, ONE, 0).epsilon(contrasts, math.inf) <= epsilon,
        f"epsilon = {epsilon}",
    )
    return HALF, noise


def _symmetric(epsilon: float, contrasts: tuple[Contrast, ...]) -> int:
    """The chance that a bit is remembered as it is, of a permanent step that treats 0 and 1 alike."""
    return _last(
        range(HALF + 1, ONE),
        lambda p1: Response(p1, ONE - p1, ONE, 0).epsilon(contrasts, math.inf) <= epsilon,
        f"epsilon = {epsilon}",
    )


def _last(numerators: range, within: Callable[[int], bool], target: str) -> int:
    """The last of some numerators, ordered from most noise to least, that is still within the target epsilon."""
    count = bisect_left(numerators, True, key=lambda numerator: not within(numerator))
    if count == 0:
        raise ParameterError(f"{target} is too small: it needs probabilities finer than 1/{ONE}; allowed: a larger one")
    return numerators[count - 1]


def _up(probability: float) -> int:
    return math.ceil(probability * ONE)


def _down(probability: float) -> int:
    return math.floor(probability * ONE)


def _require_epsilon(name: str, value: float) -> None:
    _require(name, value, 0 < value <= MAX_EPSILON, f"a number above 0 and up to {MAX_EPSILON:g}")


def _require(name: str, value: float, holds: bool, allowed: str) -> None:
    if not holds:
        raise ParameterError(f"{name} = {value}; allowed: {allowed}")
