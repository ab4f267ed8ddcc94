"""--json and --quiet: one document on stdout, words beside it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import workbench
from tests.builders.comparisons import comparison, every_toggle_comparison
from tests.builders.critical_paths import three_steps
from workbench.cli import main


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A folder with a trace, a comparison that has two, and one without any."""
    monkeypatch.chdir(tmp_path)
    three_steps().save(tmp_path / "trace.parquet")
    every_toggle_comparison(three_steps(), three_steps()).save(tmp_path / "results/comparison")
    comparison().save(tmp_path / "plain/comparison")
    (tmp_path / "results/report.html").write_text("<!doctype html>")
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/report.html").write_text("<!doctype html>")
    return tmp_path


def answered(capsys, *arguments: str) -> tuple[dict, int, str]:
    """The document of a command, its exit code, and what it says beside it."""
    try:
        code = main.main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return json.loads(out), code, err


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        (["findings", "trace.parquet"], ["findings"]),
        (["findings", "results"], ["compared findings"]),
        (["findings", "results/report.html"], ["compared findings"]),
        (["critical-path", "trace.parquet"], ["critical path"]),
        (["critical-path", "results"], ["critical path"]),
        (["gate", "plain", "--fail-if-slower", "3%"], ["gate"]),
        (["report", "plain"], []),
    ],
)
def test_a_document_is_all_of_stdout(saved, capsys, arguments, kinds):
    found, code, _ = answered(capsys, *arguments, "--json")
    assert (found["schema"], found["workbench"]) == (1, workbench.__version__)
    assert (found["command"], found["exit_code"], found["error"]) == (arguments[0], code, None)
    assert [each["kind"] for each in found["results"]] == kinds
    assert code == 0


def test_written_files_are_named(saved, capsys):
    found, *_ = answered(capsys, "report", "plain", "--json")
    assert found["wrote"] == ["plain/report.html"]


def test_words_go_to_stderr_and_quiet_leaves_them_out(saved, capsys):
    *_, words = answered(capsys, "findings", "trace.parquet", "--json")
    assert "a step" in words
    *_, words = answered(capsys, "findings", "trace.parquet", "--json", "--quiet")
    assert words == ""
    assert main.main(["report", "plain", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main.main(["findings", "trace.parquet", "--quiet"]) == 0
    assert "a step" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "message"),
    [
        (["findings", "no"], 2, "DataError", "'no' cannot be read: No such file or directory"),
        (["findings", "plain"], 2, "DataError", "the trace does not know which op feeds"),
        (["findings", "alone/report.html"], 2, "DataError", "a report shows traces and does not"),
        (["critical-path", "plain"], 2, "DataError", "the trace does not know which op feeds"),
        (
            ["critical-path", "results", "--variant", "none"],
            2,
            "OptionError",
            "there is no variant 'none'; expected one of off",
        ),
        (
            ["critical-path", "trace.parquet", "--variant", "off"],
            2,
            "OptionError",
            "--variant is of saved results",
        ),
        (["gate", "plain"], 2, "OptionError", "a gate needs a limit"),
        (["findings"], 2, "OptionError", "the following arguments are required: SOURCE"),
        (["nonsense"], 2, "OptionError", "invalid choice: 'nonsense'"),
        (
            ["report", "plain", "--out", "/dev/stdout"],
            2,
            "OptionError",
            "--out writes to stdout, and so does --json",
        ),
        (
            ["gate", "plain", "--fail-if-slower", "3%", "--markdown", "-"],
            2,
            "OptionError",
            "--markdown writes to stdout, and so does --json",
        ),
    ],
)
def test_a_mistake_is_a_document_too(saved, capsys, arguments, code, kind, message):
    found, ended, words = answered(capsys, *arguments, "--json")
    assert (ended, found["exit_code"], found["error"]["kind"]) == (code, code, kind)
    assert message in found["error"]["message"] and message in words
    assert found["results"] == []


def test_a_gate_that_does_not_hold_says_so_in_both(saved, capsys):
    found, code, _ = answered(capsys, "gate", "results", "--fail-if-slower", "0%", "--json")
    assert found["exit_code"] == code
    assert found["results"][0]["passed"] is (code == 0)


def test_what_libraries_print_on_the_descriptor_is_aside():
    script = (
        "import os, sys\n"
        "from workbench.cli import answers, main\n"
        "def runs(chosen):\n"
        "    os.write(1, b'of a library')\n"
        "    print('of the command')\n"
        "    return 0\n"
        "from workbench.cli.commands import report\n"
        "report._report = runs\n"
        "sys.exit(main.main(['report', 'x', '--json']))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["command"] == "report"
    assert "of a library" in done.stderr and "of the command" in done.stderr
