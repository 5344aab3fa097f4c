"""Errors found in well-known texts, each named, shown to be wrong, and shown not to be ours.

Expectations are exact: what a decoder would return on average, computed from the four probabilities, and likelihoods
by going through every output. docs/errata.md names these tests. More about rounding offsets is in test_rounding.py.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product

import pytest
from scipy import stats

from hubbub.shared.bernoulli import ONE
from hubbub.shared.composition import compose
from hubbub.shared.encode import Bloom, Rounding
from hubbub.shared.encode.encoding import ONE_BIT, TWO_BITS
from hubbub.shared.response import Response

RAPPOR = Response.rappor(0.5, 0.25, 0.75)
DEVICES, HOLDERS = 1000, 200
HASHES = 2
FIRST = (1,) * HASHES + (0,) * HASHES
SECOND = (0,) * HASHES + (1,) * HASHES
"""Two values of a Bloom filter that share no bit; bits that neither sets cancel out."""


def expected_ones(response: Response, holders: float, devices: float) -> float:
    return holders * response.truth_is_sent + (devices - holders) * response.noise_is_sent


def debiased(response: Response, ones: float, devices: float) -> float:
    return (ones - devices * response.noise_is_sent) / (response.truth_is_sent - response.noise_is_sent)


def likelihood(output: Iterable[int], value: Iterable[int], if_set: float, if_clear: float) -> float:
    """The chance of an output, bit by bit, where set bits come out as 1 with one chance and clear ones with another."""
    chances = (if_set if bit else if_clear for bit in value)
    return math.prod(chance if seen else 1 - chance for seen, chance in zip(output, chances, strict=True))


def largest_log_ratio(one: Sequence[int], other: Sequence[int], if_set: float, if_clear: float) -> float:
    """Epsilon between two values by its definition: the same output under both, the worst of all outputs."""
    return max(
        math.log(likelihood(output, one, if_set, if_clear) / likelihood(output, other, if_set, if_clear))
        for output in product((0, 1), repeat=len(one))
    )


def test_debiasing_returns_the_truth() -> None:
    for response in (RAPPOR, Response.least_variance(1.0, 4.0, TWO_BITS), Response.flipping(1.0, 0.1, ONE_BIT)):
        assert debiased(response, expected_ones(response, HOLDERS, DEVICES), DEVICES) == pytest.approx(HOLDERS)


def test_p_and_q_exchanged_in_the_instantaneous_step_return_everybody_else() -> None:
    """E1. A permanent 1 sent with p instead of q: the usual decoder then returns N - t."""
    p1, q1, p2, q2 = RAPPOR.p1 / ONE, RAPPOR.q1 / ONE, RAPPOR.q2 / ONE, RAPPOR.p2 / ONE
    swapped_truth, swapped_noise = p1 * p2 + (1 - p1) * q2, q1 * p2 + (1 - q1) * q2
    ones = HOLDERS * swapped_truth + (DEVICES - HOLDERS) * swapped_noise
    assert debiased(RAPPOR, ones, DEVICES) == pytest.approx(DEVICES - HOLDERS)


def test_the_lifetime_bound_that_lost_an_f() -> None:
    """E2. 2h ln((1 - f/2)/(1/2)) gives 1.622 at f = 1/2, h = 2, where enumeration finds 4.394."""
    assert 4 * math.log(0.75 / 0.5) == pytest.approx(1.622, abs=1e-3)
    assert largest_log_ratio(FIRST, SECOND, 0.75, 0.25) == pytest.approx(4.3944, abs=1e-4)
    assert Response.rappor(0.5).epsilon(((2, 2),), math.inf) == pytest.approx(4.3944, abs=1e-4)


def test_two_values_that_share_a_bit_do_not_reach_the_bound() -> None:
    """E3. If one of the two sets bit h + 1, too, which is the other's, one bit fewer speaks: 3.296 instead of 4.394."""
    sharing = (1,) * (HASHES + 1) + (0,) * (HASHES - 1)
    assert largest_log_ratio(sharing, SECOND, 0.75, 0.25) == pytest.approx(3 * math.log(3))
    assert 3 * math.log(3) == pytest.approx(3.296, abs=1e-3)


def test_no_string_sets_more_bits_than_it_has_hashes() -> None:
    """E3. A value with h + 1 bits is none of the two that are to be compared, nor of any others."""
    bloom = Bloom(bits=2 * HASHES, hashes=HASHES, cohorts=64)
    seen = {bloom.encode(text, cohort, 0).bit_count() for text in "abcdefgh" for cohort in range(64)}
    assert max(seen) == HASHES


def test_a_likelihood_without_the_exchange_gives_half_of_epsilon() -> None:
    """E3. If f/2 and 1 - f/2 stay where they are for the first h bits, these cancel out: 2.197 instead of 4.394.

    What is then written down is the chance under a value that sets all 2h bits, and no string does.
    """
    unexchanged = (1,) * (2 * HASHES)
    assert largest_log_ratio(unexchanged, FIRST, 0.75, 0.25) == pytest.approx(HASHES * math.log(3))
    assert largest_log_ratio(SECOND, FIRST, 0.75, 0.25) == pytest.approx(2 * HASHES * math.log(3))
    assert HASHES * math.log(3) == pytest.approx(2.197, abs=1e-3)


@pytest.mark.parametrize("f", [0.1, 0.5, 0.75])
def test_the_exponent_of_the_likelihood_ratio(f: float) -> None:
    """E4. Twice (ones among the first value's bits less ones among the second's), for each of the outputs."""
    if_set, if_clear = 1 - f / 2, f / 2
    for output in product((0, 1), repeat=2 * HASHES):
        ratio = likelihood(output, FIRST, if_set, if_clear) / likelihood(output, SECOND, if_set, if_clear)
        exponent = 2 * (sum(output[:HASHES]) - sum(output[HASHES:]))
        assert ratio == pytest.approx((if_set / if_clear) ** exponent)


def test_one_report_has_an_epsilon_of_its_own() -> None:
    """E5. h ln(P(1 - Q)/(Q(1 - P))): 1.074 at f = 1/2, p = 1/2, q = 3/4, a quarter of the lifetime's."""
    response = Response.rappor(0.5, 0.5, 0.75)
    by_enumeration = largest_log_ratio(FIRST, SECOND, response.truth_is_sent, response.noise_is_sent)
    assert by_enumeration == pytest.approx(1.0743, abs=1e-4)
    assert response.epsilon(((HASHES, HASHES),), 1) == pytest.approx(by_enumeration)


def test_odds_of_two_outputs_are_not_epsilon() -> None:
    """E6. A device that says 1 nine times of ten whatever its value has odds of nine, and reveals nothing at all."""
    always_alike = Response(58983, 58982, ONE, 0)
    assert always_alike.epsilon(ONE_BIT, 1) < 1e-3
    assert math.log(0.9 / 0.1) > 2


def test_one_bit_mean_averaged_without_debiasing() -> None:
    """E7. Numbers of 10 in [0, 10] at epsilon 1: raw bits average to 7.3, debiased ones to 10."""
    response = Response.one_time(1.0, ONE_BIT)
    ones = expected_ones(response, DEVICES, DEVICES)
    assert 10 * ones / DEVICES == pytest.approx(10 * math.e / (math.e + 1), abs=1e-3)
    assert 10 * debiased(response, ones, DEVICES) / DEVICES == pytest.approx(10)


def test_the_average_of_raw_bits_is_no_mean() -> None:
    """E7. Numbers of 5 in [0, 10]: half of the bits are set before the noise, and half after it, whatever the range."""
    response = Response.one_time(1.0, ONE_BIT)
    ones = expected_ones(response, DEVICES / 2, DEVICES)
    assert ones / DEVICES == pytest.approx(0.5, abs=1e-4)
    assert 10 * debiased(response, ones, DEVICES) / DEVICES == pytest.approx(5)


def test_offsets_that_round_without_bias() -> None:
    """E8. {0..m-1} with "low if x + a < m", and {1..m} with "low if x + a <= m"; {1..m-1} falls short by up to 1."""
    grid = 10
    for x in range(grid + 1):
        assert Fraction(grid * sum(x + a >= grid for a in range(grid)), grid) == x
        assert Fraction(grid * sum(x + a > grid for a in range(1, grid + 1)), grid) == x
    too_few = [Fraction(grid * sum(x + a > grid for a in range(1, grid)), grid - 1) - x for x in range(1, grid + 1)]
    assert too_few == [Fraction(-(grid - x), grid - 1) for x in range(1, grid + 1)]
    assert min(too_few) == -1


def test_memoised_bits_of_two_roundings_cost_twice() -> None:
    """E9. One round costs epsilon. Low then high, or high then low: two memoised bits are seen, and both speak."""
    response = Response.one_time(1.0, ONE_BIT)
    if_high, if_low = response.p1 / ONE, response.q1 / ONE
    assert largest_log_ratio((1,), (0,), if_high, if_low) == pytest.approx(1, abs=1e-3)
    assert largest_log_ratio((0, 1), (1, 0), if_high, if_low) == pytest.approx(2, abs=1e-3)


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
def test_an_epsilon_of_one_round_does_not_stand_for_all(rounds: int) -> None:
    """E9. Two numbers that go up and down in turn, and never alike, over some rounds, memoised and with no fresh noise.

    What is seen is two memoised bits, one for each rounded value, again and again: epsilon is 1 after the first round
    and 2 ever after, where the theorem as we noted it has 1.
    """
    response = Response.one_time(1.0, ONE_BIT)
    if_high, if_low = response.p1 / ONE, response.q1 / ONE

    def chance(seen: tuple[int, ...], first: int) -> float:
        """Of what is seen over all rounds, if rounded values alternate, beginning with the high one or the low one."""
        total = 0.0
        for high, low in product((0, 1), repeat=2):
            shown = tuple((low, high)[(first + number) % 2] for number in range(rounds))
            drawn = (if_high if high else 1 - if_high) * (if_low if low else 1 - if_low)
            total += drawn * (shown == seen)
        return total

    possible = [seen for seen in product((0, 1), repeat=rounds) if chance(seen, 0) > 0]
    epsilon = max(math.log(chance(seen, 0) / chance(seen, 1)) for seen in possible)
    assert epsilon == pytest.approx(1 if rounds == 1 else 2, abs=1e-3)


def test_a_change_of_memoised_bits_has_no_finite_epsilon_without_fresh_noise() -> None:
    """E9. A number that stays never shows two different bits; one that moves does, if its two memoised bits differ."""
    response = Response.one_time(1.0, ONE_BIT)
    if_high, if_low = response.p1 / ONE, response.q1 / ONE

    def shows_a_change(fresh: float, *, moved: bool) -> float:
        """The chance to see 0 and then 1, if each memoised bit is flipped by fresh noise with some chance."""
        pairs = product((0, 1), repeat=2) if moved else ((bit, bit) for bit in (0, 1))
        total = 0.0
        for first, second in pairs:
            low = if_low if first else 1 - if_low
            high = (if_high if second else 1 - if_high) if moved else 1.0
            total += low * high * (fresh if first else 1 - fresh) * (1 - fresh if second else fresh)
        return total

    assert shows_a_change(0, moved=False) == 0 < shows_a_change(0, moved=True)
    gamma = 0.1
    seen = math.log(shows_a_change(gamma, moved=True) / shows_a_change(gamma, moved=False))
    assert 0 < seen < math.log((1 - gamma) / gamma)


def test_a_second_crossing_reveals_the_speed() -> None:
    """E10. Rounded to multiples of m: the time between two crossings is m/speed for every offset. Ours cross once."""
    grid, speed = 100, 5
    for offset in range(grid):
        rounded = [(speed * day + offset) // grid for day in range(3 * grid // speed + 1)]
        crossings = [day for day in range(1, len(rounded)) if rounded[day] != rounded[day - 1]]
        assert {later - sooner for sooner, later in pairwise(crossings)} == {grid // speed}
    for offset in range(grid):
        bits = [Rounding(0.0, 3.0 * grid, offsets=grid).encode(speed * day, 0, offset) for day in range(61)]
        assert sum(bits[day] != bits[day - 1] for day in range(1, len(bits))) <= 1


def test_one_crossing_leaves_many_speeds_and_a_second_leaves_one() -> None:
    """E10. What an observer can rule out who sees no more than on which days the rounded number changes."""
    grid, speeds = 1000, range(2, 21)

    def crossings(speed: int, offset: int) -> list[int]:
        """The first days on which speed * day + offset has passed the grid once, and twice."""
        return [math.ceil((times * grid - offset) / speed) for times in (1, 2)]

    seen = crossings(5, offset=500)
    after_one = {speed for speed in speeds for offset in range(grid) if crossings(speed, offset)[0] == seen[0]}
    after_two = {speed for speed in speeds for offset in range(grid) if crossings(speed, offset) == seen}
    assert after_one == set(range(2, 11))
    assert after_two == {5}


@pytest.mark.parametrize(("alpha", "beta", "epsilon"), [(0.01, 0.05, 1.0), (0.001, 0.25, 0.1)])
def test_how_often_laplace_noise_exceeds_its_scale(alpha: float, beta: float, epsilon: float) -> None:
    """E11. Noise exceeds its scale 1/(epsilon n) in 36.8 % of the cases; it takes n >= ln(1/beta)/(alpha epsilon)."""
    assert 2 * stats.laplace.sf(1) == pytest.approx(0.3679, abs=1e-4)
    too_few = 1 / (alpha * epsilon)
    assert 2 * stats.laplace.sf(alpha, scale=1 / (epsilon * too_few)) == pytest.approx(0.3679, abs=1e-4)
    assert beta < 0.3679
    devices = math.log(1 / beta) / (alpha * epsilon)
    assert 2 * stats.laplace.sf(alpha, scale=1 / (epsilon * devices)) == pytest.approx(beta)


def test_the_exponent_of_a_tail_bound() -> None:
    """E12. Hoeffding: exp(-2 n t^2) bounds how often a share of n is off by t. A quarter more in the exponent does not.

    The tails are exact binomial ones, for a fair coin, where they are the heaviest.
    """
    sizes, errors = (10, 100, 1_000, 10_000), (0.02, 0.05, 0.1, 0.2)
    tails = {(n, t): stats.binom.sf(math.ceil(n * (0.5 + t)) - 1, n, 0.5) for n in sizes for t in errors}
    assert all(tail <= math.exp(-2 * n * t**2) for (n, t), tail in tails.items())
    broken = {key for key, tail in tails.items() if tail > math.exp(-2.5 * key[0] * key[1] ** 2)}
    assert broken >= {(10_000, 0.05), (1_000, 0.1)}
    without_square = {key for key, tail in tails.items() if tail > math.exp(-2 * key[0] * key[1])}
    assert without_square >= {(100, 0.02), (1_000, 0.05)}


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_the_expected_loss_of_randomised_response(epsilon: float) -> None:
    """E13. It is epsilon tanh(epsilon/2), the most of any; epsilon (e^epsilon - 1) is above twice that."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + 1)
    loss = truth * math.log(truth / (1 - truth)) + (1 - truth) * math.log((1 - truth) / truth)
    assert loss == pytest.approx(epsilon * math.tanh(epsilon / 2))
    assert epsilon * math.expm1(epsilon) > 2 * loss


@pytest.mark.parametrize(
    ("epsilon", "count", "advanced", "exact"),
    [(0.5, 30, 24.1, 13.95), (0.1, 365, 13.9, 10.31), (1.0, 100, 224.4, 83.5)],
)
def test_advanced_composition_is_loose(epsilon: float, count: int, advanced: float, exact: float) -> None:
    """E13. At delta = 10^-6 the textbook's total is above the true one, and twice even above the plain sum."""
    delta = 1e-6
    printed = epsilon * math.sqrt(2 * count * math.log(1 / delta)) + count * epsilon * math.expm1(epsilon)
    assert printed == pytest.approx(advanced, abs=0.05)
    assert compose([epsilon] * count, delta).totals["exact"] == pytest.approx(exact, abs=0.05)
    assert (printed > epsilon * count) is (epsilon >= 0.5)


def test_events_are_sets_of_outputs_and_not_outputs() -> None:
    """E14. With a delta, looking at one output after the other finds a tenth of what there is.

    A mechanism names one of ten people, each with a chance of 1 %, and mostly nobody; under the other input it never
    names anybody. Every output by itself keeps delta = 0.01. The set of the ten is seen with a chance of 0.1.
    """
    one, other = [0.01] * 10 + [0.9], [0.0] * 10 + [1.0]
    subsets = [[n for n, chosen in enumerate(choice) if chosen] for choice in product((0, 1), repeat=len(one))]

    def delta(events: Sequence[Sequence[int]]) -> float:
        return max(math.fsum(one[each] - math.e * other[each] for each in event) for event in events)

    assert delta([event for event in subsets if len(event) == 1]) == pytest.approx(0.01)
    assert delta(subsets) == pytest.approx(0.1)


def test_without_a_delta_single_outputs_are_enough() -> None:
    """E14. A ratio of sums is never above the largest of the ratios: here of all pairs of outputs."""
    outputs = product((0, 1), repeat=2 * HASHES)
    chances = [[likelihood(output, value, 0.75, 0.25) for value in (FIRST, SECOND)] for output in outputs]
    pairs = [math.log((a + c) / (b + d)) for (a, b), (c, d) in combinations(chances, 2)]
    assert max(pairs) <= largest_log_ratio(FIRST, SECOND, 0.75, 0.25) + 1e-12


def renyi(epsilon: float, order: float) -> float:
    """Renyi divergence of randomised response by its definition, ln(sum of p^a q^(1-a))/(a - 1)."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + 1)
    chances = [(truth, 1 - truth), (1 - truth, truth)]
    return math.log(math.fsum(p**order * q ** (1 - order) for p, q in chances)) / (order - 1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_divergence_of_renyi_by_its_definition(epsilon: float) -> None:
    """E15. It rises from the expected loss to epsilon. Without its divisor, or with its sign changed, it does not."""
    expected_loss = epsilon * math.tanh(epsilon / 2)
    orders = (1.0001, 1.5, 2.0, 8.0, 100.0)
    right = [renyi(epsilon, order) for order in orders]
    assert right == sorted(right)
    assert right[0] == pytest.approx(expected_loss, rel=1e-3)
    assert right[-1] == pytest.approx(epsilon, rel=0.02)
    assert right[-1] < epsilon
    undivided = [divergence * (order - 1) for divergence, order in zip(right, orders, strict=True)]
    assert undivided[0] < expected_loss / 1000
    assert undivided[-1] > 90 * epsilon
    assert max(divergence * (order - 1) / (1 - order) for divergence, order in zip(right, orders, strict=True)) < 0


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_concentrated_privacy_of_a_pure_epsilon_has_a_smaller_bound(epsilon: float) -> None:
    """E16. rho = epsilon^2/2 holds, and so does the smaller epsilon tanh(epsilon/2): no order exceeds that."""
    ratios = [renyi(epsilon, order) / order for order in (1.000001, 1.001, 1.1, 2.0, 11.0, 101.0)]
    tight = epsilon * math.tanh(epsilon / 2)
    assert max(ratios) == pytest.approx(tight, rel=1e-4)
    assert tight < epsilon**2 / 2


def test_from_renyi_to_epsilon_and_delta_less_is_enough() -> None:
    """E16. Adding ln(1/delta)/(a - 1) to a divergence holds, and is more than it takes at every order.

    For thirty times epsilon 0.5 and delta = 10^-6 the least of all orders is 14.94 that way; 14.35 is enough, and the
    exact total is 13.95.
    """
    epsilon, count, delta = 0.5, 30, 1e-6
    simple, better = [], []
    for order in (1 + step / 100 for step in range(10, 10_000)):
        total = count * renyi(epsilon, order)
        simple.append(total + math.log(1 / delta) / (order - 1))
        better.append(total + math.log((order - 1) / order) - (math.log(delta) + math.log(order)) / (order - 1))
    assert all(less < more for less, more in zip(better, simple, strict=True))
    assert min(better) == pytest.approx(14.35, abs=0.01)
    assert min(simple) == pytest.approx(14.94, abs=0.01)
    assert compose([epsilon] * count, delta).totals["exact"] == pytest.approx(13.95, abs=0.01)


def test_basic_rappor_decoded_without_debiasing() -> None:
    """Nobody holds the category, and 37.5 % of the raw bits are set all the same."""
    assert expected_ones(RAPPOR, 0, DEVICES) / DEVICES == pytest.approx(0.375)
    assert debiased(RAPPOR, expected_ones(RAPPOR, 0, DEVICES), DEVICES) == pytest.approx(0)


def test_f_rounded_by_the_client_and_not_by_the_decoder() -> None:
    """f = 0.3 drawn as 39/128 but decoded as 0.3 is off by a third of a percent; here one is drawn and decoded."""
    drawn, decoded = Response.rappor(39 / 128), Response.rappor(0.3)
    found = debiased(decoded, expected_ones(drawn, DEVICES, DEVICES), DEVICES)
    assert found / DEVICES == pytest.approx(0.9967, abs=2e-4)
    assert decoded.q1 == math.ceil(0.15 * ONE)
    assert decoded.noise_is_sent == decoded.q1 / ONE
