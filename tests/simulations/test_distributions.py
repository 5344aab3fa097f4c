"""Distributions: shapes that sum to one, whole numbers that sum up, and CSV files whose faults are told."""

from pathlib import Path

import numpy as np
import pytest

from hubbub.shared.errors import ParameterError
from hubbub.simulations.distributions import DISTRIBUTIONS, counts_of, normal_shares, read_truth, shares


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("number", [1, 2, 100])
def test_shares_sum_to_one(name: str, number: int) -> None:
    spread = shares(name, number)
    assert len(spread) == number
    assert (spread > 0).all()
    assert spread.sum() == pytest.approx(1)


def test_shapes() -> None:
    assert shares("uniform", 4).tolist() == [0.25] * 4
    zipf = shares("zipf", 100)
    assert zipf[0] / zipf[9] == pytest.approx(10)
    assert shares("zipf1.5", 100)[0] / shares("zipf1.5", 100)[3] == pytest.approx(8)
    exponential = shares("exponential", 100)
    assert exponential[0] / exponential[20] == pytest.approx(np.e)
    assert shares("gauss", 100).argmax() == 49
    assert (shares("normal", 100) == normal_shares(50, 10)).all()


def test_the_normal_one_has_its_mean_and_deviation() -> None:
    spread, values = normal_shares(50, 10), np.arange(100)
    mean = spread @ values
    assert mean == pytest.approx(50, abs=1e-3)
    assert spread @ (values - mean) ** 2 == pytest.approx(100 + 1 / 12, rel=1e-3)  # rounding adds a twelfth


@pytest.mark.parametrize("devices", [1, 7, 1000, 10**15])
def test_whole_numbers_sum_up_and_stay_near(devices: int) -> None:
    spread = shares("zipf", 37)
    counts = counts_of(spread, devices)
    assert counts.sum() == devices
    assert (np.abs(counts - spread * devices) <= 1).all()


def test_an_unknown_one_is_told() -> None:
    with pytest.raises(ParameterError, match='distribution: "pareto" is none; allowed: uniform, gauss'):
        shares("pareto", 3)
    with pytest.raises(ParameterError, match="0 values are none; allowed: 1 and above"):
        shares("uniform", 0)


def test_a_csv_is_read(tmp_path: Path) -> None:
    file = tmp_path / "truth.csv"
    file.write_text('\ufeffvalue,count\nlight,10\n"dark, or so",20\n\nnone,0\n', encoding="utf-8")
    assert read_truth(file) == {"light": 10, "dark, or so": 20, "none": 0}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", r"line 1: is not the head; allowed: value,count"),
        ("light,10\n", r"line 1: is not the head"),
        ("value,count\nlight,-1\n", r"line 2: the count is not a whole number from 0 on"),
        ("value,count\nlight,1.5\n", r"line 2: the count is not a whole number"),
        ("value,count\nlight\n", r"line 2: has 1 cells; allowed: a value and a count"),
        ("value,count\na,1\na,2\n", r"line 3: the value was there before; allowed: each value once"),
        ("value,count\na,0\n", r"holds no device; allowed: at least one count above 0"),
        (f"value,count\na,{2**63}\n", r"do not sum up to a number of devices"),
        ('value,count\n"a,1\n', r"is not a CSV in UTF-8"),
        (b"value,count\n\xff,1\n", r"is not a CSV in UTF-8"),
    ],
)
def test_faults_of_a_csv_are_told_with_their_line(tmp_path: Path, text: str | bytes, fault: str) -> None:
    file = tmp_path / "truth.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ParameterError, match=fault) as told:
        read_truth(file)
    assert str(told.value).startswith(str(file))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"cannot be read: No such file"):
        read_truth(tmp_path / "none.csv")
