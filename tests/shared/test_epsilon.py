"""Every epsilon formula against brute-force enumeration of the mechanism, to 1e-9."""

import math
from functools import cache
from itertools import pairwise

import pytest

from hubbub.shared.encode import NULL, Bit, Bloom, Bucket, Encoding, OneHot, Rounding
from hubbub.shared.response import Response
from shared.brute_force import outputs, worst_ratio

RAPPOR = [Response.rappor(0.5, 0.5, 0.75), Response.rappor(0.45, 0.39, 0.61), Response.rappor(0.75, 0.25, 0.75)]
ONE_TIME = [Response.rappor(0.5), Response.rappor(0.9)]
ODD = [Response(60000, 100, 65000, 3), Response(2, 1, 65536, 0), Response(65535, 1, 40000, 39999)]

ENCODINGS: list[Encoding] = [
    *(Bloom(bits, hashes, 2) for bits in range(1, 6) for hashes in range(1, bits + 1)),
    OneHot(("a", "b")),
    OneHot(("a", "b", "c", "d")),
    OneHot(tuple("abcdef")),
    Bit(),
    Rounding(0.0, 4.0, offsets=4),
    Rounding(-1.0, 1.0, offsets=8),
    Bucket((0.0, 1.0, 2.0, 3.0), sent=1, cohorts=4),
    Bucket((0.0, 1.0, 2.0, 3.0), sent=2, cohorts=2),
    Bucket((0.0, 1.0, 2.0, 3.0, 4.0), sent=4, cohorts=1),
]


def responses(encoding: Encoding) -> list[Response]:
    solved = [
        Response.least_variance(1.0, 2.0, encoding.contrasts),
        Response.least_variance(0.1, 6.0, encoding.contrasts),
    ]
    solved += [Response.one_time(1.5, encoding.contrasts), Response.flipping(2.0, 0.1, encoding.contrasts)]
    return [*RAPPOR, *ONE_TIME, *ODD, *solved]


def values_of(encoding: Encoding) -> list[object]:
    match encoding:
        case Bloom():
            return [f"string {number}" for number in range(4000)]
        case OneHot(categories=categories):
            return list(categories)
        case Rounding(low=low, high=high, offsets=grid):
            return [low + (high - low) * place / grid for place in range(grid + 1)]
        case Bucket(edges=edges):
            return [(low + high) / 2 for low, high in pairwise(edges)]
        case _:
            return [False, True]


def enumerated(encoding: Encoding, response: Response, reports: int) -> float:
    """The cohort is public, so each has its own worst case; the offset is secret, so it is averaged over."""
    table = outputs(response, encoding.size, reports)
    worst = 0.0
    for cohort in range(encoding.cohorts):
        worst = max(worst, worst_ratio(table[list(each)].mean(axis=0) for each in patterns(encoding, cohort)))
    return worst


@cache
def patterns(encoding: Encoding, cohort: int) -> set[tuple[int, ...]]:
    """What the values look like; two with the same bits at every offset are one and the same to the mechanism."""
    patterns = {
        tuple(encoding.encode(value, cohort, offset) for offset in range(encoding.offsets))
        for value in values_of(encoding)
    }
    return patterns | {(NULL,) * encoding.offsets}  # a device without a valid value reports, too


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
def test_one_report_and_a_lifetime_equal_enumeration(encoding: Encoding) -> None:
    for response in responses(encoding):
        assert response.epsilon(encoding.contrasts, 1) == pytest.approx(enumerated(encoding, response, 1), abs=1e-9)
        lifetime = enumerated(encoding, response, 0)
        assert response.epsilon(encoding.contrasts, math.inf) == pytest.approx(lifetime, abs=1e-9)


@pytest.mark.parametrize("encoding", [each for each in ENCODINGS if each.size <= 4], ids=repr)
def test_several_reports_of_one_value_equal_enumeration(encoding: Encoding) -> None:
    for reports in (2, 3) if encoding.size < 4 else (2,):
        for response in responses(encoding):
            exact = enumerated(encoding, response, reports)
            assert response.epsilon(encoding.contrasts, reports) == pytest.approx(exact, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("hashes", range(1, 4))
def test_larger_filters_and_more_reports_equal_enumeration(hashes: int) -> None:
    for encoding, reports in [(Bloom(6, hashes, 1), 1), (Bloom(6, hashes, 1), 2), (Bloom(4, hashes, 1), 3)]:
        for response in responses(encoding):
            exact = enumerated(encoding, response, reports)
            assert response.epsilon(encoding.contrasts, reports) == pytest.approx(exact, abs=1e-9)


def test_bloom_contrasts_are_those_of_real_strings() -> None:
    """All sets of 1 to h bits occur in every cohort, so nothing smaller than the claimed contrast would do."""
    for bits in range(1, 5):
        for hashes in range(1, bits + 1):
            bloom = Bloom(bits, hashes, 4)
            for cohort in range(4):
                found = {bloom.encode(f"string {number}", cohort, 0) for number in range(4000)}
                assert found == {each for each in range(1, 1 << bits) if each.bit_count() <= hashes}


def test_rappor_paper_numbers() -> None:
    """Erlingsson et al. 2014 and Chrome's setting, from FORMULAS F1 and F2 of the design."""
    two_hashes = Bloom(128, 2, 64).contrasts
    rappor = Response.rappor(0.5, 0.5, 0.75)
    after = [rappor.epsilon(two_hashes, reports) for reports in (1, 2, 3, 5, 10, 20, math.inf)]
    assert after == pytest.approx([1.0743, 2.017, 2.756, 3.656, 4.299, 4.393, 4.3944], abs=5e-4)
    assert Response.rappor(0.75, 0.5, 0.75).epsilon(two_hashes, 1) == pytest.approx(0.5343, abs=1e-4)
    assert Response.rappor(0.75, 0.5, 0.75).epsilon(two_hashes, math.inf) == pytest.approx(2.0433, abs=1e-4)
    assert Response.rappor(0.5, 0.25, 0.75).epsilon(two_hashes, 1) == pytest.approx(2.0433, abs=1e-4)


def test_closed_form_equals_the_maximum_over_all_numbers_of_ones() -> None:
    """The formula of the design searches s = 0..T; ours knows that the ends of that range are the worst."""
    for response in [*RAPPOR, *ODD[:1], Response.least_variance(0.5, 4.0, ((1, 1),))]:
        p1, q1, p2, q2 = (number / 65536 for number in (response.p1, response.q1, response.p2, response.q2))
        for reports in (1, 2, 7, 40):
            ratios = []
            for ones in range(reports + 1):
                a = p2**ones * (1 - p2) ** (reports - ones)
                b = q2**ones * (1 - q2) ** (reports - ones)
                ratios.append(math.log((p1 * a + (1 - p1) * b) / (q1 * a + (1 - q1) * b)))
            assert response.epsilon(((3, 3),), reports) == pytest.approx(3 * (max(ratios) - min(ratios)), rel=1e-9)


def test_output_perturbation_numbers() -> None:
    """FORMULAS F7: epsilon 1 with gamma .05, .1, .2."""
    single = Bit().contrasts
    found = [Response.flipping(1.0, gamma, single).epsilon(single, 1) for gamma in (0.05, 0.1, 0.2)]
    assert found == pytest.approx([0.886, 0.776, 0.569], abs=1e-3)
