"""`hubbub decode-rappor`: google/rappor's own files, read strictly and decoded.

Data are drawn with fixed seeds. Where a test speaks of shares, it allows six standard errors for each of at most a
dozen strings, and where it speaks of false ones, a family-wise error of 10^-7: a chance below 10^-6 to fail by luck.
"""

import csv
import io
import json
import math
import os
import pty
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from hubbub.collector.decode import google_files
from hubbub.collector.decode.google import decode_rappor
from hubbub.collector.decode.google_files import Parameters, read_counts, read_map, read_parameters
from hubbub.shared.errors import ParameterError
from told import Run, Told, run_here

HEADER = "string,estimate,std_error,proportion,prop_std_error,prop_low_95,prop_high_95,p_value"
SURE = ("--family-wise", "0.0000001")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line, in this process."""
    return run_here("decode-rappor", capsys, monkeypatch)


@dataclass(frozen=True)
class World:
    """Files of google/rappor, and the truth behind them."""

    folder: Path
    shares: dict[str, float]
    map_: list[list[int]]
    strings: list[str]

    @property
    def arguments(self) -> tuple[object, ...]:
        return "--params", self.folder / "p.csv", "--counts", self.folder / "c.csv", "--map", self.folder / "m.csv"

    def rewrite(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def lines(rows: list[list[object]], end: str = "\n") -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue()


def simulate(
    folder: Path,
    shares: dict[str, float],
    absent: int = 40,
    reports: int = 2_000_000,
    known: Parameters | None = None,
    seed: int = 1,
    empty: tuple[int, ...] = (),
) -> World:
    """Draw a random map and the counts of so many reports, bit for bit as RAPPOR's clients would make them."""
    known = known or Parameters(64, 2, 16, 0.5, 0.75, 0.5)
    k, h, m = known.k, known.h, known.m
    rng = np.random.default_rng(seed)
    strings = [*shares, *(f"absent{number}" for number in range(absent))]
    bits = rng.integers(0, k, (len(strings), m, h))
    numbers = rng.multinomial(reports, np.full(m, 1 / m))
    numbers[list(empty)] = 0
    truth = (1 - known.f / 2) * known.q + known.f / 2 * known.p
    lie = (1 - known.f / 2) * known.p + known.f / 2 * known.q
    counts: list[list[object]] = []
    for cohort in range(m):
        holding = np.zeros(k, np.int64)
        for string, number in enumerate(rng.multinomial(numbers[cohort], list(shares.values()))):
            holding[np.unique(bits[string, cohort])] += number
        ones = rng.binomial(holding, truth) + rng.binomial(numbers[cohort] - holding, lie)
        counts.append([int(numbers[cohort]), *ones.tolist()])
    indices = (bits + k * np.arange(m)[:, None] + 1).reshape(len(strings), m * h).tolist()
    world = World(folder, shares, indices, strings)
    world.rewrite("p.csv", f"k,h,m,p,q,f\n{k},{h},{m},{known.p!r},{known.q!r},{known.f!r}\n")
    world.rewrite("c.csv", lines(counts))
    world.rewrite("m.csv", lines([[string, *row] for string, row in zip(strings, indices, strict=True)]))
    return world


SHARES = {f"v{number}": number / 36 for number in range(1, 9)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return simulate(tmp_path, SHARES)


def rows(told: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(told)))


def check_shares(told: Told, world: World, reports: int) -> None:
    assert told.code == 0, told.err
    assert told.out.splitlines()[0] == HEADER
    found = rows(told.out)
    assert {row["string"] for row in found} == set(world.shares)
    proportions = [float(row["proportion"]) for row in found]
    assert proportions == sorted(proportions, reverse=True)
    assert sum(proportions) <= 1 + 1e-9
    for row in found:
        proportion, error = float(row["proportion"]), float(row["prop_std_error"])
        assert abs(proportion - world.shares[row["string"]]) < 6 * error + 1e-6
        assert 0 < error < 0.1
        assert math.isclose(float(row["estimate"]), proportion * reports)
        assert math.isclose(float(row["std_error"]), error * reports)
        assert 0 <= float(row["prop_low_95"]) <= proportion <= float(row["prop_high_95"]) <= 1
        assert 0 <= float(row["p_value"]) < 1e-6


class TestResults:
    def test_the_true_strings_come_out_with_their_shares(self, run: Run, world: World) -> None:
        check_shares(run(*world.arguments, *SURE), world, 2_000_000)

    def test_the_same_files_give_the_same_bytes_in_another_process(self, run: Run, world: World) -> None:
        command = [str(Path(sys.executable).with_name("hubbub")), "decode-rappor", *map(str, world.arguments)]
        done = subprocess.run(command, capture_output=True, check=True)
        assert done.stdout.decode() == run(*world.arguments).out == run(*world.arguments).out

    def test_line_ends_quotes_order_of_columns_and_a_byte_order_mark_do_not_matter(
        self, run: Run, world: World
    ) -> None:
        before = run(*world.arguments).out
        for name in ("p.csv", "c.csv", "m.csv"):
            path = world.folder / name
            content = path.read_bytes().replace(b"\n", b"\r\n")
            path.write_bytes(b"\xef\xbb\xbf" + content + b"\r\n  \r\n")
        assert run(*world.arguments).out == before
        world.rewrite("p.csv", '"f","q","p","m","h","k"\n0.5,"0.75",5e-1,16,2.0,64')
        spelled = (world.folder / "c.csv").read_text(encoding="utf-8-sig").split()
        world.rewrite("c.csv", "\n".join('"' + line.replace(",", '","') + '"' for line in spelled))
        quoted = zip(world.strings, world.map_, strict=True)
        world.rewrite("m.csv", "".join(f'"{string}",{", ".join(map(str, row))}\n' for string, row in quoted))
        assert run(*world.arguments).out == before

    def test_strings_with_commas_quotes_and_line_breaks_survive(self, run: Run, tmp_path: Path) -> None:
        odd = ["a,b", 'say "hi"', "two\n\nlines", "größe", " ", 'in"side', "\x00"]
        world = simulate(tmp_path, dict.fromkeys(odd, 1 / len(odd)))
        check_shares(run(*world.arguments, *SURE), world, 2_000_000)

    def test_a_quote_inside_an_unquoted_string_is_itself(self, tmp_path: Path) -> None:
        known = Parameters(4, 1, 1, 0.5, 0.75, 0.5)
        (tmp_path / "m.csv").write_text('a"b,1\nc,2\n"d",3\n')
        assert read_map(tmp_path / "m.csv", known).strings == ['a"b', "c", "d"]

    def test_a_string_that_is_there_twice_with_the_same_bits_counts_once(self, run: Run, world: World) -> None:
        before = run(*world.arguments).out
        path = world.folder / "m.csv"
        content = path.read_text()
        first, _, rest = content.splitlines()[0].partition(",")
        indices = rest.split(",")
        swapped = ",".join([first, indices[1], indices[0], *indices[2:]])
        path.write_text(content + swapped + "\n" + content)
        assert run(*world.arguments).out == before

    def test_strings_with_the_same_bits_are_told_together(self, run: Run, world: World) -> None:
        with (world.folder / "m.csv").open("a") as file:
            file.write(lines([["twin", *world.map_[7]]]))
        assert rows(run(*world.arguments).out)[0]["string"] == "v8 | twin"
        [twins] = [each for each in json.loads(run(*world.arguments, "--json").out)["rows"] if each["also"]]
        assert (twins["value"], twins["also"]) == ("v8", ["twin"])

    @pytest.mark.parametrize(
        "known",
        [
            Parameters(64, 2, 16, 0.5, 0.75, 0.0),
            Parameters(64, 2, 16, 0.0, 1.0, 0.0),
            Parameters(64, 2, 4, 0.0, 0.75, 0.0),
            Parameters(64, 2, 16, 0.0, 1.0, 0.5),
            Parameters(100, 3, 7, 0.25, 0.75, 0.25),
        ],
        ids=lambda known: f"k={known.k} h={known.h} m={known.m} p={known.p} q={known.q} f={known.f}",
    )
    def test_parameters_at_the_edge(self, run: Run, tmp_path: Path, known: Parameters) -> None:
        shares = {"a": 0.5, "b": 0.3, "c": 0.2}
        world = simulate(tmp_path, shares, known=known)
        check_shares(run(*world.arguments, *SURE), world, 2_000_000)

    def test_one_cohort(self, run: Run, tmp_path: Path) -> None:
        """An absent string sets the bits of a true one once in some hundred thousand times, so p-values end there."""
        world = simulate(tmp_path, {"a": 0.5, "b": 0.3, "c": 0.2}, known=Parameters(512, 2, 1, 0.5, 0.75, 0.5))
        found = {row["string"]: row for row in rows(run(*world.arguments).out)}
        for string, share in world.shares.items():
            assert abs(float(found[string]["proportion"]) - share) < 6 * float(found[string]["prop_std_error"])

    @pytest.mark.parametrize("cohorts", [1, 16])
    def test_one_bit_tells_nothing_and_says_so(self, run: Run, tmp_path: Path, cohorts: int) -> None:
        world = simulate(tmp_path, {"a": 0.5, "b": 0.5}, known=Parameters(1, 1, cohorts, 0.5, 0.75, 0.5))
        told = run(*world.arguments)
        assert (told.code, told.out) == (0, HEADER + "\n")
        assert "! there is one bit, which every string sets" in told.err

    def test_an_empty_cohort_is_told_and_the_others_decide(self, run: Run, tmp_path: Path) -> None:
        world = simulate(tmp_path, {"a": 0.5, "b": 0.3, "c": 0.2}, empty=(0, 5))
        reports = sum(int(line.split(",")[0]) for line in (tmp_path / "c.csv").read_text().splitlines())
        told = run(*world.arguments, *SURE)
        check_shares(told, world, reports)
        assert "! reports are not spread evenly over the 16 cohorts: 0 to" in told.err

    def test_no_reports_at_all_give_an_empty_result_that_says_so(self, run: Run, tmp_path: Path) -> None:
        world = simulate(tmp_path, SHARES, reports=0)
        told = run(*world.arguments)
        assert (told.code, told.out) == (0, HEADER + "\n")
        assert told.err.startswith("! there are only 0 reports")
        document = json.loads(run(*world.arguments, "--json").out)
        assert (document["other"], document["misfit"], document["strings"]) == (None, None, [])

    def test_more_candidates_than_equations(self, run: Run, tmp_path: Path) -> None:
        world = simulate(tmp_path, SHARES, absent=2000)
        check_shares(run(*world.arguments, *SURE), world, 2_000_000)

    def test_strings_that_are_not_in_the_map_raise_an_alarm(self, run: Run, world: World) -> None:
        path = world.folder / "m.csv"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))  # v1 to v5: 15/36
        told = run(*world.arguments)
        assert "! the strings found explain" in told.err


class TestOutput:
    def test_json(self, run: Run, world: World) -> None:
        told = run(*world.arguments, "--json")
        document = json.loads(told.out)
        assert document["metric"] == "rappor"
        assert (document["version"], document["kind"], document["reports"]) == (1, "string", 2_000_000)
        assert document["control"] == "fdr:0.1"
        assert all(row["detected"] and row["found_error"] > 0 for row in document["rows"])
        assert document["other_low"] <= document["other"] <= document["other_high"]
        assert abs(document["other"]) < 0.5
        assert 0.5 < document["misfit"] < 1.5
        assert document["alarms"] == []
        assert document["seconds"] > 0
        as_csv = rows(run(*world.arguments).out)
        assert [{key: str(value) for key, value in each.items()} for each in document["strings"]] == as_csv
        assert ",".join(document["strings"][0]) == HEADER

    def test_alarms_are_in_the_json_and_on_stderr(self, run: Run, tmp_path: Path) -> None:
        world = simulate(tmp_path, SHARES, reports=50)
        told = run(*world.arguments, "--json")
        assert [f"! {sentence}" for sentence in json.loads(told.out)["alarms"]] == told.err.splitlines()
        assert "! there are only 50 reports" in told.err

    def test_out_is_written_whole_and_summed_up_in_one_line(self, run: Run, world: World) -> None:
        out = world.folder / "sub" / "out.csv"
        out.parent.mkdir()
        out.write_text("before")
        told = run(*world.arguments, *SURE, "--out", out)
        assert (told.code, told.out) == (0, "")
        assert told.err == f"{out}: 8 of 48 strings found in 2000000 reports\n"
        assert out.read_text() == run(*world.arguments, *SURE).out
        assert [path.name for path in out.parent.iterdir()] == ["out.csv"]

    def test_an_output_that_fails_leaves_what_was_there(
        self, run: Run, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = world.folder / "out.csv"
        out.write_text("before")
        before = set(world.folder.iterdir())

        def full(path: Path, content: bytes) -> int:
            path.touch()
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        told = run(*world.arguments, "--out", out)
        assert told.code == 1
        assert told.err.startswith(f"Error: {out}: cannot be written: No space left on device; allowed: ")
        assert out.read_text() == "before"
        assert set(world.folder.iterdir()) == before

    def test_an_output_that_is_no_file_is_written_to(self, run: Run, world: World) -> None:
        assert run(*world.arguments, "--out", "/dev/null").code == 0
        assert not Path("/dev/null").is_file()
        told = run(*world.arguments, "--out", world.folder / "none" / "out.csv")
        assert (told.code, "cannot be written: No such file" in told.err) == (1, True)

    def test_a_terminal_gets_a_table_and_progress(self, world: World) -> None:
        """In a process of its own, on a terminal of its own."""
        command = [str(Path(sys.executable).with_name("hubbub")), "decode-rappor", *map(str, world.arguments)]
        mine, its = pty.openpty()
        with subprocess.Popen(command, stdout=its, stderr=its, env=os.environ | {"TERM": "xterm"}) as process:
            os.close(its)
            shown = b""
            try:
                while part := os.read(mine, 4096):
                    shown += part
            except OSError:  # how Linux says that the other side is closed
                pass
        os.close(mine)
        assert process.returncode == 0
        assert b"rappor version 1 (string): 2,000,000 reports" in shown
        assert b"candidates found (fdr:0.1)" in shown
        assert HEADER.encode() not in shown

    def test_confidence_and_control(self, run: Run, world: World) -> None:
        narrow, wide = (rows(run(*world.arguments, "--confidence", level).out)[0] for level in ("0.5", "0.999"))
        assert float(wide["prop_low_95"]) < float(narrow["prop_low_95"])
        assert run(*world.arguments, "--fdr", "0.2").code == 0
        told = run(*world.arguments, "--fdr", "0.1", "--family-wise", "0.05")
        assert (told.code, told.err) == (1, "Error: --fdr and --family-wise: are both given; allowed: one of them\n")
        for option in ("--fdr", "--family-wise", "--confidence"):
            for value in ("0", "1", "nan", "-1"):
                told = run(*world.arguments, option, value)
                assert (told.code, told.out) == (1, "")
                assert "allowed: a number above 0 and below 1" in told.err


# What is wrong, in which file, at which line and column, and words of the message. There are two cohorts of three bits
# and two hashes, and a good file of each sort.
GOOD = {
    "p.csv": b"k,h,m,p,q,f\n3,2,2,0.5,0.75,0.5\n",
    "c.csv": b"10,5,5,5\n12,6,6,6\n",
    "m.csv": b"a,1,2,4,5\nb,2,3,5,6\n",
}
P, C, M = GOOD["p.csv"], GOOD["c.csv"], GOOD["m.csv"]
FAULTS: list[tuple[str, bytes, int, int | str, str]] = [
    ("p.csv", b"", 1, 1, "the header is missing"),
    ("p.csv", b"3,2,2,0.5,0.75,0.5\n", 1, 1, "'3' is not a parameter"),
    ("p.csv", b"k,h,m,p,q,f\n", 2, 1, "is missing"),
    ("p.csv", P + b"3,2,2,0.5,0.75,0.5\n", 3, 1, "is one line too many"),
    ("p.csv", b"k,h,m,p,q\n3,2,2,0.5,0.75\n", 1, "f", "is missing"),
    ("p.csv", b"k,h,m,p,q,k\n3,2,2,0.5,0.75,3\n", 1, 6, "'k' is there twice"),
    ("p.csv", b"k,h,m,p,q,f,g\n3,2,2,0.5,0.75,0.5,1\n", 1, 7, "'g' is not a parameter"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,0.5,0.75\n", 2, 6, "is missing"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,0.5,0.75,0.5,\n", 2, 7, "is one too many"),
    ("p.csv", b"k,h,m,p,q,f\nx,2,2,0.5,0.75,0.5\n", 2, "k", "'x' is not a number"),
    ("p.csv", b"k,h,m,p,q,f\n,2,2,0.5,0.75,0.5\n", 2, "k", "is empty"),
    ("p.csv", b"k,h,m,p,q,f\n0,2,2,0.5,0.75,0.5\n", 2, "k", "is 0; allowed: a whole number from 1"),
    ("p.csv", b"k,h,m,p,q,f\n3,2.5,2,0.5,0.75,0.5\n", 2, "h", "is 2.5; allowed: a whole number"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,-2,0.5,0.75,0.5\n", 2, "m", "is -2; allowed: a whole number"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,1e400,0.5,0.75,0.5\n", 2, "m", "'1e400' is not a finite number"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,1_0,0.5,0.75,0.5\n", 2, "m", "'1_0' is not a number"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,nan,0.75,0.5\n", 2, "p", "'nan' is not a number"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,0.5,inf,0.5\n", 2, "q", "'inf' is not a number"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,-0.5,0.75,0.5\n", 2, "p", "is -0.5; allowed: a number from 0 to 1"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,0.5,1.75,0.5\n", 2, "q", "is 1.75; allowed: a number from 0 to 1"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,0.75,0.5,0.5\n", 2, "q", "is 0.5, and p is 0.75; allowed: q above p"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,0.5,0.5,0.5\n", 2, "q", "allowed: q above p"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,0.5,0.75,1\n", 2, "f", "is 1; allowed: 0 and above, below 1"),
    ("p.csv", b"k,h,m,p,q,f\n2000000000,2,2,0.5,0.75,0.5\n", 2, "m", "k * m is 4000000000"),
    ("p.csv", b"k,h,m,p,q,f\n3,2000000000,2,0.5,0.75,0.5\n", 2, "m", "h * m is 4000000000"),
    ("p.csv", b"k,h,m,p,q,f\n3,2,2,0.5,0.75,0.5\xff\n", 2, 6, "byte 0xff is not UTF-8"),
    ("p.csv", b'k,h,m,p,q,f\n"3,2,2,0.5,0.75,0.5\n', 2, 1, "is not CSV: unexpected end of data"),
    ("p.csv", b"\n" + P, 1, 1, "the line is empty"),
    ("p.csv", b"k" * 1_000_000, 1, 1, "the line is too long"),
    ("c.csv", b"", 1, 1, "is missing, there are 0 lines; allowed: a line for each of the m = 2 cohorts"),
    ("c.csv", b"10,5,5,5\n", 2, 1, "is missing, there are 1 lines"),
    ("c.csv", C + b"1,1,1,1\n", 3, 1, "is one line too many"),
    ("c.csv", b"total,a,b,c\n" + C, 1, 1, "'total' is not a number"),
    ("c.csv", b"10,5,5,5\n\n12,6,6,6\n", 2, 1, "the line is empty"),
    ("c.csv", b"10,5,5,5\n12,6,6\n", 2, 4, "is missing, the line has 3 fields; allowed: 4"),
    ("c.csv", b"10,5,5,5\n12,6,6,6,6\n", 2, 5, "is one too many, the line has 5 fields; allowed: 4"),
    ("c.csv", b"10,5,5,5\n12,6,x,6\n", 2, 3, "'x' is not a number"),
    ("c.csv", b"10,5,5,5\n12,6,,6\n", 2, 3, "is empty"),
    ("c.csv", b"10,5,5,5\n12,6,6,\n", 2, 4, "is empty"),
    ("c.csv", b"10,5,5,5\n12,6,nan,6\n", 2, 3, "'nan' is not a number"),
    ("c.csv", b"10,5,5,5\ninf,6,6,6\n", 2, 1, "'inf' is not a number"),
    ("c.csv", b"10,5,5,5\n12,6,5.5,6\n", 2, 3, "is 5.5; allowed: a whole number"),
    ("c.csv", b"10,5,5,5\n12,6,-1,6\n", 2, 3, "is -1; allowed: a whole number from 0"),
    ("c.csv", b"10,5,5,5\n12,6,13,6\n", 2, 3, "13 is above the 12 reports of its cohort; allowed: 0 to 12"),
    ("c.csv", b'10,5,5,5\n12,"6,6",6,6\n', 2, 2, "'6,6' is not a number"),
    ("c.csv", b"9" * 30 + b",5,5,5\n12,6,6,6\n", 1, 1, "reports up to here; allowed: up to 9007199254740992"),
    ("c.csv", b"10,5,5,5\n12,6,\xff,6\n", 2, 3, "byte 0xff is not UTF-8"),
    ("c.csv", b"10,5,5,5\n12," + b"6" * 1_000_000 + b",6,6\n", 2, 2, "the line is too long"),
    ("m.csv", b"", 1, 1, "the map is empty"),
    ("m.csv", b"\n\n", 1, 1, "the map is empty"),
    ("m.csv", b"a,1,2,4,5\n\nb,2,3,5,6\n", 2, 1, "the line is empty"),
    ("m.csv", M + b"c,1,2,4\n", 3, 5, "is missing, the line has 4 fields; allowed: 5"),
    ("m.csv", M + b"c,1,2,4,5,6\n", 3, 6, "is one too many, the line has 6 fields"),
    ("m.csv", M + b"c\n", 3, 2, "is missing, the line has 1 fields"),
    ("m.csv", M + b",1,2,4,5\n", 3, 1, "the string is empty"),
    ("m.csv", M + b'"",1,2,4,5\n', 3, 1, "the string is empty"),
    ("m.csv", M + b"a,1,2,4,6\n", 3, 1, "the string is there already, with other indices"),
    ("m.csv", M + b"c,1,2,x,5\n", 3, 4, "'x' is not a number"),
    ("m.csv", M + b"c,1,2,,5\n", 3, 4, "is empty"),
    ("m.csv", M + b"c,1,2,4,\n", 3, 5, "is empty"),
    ("m.csv", M + b"c,,2,4,5\n", 3, 2, "is empty"),
    ("m.csv", M + b"c,1,nan,4,5\n", 3, 3, "'nan' is not a number"),
    ("m.csv", M + b"c,1,1.5,4,5\n", 3, 3, "is 1.5; allowed: a whole number"),
    ("m.csv", M + b"c,1,-2,4,5\n", 3, 3, "is -2; allowed: a whole number"),
    ("m.csv", M + b"c,0,2,4,5\n", 3, 2, "0 is not an index of cohort 0; allowed: 1 to 3"),
    ("m.csv", M + b"c,1,4,4,5\n", 3, 3, "4 is not an index of cohort 0; allowed: 1 to 3"),
    ("m.csv", M + b"c,1,2,3,5\n", 3, 4, "3 is not an index of cohort 1; allowed: 4 to 6"),
    ("m.csv", M + b"c,1,2,4,7\n", 3, 5, "7 is not an index of cohort 1; allowed: 4 to 6"),
    ("m.csv", M + b"c,1,2,4,99999999999999999999999\n", 3, 5, "is not an index of cohort 1"),
    ("m.csv", M + b'c,"1,2",4,5,6\n', 3, 2, "'1,2' is not a number"),
    ("m.csv", M + b"\xffc,1,2,4,5\n", 3, 1, "byte 0xff is not UTF-8"),
    ("m.csv", M + b"c,1,2,4\xff,5\n", 3, 4, "byte 0xff is not UTF-8"),
    ("m.csv", M + b'"\xffc",1,2,4,5\n', 3, 1, "byte 0xff is not UTF-8"),
    ("m.csv", M + b'"c,1,2,4,5\n', 3, 1, "is not CSV: unexpected end of data"),
    ("m.csv", M + b'"c"d,1,2,4,5\n', 3, 1, "is not CSV"),
    ("m.csv", M + b'"c' + b",1,2,4,5\n" * 10_000, 3, 1, "a quote is not closed"),
    ("m.csv", M + b"c" * 5000 + b",1,2,4,5\n", 3, 1, "the string is too long; allowed: 1 to 4096 bytes"),
    ("m.csv", M + b"c" * 1_000_000 + b",1,2,4,5\n", 3, 1, "the line is too long"),
    ("m.csv", M + b'"' + b"c" * 1_000_000 + b'",1,2,4,5\n', 3, 1, "the line is too long"),
    ("m.csv", M + b"c,1,2,4," + b"5" * 1_000_000, 3, 5, "the line is too long"),
    ("m.csv", bytes(range(256)), 1, 2, "is missing"),
]


@pytest.fixture
def good(tmp_path: Path) -> World:
    world = World(tmp_path, {}, [], [])
    for name, content in GOOD.items():
        world.rewrite(name, content)
    return world


class TestFaults:
    def test_the_good_files_are_good(self, run: Run, good: World) -> None:
        assert run(*good.arguments).code == 0

    @pytest.mark.parametrize(("name", "content", "line", "column", "words"), FAULTS)
    def test_a_fault_is_told_with_file_line_and_column(
        self, run: Run, good: World, name: str, content: bytes, line: int, column: int | str, words: str
    ) -> None:
        path = good.rewrite(name, content)
        told = run(*good.arguments)
        assert (told.code, told.out) == (1, "")
        assert told.err.startswith(f"Error: {path}, line {line}, column {column}: ")
        assert words in told.err
        assert "; allowed: " in told.err
        assert len(told.err.splitlines()) == 1
        assert len(told.err) < 600

    @pytest.mark.parametrize("name", GOOD)
    def test_a_file_that_cannot_be_read(self, run: Run, good: World, name: str) -> None:
        (good.folder / name).unlink()
        told = run(*good.arguments)
        assert (told.code, told.err) == (
            1,
            f"Error: {good.folder / name}: cannot be read: No such file or directory; allowed: a readable file\n",
        )
        (good.folder / name).mkdir()
        assert "cannot be read: Is a directory" in run(*good.arguments).err

    def test_a_fault_far_into_a_long_map_is_told_with_its_line(
        self, good: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(google_files, "CHUNK", 64)
        known = read_parameters(good.folder / "p.csv")
        some = [f"s{number},1,2,4,5\n" for number in range(100)]
        path = good.rewrite("m.csv", "".join(some))
        assert len(read_map(path, known).strings) == 100
        some[77] = '"two\nlines",1,2,4,5\n'
        some[90] = "s90,1,2,4,9\n"
        good.rewrite("m.csv", "".join(some))
        with pytest.raises(ParameterError, match=r"m\.csv, line 92, column 5: 9 is not an index of cohort 1"):
            read_map(path, known)

    def test_confidence_is_checked_without_the_command_line(self, good: World) -> None:
        known = read_parameters(good.folder / "p.csv")
        counts, map_ = read_counts(good.folder / "c.csv", known), read_map(good.folder / "m.csv", known)
        with pytest.raises(ParameterError, match="confidence = 2"):
            decode_rappor(known, counts, map_, confidence=2)
        assert decode_rappor(replace(known, k=3), counts, map_).reports == 22

    def test_a_field_limit_that_somebody_has_set_is_told_too(self, run: Run, good: World) -> None:
        good.rewrite("m.csv", b'"abcdef",1,2,4,5\n')
        before = csv.field_size_limit(3)
        try:
            told = run(*good.arguments)
            assert csv.field_size_limit() == 3
        finally:
            csv.field_size_limit(before)
        assert told.code == 1
        assert "m.csv, line 1, column 1: is not CSV: field larger than field limit (3)" in told.err
