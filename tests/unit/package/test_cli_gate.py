"""Gates on the command line: verdicts as exit codes, the summary, and what is refused."""

from __future__ import annotations

import pytest

from tests.builders.comparisons import comparison
from workbench.cli import main
from workbench.errors import RunError
from workbench.experiments.comparison import compare as experiments
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.comparison.results import load_comparison


def run(*arguments: str) -> int:
    try:
        return main.main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A folder with results: a stage that is 1.80 to 1.86 times as fast as off."""
    monkeypatch.chdir(tmp_path)
    comparison().save(tmp_path / "results/comparison")
    slow = Ratio(label="stage", ratio=0.9, low=0.88, high=0.92, verdict="slower")
    comparison(ratios=(slow,)).save(tmp_path / "slow")
    wide = Ratio(label="stage", ratio=1.0, low=0.9, high=1.1, verdict="no clear difference")
    comparison(ratios=(wide,)).save(tmp_path / "wide")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["results"], 0, "Gate: holds."),
        (["slow"], 1, "Gate: slower."),
        (["wide"], 0, "Gate: not shown."),
        (["wide", "--strict"], 1, "Gate: not shown."),
        (["slow", "--against", "results"], 0, "Gate: holds."),
    ],
)
def test_a_gate_ends_with_its_verdict(saved, capsys, arguments, code, said):
    assert run("gate", *arguments, "--fail-if-slower", "3%") == code
    assert capsys.readouterr().out.startswith(said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gate", "results"], "a gate needs a limit, as in --fail-if-slower 3%"),
        (["gate", "results", "--fail-if-slower", "much"], "'much' is not a limit below 100 %"),
        (["gate", "results", "--fail-if-slower", "100%"], "'100%' is not a limit below 100 %"),
        (
            ["gate", ".", "--fail-if-slower", "3%"],
            ". holds 2 comparisons; give the directory of one",
        ),
        (["gate", "no", "--fail-if-slower", "3%"], "no: holds no comparison.json"),
        (["gate", "slow", "--fail-if-slower", "3", "--against", "no"], "no: holds no comparison"),
        (["gate", "slow", "--fail-if-slower", "3", "--any-machine"], "--any-machine is of an earl"),
        (
            ["gate", "slow", "--fail-if-slower", "3", "--markdown", "slow"],
            "slow: cannot be written",
        ),
        (["compare", "dlrm", "--strict"], "--strict is of a gate; say which, as in --fail-if"),
        (["compare", "dlrm", "--markdown", "x"], "--markdown is of a gate; say which"),
    ],
)
def test_mistakes_in_a_gate_exit_with_2(saved, capsys, arguments, said):
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err


def test_the_summary_of_a_gate_is_written_or_is_all_of_stdout(saved, capsys):
    arguments = ["gate", "slow", "--fail-if-slower", "3%", "--markdown"]
    assert run(*arguments, "new/summary.md") == 1
    assert capsys.readouterr().out.endswith("Wrote new/summary.md\n")
    assert run(*arguments, "-") == 1
    shown = capsys.readouterr()
    assert shown.out == (saved / "new/summary.md").read_text("utf-8")
    assert shown.out.startswith("### ❌ Workbench: slower, <code>dlrm</code>\n")
    assert shown.err.startswith("Gate: slower.")


@pytest.mark.parametrize(("found", "code"), [("results", 0), ("slow", 1)])
def test_compare_is_a_gate_on_request(saved, monkeypatch, capsys, found, code):
    measured = load_comparison(saved / found if found == "slow" else saved / "results/comparison")
    monkeypatch.setattr(experiments, "compare", lambda *a, **o: measured)
    arguments = ["compare", "dlrm", "--generate", "50", "--fail-if-slower", "3%", "--out", "out"]
    assert run(*arguments, "--markdown", "-") == code
    shown = capsys.readouterr()
    assert shown.out.startswith("### ")
    assert "Wrote out/report.html" in shown.err
    assert run(*arguments[:4], "--out", "again") == 0


def test_an_earlier_comparison_of_something_else_is_refused_before_anything_runs(
    saved, monkeypatch, capsys
):
    monkeypatch.setattr(experiments, "compare", lambda *a, **o: pytest.fail("it ran"))
    gate = ["--generate", "50", "--fail-if-slower", "3%", "--against", "slow"]
    assert run("compare", "wdl", *gate) == 2
    assert "the earlier comparison is of 'dlrm', this one of 'wdl'" in capsys.readouterr().err
    assert run("compare", "dlrm", *gate) == 2
    assert "the settings differ: data is 'clicks-50-1.tsv' now" in capsys.readouterr().err


def test_a_failed_run_is_no_verdict_of_a_gate(saved, monkeypatch):
    def fails(*arguments, **options):
        raise RunError("no")

    monkeypatch.setattr(experiments, "compare", fails)
    assert run("compare", "dlrm", "--generate", "50") == 1
    assert run("compare", "dlrm", "--generate", "50", "--fail-if-slower", "3%") == 2


def test_a_setting_that_failed_fails_the_gate_after_its_words(saved, capsys):
    comparison(failed={"dim 32": "Dim 32: too wide"}).save(saved / "partly")
    assert run("gate", "partly", "--fail-if-slower", "3%") == 2
    said = capsys.readouterr()
    assert said.out.startswith("Gate: holds.")
    assert "Dim 32: too wide; the others were measured" in said.err
