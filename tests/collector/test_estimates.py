"""Estimates as they are shown: in a terminal, a notebook, a file."""

import csv
import io
import json
import sys
import types

import msgspec
import numpy as np
import pytest

from collector.decoding import drawn, metric, string_metric
from hubbub.collector import Estimates, Tally, decode
from hubbub.collector.dashboard.tables import of_estimates
from hubbub.collector.pictures import of_estimates as draw_estimates

NASTY = '<script>alert("x")</script>'


def strings() -> Estimates:
    it = string_metric(32, 1, 16)
    tally = drawn(it, {NASTY: 0.7, "b": 0.3}, 100_000, np.random.default_rng(1))
    return decode(it, tally, candidates=[NASTY, "b", "absent"])


def mean() -> Estimates:
    it = metric("mean", "low = 0", "high = 10")
    return decode(it, drawn(it, {4.0: 1.0}, 10_000, np.random.default_rng(2)))


def histogram() -> Estimates:
    it = metric("histogram", "edges = [0, 10, 20]", "sent = 2")
    return decode(it, drawn(it, {5.0: 0.5, 15.0: 0.5}, 10_000, np.random.default_rng(3)))


def category() -> Estimates:
    it = metric("category", 'categories = ["a", "b"]')
    return decode(it, drawn(it, {"a": 1.0, "b": 0.0}, 10_000, np.random.default_rng(4)))


ALL = pytest.mark.parametrize("make", [strings, mean, histogram, category])


@ALL
def test_they_print_one_line_for_each_answer(make: "types.FunctionType") -> None:
    estimates: Estimates = make()
    lines = str(estimates).splitlines()
    assert lines[0].startswith(f"it version 1 ({estimates.kind}): ")
    assert "95 % interval" in lines[1]
    assert repr(estimates) == str(estimates)
    assert max(map(len, lines)) < 160


def test_strings_are_shown_with_what_was_found_and_what_was_not() -> None:
    text = str(strings())
    assert "(other)" in text
    assert "2 of 3 candidates found (fdr:0.1)" in text
    assert "absent" not in text.split("candidates found", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (strings, "(no valid value), part of (other)"),
        (histogram, "(no valid value)"),
        (category, "(no valid value)"),
    ],
)
def test_the_share_without_a_valid_value_is_the_last_row(make: "types.FunctionType", name: str) -> None:
    estimates: Estimates = make()
    [line] = [line.split(name)[1] for line in str(estimates).splitlines() if name in line]
    [number] = [estimates.no_value]
    assert number is not None
    assert line.split()[1] == f"{100 * number.estimate:.2f}"
    assert name in estimates._repr_html_()
    assert of_estimates(estimates).rows[-1][0] == name
    assert "of the reports hold no valid value" in draw_estimates(estimates).caption
    assert "valid" not in estimates.to_csv()


def test_a_mean_cannot_show_who_has_no_valid_value() -> None:
    assert mean().no_value is None
    assert "valid" not in str(mean())


@ALL
def test_notebooks_show_a_table_that_no_value_can_break(make: "types.FunctionType") -> None:
    shown = make()._repr_html_()
    assert shown.count("<table>") == 1
    assert "<script>" not in shown


@ALL
def test_a_dictionary_is_plain_json(make: "types.FunctionType") -> None:
    estimates: Estimates = make()
    plain = json.loads(json.dumps(estimates.to_dict(), allow_nan=False))
    alarms = plain.pop("alarms")
    assert alarms == list(estimates.alarms)
    assert msgspec.convert(plain, Estimates) == estimates


@ALL
def test_csv_holds_the_same_numbers(make: "types.FunctionType") -> None:
    estimates: Estimates = make()
    rows = list(csv.DictReader(io.StringIO(estimates.to_csv())))
    if estimates.kind == "mean":
        assert estimates.mean is not None
        assert float(rows[0]["estimate"]) == estimates.mean.estimate
    else:
        assert [row["value"] for row in rows] == [row.value for row in estimates.rows]
        assert [float(row["share"]) for row in rows] == [row.share for row in estimates.rows]


def test_pandas_gets_the_rows_if_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pandas is not among what we install: one that only remembers stands in for it."""
    frames: list[tuple[list[list[object]], list[str]]] = []
    pandas = types.ModuleType("pandas")
    pandas.DataFrame = lambda rows, columns: frames.append((rows, columns))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    category().to_pandas()
    [(rows, columns)] = frames
    assert columns[:3] == ["value", "count", "share"]
    assert [row[0] for row in rows] == ["a", "b"]


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        category().to_pandas()


def test_rows_are_found_by_their_value() -> None:
    estimates = strings()
    assert estimates["b"].value == "b"
    assert [row.value for row in estimates.detected] == [NASTY, "b"]
    with pytest.raises(KeyError):
        estimates["never asked about"]


def test_long_lists_are_cut_and_say_so() -> None:
    it = string_metric(128, 1, 64, "{ report = 6.0, lifetime = 8.0 }")
    names = [f"s{number}" for number in range(60)]
    tally = drawn(it, dict.fromkeys(names, 1 / 60), 1_000_000, np.random.default_rng(5))
    assert "60 of 60 candidates found (fdr:0.1); 10 more not shown" in str(decode(it, tally, candidates=names))


def test_an_empty_mean_is_shown_as_one() -> None:
    it = metric("mean", "low = 0", "high = 10")
    assert "0 reports" in str(decode(it, Tally.empty(it)))
