"""`hubbub decode-rappor` reads google/rappor's own files strictly: a fault is told with its file, line and column."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from collector.rappor_world import World
from hubbub.collector.decode import google_files
from hubbub.collector.decode.google import decode_rappor
from hubbub.collector.decode.google_files import read_counts, read_map, read_parameters
from hubbub.shared.errors import ParameterError
from told import Run, run_here


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line, in this process."""
    return run_here("decode-rappor", capsys, monkeypatch)


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
