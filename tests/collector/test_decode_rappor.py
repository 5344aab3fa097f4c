"""`hubbub decode-rappor`: google/rappor's own files, decoded and told in every form.

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
from pathlib import Path

import pytest

from collector.rappor_world import World, lines, simulate
from hubbub.collector.decode.google_files import Parameters, read_map
from told import Run, Told, run_here

HEADER = "string,estimate,std_error,proportion,prop_std_error,prop_low_95,prop_high_95,p_value"
SURE = ("--family-wise", "0.0000001")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line, in this process."""
    return run_here("decode-rappor", capsys, monkeypatch)


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
        assert "! reports are not spread evenly over the 16 cohorts: fewer than 10 to" in told.err

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
