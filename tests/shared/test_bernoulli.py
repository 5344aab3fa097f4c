"""Random vectors are exact: every possible draw is enumerated, and counts are compared, not frequencies."""

import itertools

import pytest

from hubbub.shared.bernoulli import ONE, Draw, random_step

THRESHOLDS = [1, 2, 255, 256, 257, 4096, 21845, 32767, 32768, 32769, 49152, 65279, 65280, 65281, 65534, 65535]


def fixed(randomness: bytes) -> Draw:
    def draw(length: int) -> bytes:
        assert length == len(randomness)
        return randomness

    return draw


def needed(when_set: int, when_clear: int, size: int) -> int:
    asked: list[int] = []

    def draw(length: int) -> bytes:
        asked.append(length)
        return bytes(length)

    random_step(when_set, when_clear)(0, size, draw)
    [length] = asked
    return length


def all_numbers(length: int) -> list[bytes]:
    return [number.to_bytes(length, "big") for number in range(256**length)]


@pytest.mark.parametrize("when_set", [*THRESHOLDS, ONE])
@pytest.mark.parametrize("when_clear", [0, 1, 256, 1179, 17061])
def test_many_bits_over_all_numbers(when_set: int, when_clear: int) -> None:
    """Of all 2^16 numbers, or 2^8 high bytes, exactly the stated ones give a 1, for set and for clear bits."""
    length = 1 if when_set % 256 == when_clear % 256 == 0 else 2
    numbers = all_numbers(length)
    size, scale = len(numbers), ONE // len(numbers)
    assert needed(when_set, when_clear, size) == length * size
    # The first number decides over the last bit: those of the smallest numbers are the leading digits.
    draw = fixed(b"".join(bytes(number[place] for number in numbers) for place in range(length)))
    step = random_step(when_set, when_clear)
    every = (1 << size) - 1

    def below(threshold: int) -> int:
        return every ^ every >> threshold // scale

    assert step(0, size, draw) == below(when_clear)
    flipped = when_set + when_clear == ONE
    assert step(every, size, draw) == (every ^ below(when_clear) if flipped else below(max(when_set, when_clear)))


@pytest.mark.parametrize(("when_set", "when_clear"), [(48475, 17061), (32769, 1179), (49152, 256), (ONE, 1)])
@pytest.mark.unmeasured
def test_one_bit_over_all_numbers(when_set: int, when_clear: int) -> None:
    """One bit by itself comes out as 1 for as many numbers as stated."""
    step = random_step(when_set, when_clear)
    length = needed(when_set, when_clear, 1)
    draws = [fixed(number) for number in all_numbers(length)]
    scale = ONE // len(draws)
    assert scale * sum(step(0, 1, draw) for draw in draws) == when_clear
    assert scale * sum(step(1, 1, draw) for draw in draws) == when_set


@pytest.mark.parametrize(("when_set", "when_clear"), [(49152, 16384), (49152, 32768), (ONE, 0), (256, 0)])
@pytest.mark.unmeasured
def test_two_bits_are_independent_over_all_high_bytes(when_set: int, when_clear: int) -> None:
    """Joint counts over all 2^16 pairs of high bytes are products, for every input."""
    step = random_step(when_set, when_clear)
    for bits in range(4):
        counts = [0] * 4
        for pair in itertools.product(range(256), repeat=2):
            counts[step(bits, 2, fixed(bytes(pair)))] += 1
        chances = [(when_set if bits >> bit & 1 else when_clear) // 256 for bit in range(2)]
        for output in range(4):
            expected = 1
            for bit, chance in enumerate(chances):
                expected *= chance if output >> bit & 1 else 256 - chance
            assert counts[output] == expected


def test_many_bits_at_once_equal_bit_by_bit() -> None:
    """The whole-vector arithmetic gives what comparing number by number gives, undecided high bytes included."""
    import random

    rng = random.Random(2026)
    for size in (1, 3, 8, 13, 128, 4096):
        for when_set, when_clear in [
            (48475, 17061),
            (32768, 1179),
            (65535, 1),
            (ONE, 300),
            (49152, 32768),
            (49152, 16384),
        ]:
            step = random_step(when_set, when_clear)
            length = needed(when_set, when_clear, size)
            for _ in range(40):
                # Few distinct bytes, among them those of the thresholds, so that the low bytes really decide.
                alphabet = [when_set >> 8 & 255, when_clear >> 8, 0, 255, when_set & 255, rng.randrange(256)]
                draw = bytes(rng.choices(alphabet, k=length))
                bits = rng.getrandbits(size)
                expected = 0
                for bit in range(size):
                    place = size - 1 - bit
                    low = draw[size + place] if length == 2 * size else 0
                    number = 256 * draw[place] + low
                    if when_set + when_clear == ONE:
                        answer = (bits >> bit & 1) ^ (number < when_clear)
                    else:
                        answer = number < (when_set if bits >> bit & 1 else when_clear)
                    expected |= answer << bit
                assert step(bits, size, fixed(draw)) == expected
