"""Counting many reports: each way and each engine counts what looking at every bit would."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.looking import Cohorts, by_looking, reports
from hubbub.collector.count import (
    ENGINES,
    Counter,
    Engine,
    Runs,
    beside,
    choice,
    compiled,
    count_bits,
    find_runs,
    kernels,
    plain,
    runs,
    scratch,
    slabs,
    stack,
    together,
)
from hubbub.shared import ParameterError


def cohorts_like(shape: str, number: int, seed: int) -> Cohorts:
    random = np.random.default_rng(seed)
    if shape == "none":
        return None
    if shape == "skewed":
        return (random.random(number) ** 8 * 300).astype(np.uint32)
    drawn = random.integers(0, {"few": 3, "sorted": 20, "many": 2 * number + 1}.get(shape, 20), number)
    return np.sort(drawn).astype(np.uint16) if shape == "sorted" else drawn


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way of counting for a few thousand reports already, with ends and beginnings within them."""
    for module, name, number in [
        (choice, "FEW_BYTES", 64),
        (choice, "PART_BYTES", 1 << 12),
        (choice, "PART_RUN", 64),
        (choice, "SUMMED_BYTES", 1 << 11),
        (choice, "AT_ONCE", 3),
        (choice, "MOST_SUMS", 7),
        (choice, "SUMMED_TOGETHER", 1 << 12),
        (choice, "SLAB_BYTES", 1 << 9),
        (choice, "LONG_BYTES", 1 << 13),
        (slabs, "SLAB_BYTES", 1 << 10),
        (beside, "STACK_BYTES", 1 << 14),
        (stack, "UNPACKED", 1 << 11),
        (stack, "SMALL_BYTES", 1 << 11),
        (plain, "AT_ONCE", 1 << 12),
        (choice, "SHORT_BYTES", 64),
        (together, "MANY", 100),
    ]:
        monkeypatch.setattr(module, name, number)


SHAPES = ("none", "few", "sorted", "mixed", "skewed", "many")
GROUPS = 40
"""Cohorts of reports that come in parts."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_way_counts_what_looking_does(engine: Engine, shape: str, small_parts: None) -> None:
    @settings(max_examples=15, deadline=None, derandomize=True)
    @given(bits=st.integers(1, 300), number=st.integers(0, 4000), seed=st.integers(0, 1 << 32))
    def check(bits: int, number: int, seed: int) -> None:
        packed, cohorts = reports(bits, number, seed), cohorts_like(shape, number, seed)
        counted = count_bits(packed, bits, cohorts, engine=engine)
        assert counted.dtype == np.int64
        np.testing.assert_array_equal(counted, by_looking(packed, bits, cohorts))

    check()


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_are_counted_as_if_they_came_at_once(engine: Engine, small_parts: None) -> None:
    """Sorted and mixed ones, few and many, with short runs and long ones of the same cohorts, in any order."""

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(
        bits=st.integers(1, 300),
        parts=st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(0, 3000)), max_size=6),
        seed=st.integers(0, 1 << 32),
    )
    def check(bits: int, parts: list[tuple[str, int]], seed: int) -> None:
        counter = Counter(bits, GROUPS, engine=engine)
        right = np.zeros((GROUPS, bits), np.int64)
        for at, (shape, number) in enumerate(parts):
            packed, drawn = reports(bits, number, seed + at), cohorts_like(shape, number, seed + at)
            cohorts = np.zeros(number, np.int64) if drawn is None else drawn % GROUPS
            counter.add(packed, cohorts, find_runs(cohorts))
            looked = by_looking(packed, bits, cohorts)
            right[: len(looked)] += looked
        np.testing.assert_array_equal(counter.counts(), right)

    check()


@pytest.mark.parametrize("engine", ENGINES)
def test_files_of_many_cohorts_are_counted_one_after_the_other(engine: Engine) -> None:
    """With the sizes as they are: long runs, shorter ones, which stay in sums, and those that are laid side by side."""
    sizes = [200_000, 20_000, 9_000, 4_000, 1_000, 40, 3]
    counter = Counter(128, len(sizes), engine=engine)
    right = np.zeros((len(sizes), 128), np.int64)
    for seed in range(4):
        cohorts = np.repeat(np.arange(len(sizes)), sizes[seed:] + sizes[:seed])
        packed = reports(128, len(cohorts), seed)
        counter.add(packed, cohorts, find_runs(cohorts))
        right += by_looking(packed, 128, cohorts)
    np.testing.assert_array_equal(counter.counts(), right)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bits", [1, 7, 64, 65, 1000, 4096])
def test_reports_of_every_size_are_counted(engine: Engine, bits: int) -> None:
    packed = reports(bits, 3000)
    for shape in ("none", "sorted", "mixed"):
        cohorts = cohorts_like(shape, len(packed), 2)
        np.testing.assert_array_equal(
            count_bits(packed, bits, cohorts, engine=engine), by_looking(packed, bits, cohorts)
        )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bits", [8, 128])
def test_millions_of_ones_do_not_overflow(engine: Engine, bits: int) -> None:
    """All counters are as full as they can be, also those of a byte, in one long run and in one of mixed cohorts."""
    number = 1 << 21  # of 16 bytes each, that is a whole number of the largest slabs
    packed = np.full((number, bits // 8), 255, np.uint8)
    assert count_bits(packed, bits, engine=engine).tolist() == [number] * bits
    cohorts = np.zeros(number, np.uint8)
    cohorts[0] = 1
    assert count_bits(packed, bits, cohorts, engine=engine).tolist() == [[number - 1] * bits, [1] * bits]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 13, 16, 32])
@pytest.mark.parametrize("groups", [1, 7, 500])
def test_reports_are_brought_together_unchanged(width: int, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are no number, or a signalling one, where they are moved as numbers; few and many alike."""
    random = np.random.default_rng(width)
    packed = reports(8 * width, 3000)
    odd = np.frombuffer(
        np.array([0x7FF0000000000001, 0xFFF4000000000000, 0x8000000000000000], "<u8").tobytes(), np.uint8
    )
    packed[:600] = np.resize(odd, (600, width))
    cohorts = random.integers(0, groups, len(packed))
    for many in (100, 1 << 15):
        monkeypatch.setattr(together, "MANY", many)
        moved, found = together.bring_together(packed, cohorts, groups)
        assert moved.tobytes() == packed[np.argsort(cohorts, kind="stable")].tobytes()
        assert as_list(found) == as_list(Runs.of_sorted(np.sort(cohorts)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("many", [100, 1 << 15])
def test_reports_need_not_lie_together_nor_begin_at_a_word(
    engine: Engine, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "MANY", many)
    for bits in (24, 128):
        width = bits // 8
        memory = np.frombuffer(reports(8, 3 * 9000 * width + 3).tobytes(), np.uint8)
        odd = memory[3 : 3 + 9000 * width].reshape(9000, width)
        apart = memory[: 3 * 9000 * width].reshape(3 * 9000, width)[::-3]
        sideways = memory[: 9000 * width].reshape(width, 9000).T
        for packed in (odd, apart, sideways):
            for cohorts in (None, np.arange(9000) // 3000, np.arange(18000)[::2] % 7):
                before = packed.copy()
                counted = count_bits(packed, bits, cohorts, engine=engine)
                np.testing.assert_array_equal(counted, by_looking(packed, bits, cohorts))
                np.testing.assert_array_equal(packed, before)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_reports_have_no_ones(engine: Engine) -> None:
    nothing = np.zeros((0, 2), np.uint8)
    assert count_bits(nothing, 16, engine=engine).tolist() == [0] * 16
    assert count_bits(nothing, 16, np.zeros(0, np.int64), engine=engine).shape == (0, 16)


def test_cohorts_too_many_to_wait_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, cohorts = reports(128, 5000), cohorts_like("skewed", 5000, 3)
    monkeypatch.setattr(compiled, "MOST_BYTES", 1000)
    counted = count_bits(packed, 128, cohorts, engine="numba")
    np.testing.assert_array_equal(counted, by_looking(packed, 128, cohorts))


@pytest.mark.parametrize("number", [10, 5000])
def test_cohorts_that_are_none_are_refused(number: int) -> None:
    packed = reports(16, number)
    ordered = np.arange(number)
    refused: list[np.ndarray[Any, Any]] = [ordered - 1, ordered[::-1] - 1, ordered[:-1], ordered / 2]
    for wrong in refused:
        with pytest.raises(ParameterError, match="cohorts: has shape"):
            count_bits(packed, 16, wrong)
    with pytest.raises(ParameterError, match="packed: has shape"):
        count_bits(np.zeros((number, 0), np.uint8), 0)


KINDS = (np.uint8, np.int8, np.uint16, np.int64, np.uint32, np.uint64)


def as_list(found: Runs | None) -> list[tuple[int, ...]] | None:
    return None if found is None else list(zip(*(each.tolist() for each in found), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("long_run", [1, 1 << 30])  # all are searched for, or neighbours are compared
def test_runs_are_found_wherever_they_end(
    kind: type[np.integer], long_run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LONG_RUN", long_run)
    random = np.random.default_rng(5)
    for _ in range(200):
        sizes = random.integers(0, 9, 12) * random.integers(0, 2, 12)
        first = int(random.integers(0, 100))
        cohorts = np.repeat(np.arange(first, first + 12), sizes).astype(kind)
        ends = sizes.cumsum()
        right = [(first + at, end - size, end) for at, (size, end) in enumerate(zip(sizes, ends, strict=True)) if size]
        found = find_runs(cohorts)
        assert as_list(found) == right
        assert found is not None
        assert found.groups == (right[-1][0] + 1 if right else 0)
        assert found.by_cohort(200).tolist() == np.bincount(cohorts.astype(np.int64), minlength=200).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("long_run", [1, 64, 1 << 30])
def test_one_cohort_out_of_place_is_no_order(
    kind: type[np.integer], long_run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is: a search that takes the order for granted would pass over most places."""
    monkeypatch.setattr(runs, "LONG_RUN", long_run)
    in_order = np.repeat([2, 3, 3, 7], 75).astype(kind)
    assert as_list(find_runs(in_order)) == [(2, 0, 75), (3, 75, 225), (7, 225, 300)]
    for place in range(300):
        for other in (0, 2, 3, 5, 7, 9):
            cohorts = in_order.copy()
            cohorts[place] = other
            really = bool((np.diff(cohorts.astype(np.int64)) >= 0).all())
            assert (find_runs(cohorts) is not None) == really, (place, other)
    assert find_runs(np.array([-1] * 100)) is None
    assert find_runs(np.tile(in_order, 4)) is None  # many equal runs


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_cohorts_of_every_kind_of_number_are_counted(engine: Engine, kind: type[np.integer]) -> None:
    packed = reports(20, 5000)
    for cohorts in (np.arange(5000) // 250, np.arange(5000) // 50 % 20, np.array([19] + [0] * 4999)):
        counted = count_bits(packed, 20, cohorts.astype(kind), engine=engine)
        np.testing.assert_array_equal(counted, by_looking(packed, 20, cohorts))
        found = find_runs(cohorts.astype(kind))
        if found is not None:
            counter = Counter(20, len(counted), engine=engine)
            counter.add(packed, None, found)
            np.testing.assert_array_equal(counter.counts(), counted)


def test_memory_that_is_used_again_changes_nothing() -> None:
    """Reports of other widths and numbers, one after the other, in two threads at once."""
    cases = [(bits, number) for bits in (128, 7, 300) for number in (30_000, 2_000, 9_000)]

    def count_all(turn: int) -> None:
        for bits, number in cases[turn:] + cases[:turn]:
            packed, cohorts = reports(bits, number, turn), cohorts_like("sorted", number, turn)
            for _ in range(3):
                np.testing.assert_array_equal(count_bits(packed, bits, cohorts), by_looking(packed, bits, cohorts))

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(count_all, turn) for turn in range(4)]:
            done.result()


def test_memory_is_kept_for_each_thread_and_use_but_not_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = scratch.scratch("a", 1000)
    assert len(kept) == 1000
    assert np.shares_memory(kept, scratch.scratch("a", 10))
    assert not np.shares_memory(kept, scratch.scratch("b", 10))
    with ThreadPoolExecutor(1) as other:
        assert not np.shares_memory(kept, other.submit(scratch.scratch, "a", 10).result())
    monkeypatch.setattr(scratch, "KEPT_BYTES", 2000)
    large = scratch.scratch("a", 3000)
    assert len(large) == 3000
    assert not np.shares_memory(large, scratch.scratch("a", 3000))
    assert np.shares_memory(kept, scratch.scratch("a", 1000))


def test_an_engine_that_is_not_there_is_refused() -> None:
    with pytest.raises(ParameterError, match='engine: "cuda" is not known; allowed: numpy, numba'):
        count_bits(reports(8, 1), 8, engine="cuda")  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", [RuntimeError("cannot cache function: no locator available"), EOFError()])
def test_machine_code_that_cannot_be_kept_or_read_is_compiled(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def njit(signature: Any, *, cache: bool = False) -> Any:
        asked.append(cache)
        if cache:
            raise fault
        return compile_here(signature)

    compile_here = numba.njit
    packed, cohorts = reports(128, 5000), cohorts_like("skewed", 5000, 3)
    monkeypatch.setattr(numba, "njit", njit)
    kernels.mixed_adder.cache_clear()
    counted = count_bits(packed, 128, cohorts, engine="numba")
    kernels.mixed_adder.cache_clear()
    assert asked == [True, False]
    np.testing.assert_array_equal(counted, by_looking(packed, 128, cohorts))


def test_numba_is_imported_only_by_name_and_missed_in_one_line() -> None:
    program = """
import sys
sys.modules["numba"] = None
import numpy as np
from hubbub.collector.count import count_bits
from hubbub.shared import HubbubError
packed = np.ones((100_000, 1), np.uint8)
assert count_bits(packed, 1).tolist() == [100_000]
try:
    count_bits(packed, 1, engine="numba")
except HubbubError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == 'numba: is not installed: pip install "hubbub[fast]"; allowed without it: numpy\n'
