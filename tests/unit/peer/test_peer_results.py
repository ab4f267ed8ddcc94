"""Results of another project's tests: what is subtracted, listed, and read of a crash."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest

from tests.peer.comparison import ListedText, compare, listed_texts
from tests.peer.modes import SESSION_MODES, mode_named
from tests.peer.records import FAILED, PASSED, SKIPPED, FileRun, RecordWriter, load_run, read_record
from tests.peer.report import line, run_path, table, totals
from tests.peer.run_tiers import TIERS

FILE = "python/lookup_test.py"


def run(mode: str = "fusion", errors: dict[str, str] | None = None, **outcomes: str) -> FileRun:
    return FileRun(
        file=FILE,
        mode=mode,
        outcomes=outcomes,
        errors=errors or {},
        counts={"sessions": 3, "planned": 2, "fused": 1, "parts": 4},
        ended="",
        seconds=1.0,
    )


class TestComparison:
    def test_what_fails_in_stock_too_is_subtracted(self) -> None:
        stock = run("stock", a=PASSED, b=FAILED, c=SKIPPED, d=PASSED)
        found = compare(stock, run(a=FAILED, b=FAILED, c=FAILED, d=PASSED), [])
        assert sorted(found.new) == ["a", "c"] and not found.listed

    def test_a_test_that_did_not_end_in_stock_says_nothing(self) -> None:
        found = compare(run("stock", a=PASSED), run(a=PASSED, b=FAILED), [])
        assert not found.new and found.not_in_stock == ["b"]

    def test_a_test_that_was_not_reached_is_counted(self) -> None:
        found = compare(run("stock", a=PASSED, b=PASSED), run(a=PASSED), [])
        assert found.unreached == ["b"]

    @pytest.mark.parametrize(
        ("mode", "error", "is_listed"),
        [
            ("fusion", 'AssertionError: "indices" does not match "id 2"', True),
            ("fusion+inline", 'AssertionError: "indices" does not match "id 2"', True),
            ("v1", 'AssertionError: "indices" does not match "id 2"', False),
            ("fusion", "AssertionError: 1.0 != 2.0", False),
        ],
    )
    def test_a_text_is_listed_in_its_modes_and_for_its_error(
        self, mode: str, error: str, is_listed: bool
    ) -> None:
        text = ListedText(
            file=FILE, test="a*", modes=["fusion*"], error="does not match", reason="Names the id."
        )
        found = compare(run("stock", a1=PASSED), run(mode, {"a1": error}, a1=FAILED), [text])
        assert bool(found.listed) == is_listed and bool(found.new) != is_listed

    def test_every_listed_text_names_a_file_and_a_mode_that_there_are(self) -> None:
        files = {file for path in TIERS.values() for file in path.read_text().split()}
        for text in listed_texts():
            assert text.file in files and text.reason.endswith(".") and text.error
            assert any(fnmatch.filter(SESSION_MODES, mode) for mode in text.modes)


class TestRecords:
    def read(self, path: Path, ended: str = "") -> FileRun:
        return read_record(path, file=FILE, mode="inline", ended=ended, seconds=2.0)

    def test_a_failed_clean_up_counts(self, tmp_path: Path) -> None:
        writer = RecordWriter(tmp_path / "record", lambda: {"sessions": 2})
        writer.started("T.a")
        writer.ended("T.a", PASSED)
        writer.ended("T.a", FAILED, "Error: at <f at 0x7f0012345678>\n  in tearDown")
        found = self.read(tmp_path / "record")
        assert found.outcomes == {"T.a": FAILED} and found.counts == {"sessions": 2}
        assert found.errors == {"T.a": "Error: at <f at 0x> in tearDown"}

    def test_of_a_long_text_begin_and_end_stay_and_stacks_go(self, tmp_path: Path) -> None:
        stack = 'File "/a/b.py", line 3, in run\n' * 300
        RecordWriter(tmp_path / "record").ended("T.a", FAILED, f"E: at\n{stack} id 2 is wrong")
        assert self.read(tmp_path / "record").errors["T.a"] == "E: at id 2 is wrong"
        RecordWriter(tmp_path / "record").ended("T.a", FAILED, f"E: {'x' * 9000} id 2 is wrong")
        found = self.read(tmp_path / "record").errors["T.a"]
        assert found.startswith("E: x") and found.endswith("id 2 is wrong") and len(found) < 4100

    @pytest.mark.parametrize(
        ("ended", "outcomes"),
        [
            ("ended by signal 11", {"T.a": PASSED, "T.b": FAILED}),
            ("stopped after 600 s", {"T.a": PASSED}),
        ],
    )
    def test_a_crash_is_a_failure_and_a_time_limit_is_not(
        self, tmp_path: Path, ended: str, outcomes: dict[str, str]
    ) -> None:
        writer = RecordWriter(tmp_path / "record")
        writer.started("T.a")
        writer.ended("T.a", PASSED)
        writer.started("T.b")
        assert self.read(tmp_path / "record", ended).outcomes == outcomes

    def test_a_process_that_leaves_no_record_ran_nothing(self, tmp_path: Path) -> None:
        assert self.read(tmp_path / "record", "ended with 2").ran == 0

    def test_a_run_of_another_format_is_run_again(self, tmp_path: Path) -> None:
        run(a=PASSED).save(tmp_path / "run.json")
        assert load_run(tmp_path / "run.json") == run(a=PASSED)
        text = (tmp_path / "run.json").read_text()
        (tmp_path / "run.json").write_text(text.replace('"format": 1', '"format": 0'))
        assert load_run(tmp_path / "run.json") is None


class TestReport:
    def test_totals_are_of_all_kept_runs(self, tmp_path: Path) -> None:
        runs = [run("stock", a=PASSED, b=PASSED), run(errors={"a": "E: x"}, a=FAILED, b=PASSED)]
        for each in runs:
            path = run_path(tmp_path, each.mode, each.file)
            path.parent.mkdir()
            each.save(path)
        found = totals(tmp_path)["fusion"]
        assert found["new"] == [f"{FILE} a: E: x"] and found["fused"] == 1
        assert "| fusion | 1 | 2 | 1 | 0 |" in "\n".join(table(totals(tmp_path)))

    def test_a_line_says_what_fails_here_alone(self) -> None:
        here = run(errors={"a": "E: x"}, a=FAILED)
        text = line(here, compare(run("stock", a=PASSED), here, []))
        assert "3 sessions" in text and "1 fused" in text and "NEW a: E: x" in text


class TestModes:
    def test_parts_are_joined(self) -> None:
        mode = mode_named("fusion+inline")
        assert mode.fuses_graphs and mode.policy == "inline" and mode.version is None

    def test_an_unknown_part_is_named(self) -> None:
        with pytest.raises(ValueError, match="'fusion\\+fast' has the part 'fast'"):
            mode_named("fusion+fast")
