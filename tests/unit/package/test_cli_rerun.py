"""`workbench rerun`: what it runs again, what it never runs, and its exit codes."""

from __future__ import annotations

import pytest

from tests.builders.comparisons import SETTINGS, comparison, variant
from workbench.cli import main
from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.errors import RunError
from workbench.experiments.comparison import compare as experiments
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.program.configuration import configuration_of
from workbench.experiments.program.origin import Origin
from workbench.experiments.program.program import Program
from workbench.experiments.worker import found_program
from workbench.models.data.criteo import generate_criteo
from workbench.viz.report import write_report

STAGE = Optimizations(stage=StageOptions(capacity=3))
OPTIONS = {"data": None, "rows": 40, "batch_size": 8, "learning_rate": 0.5, "seed": 2}


def report(origin, path="report.html", name="dlrm"):
    """A report of a program from somewhere, staged and not."""
    program = Program(name=name, build=lambda optimizations: None, origin=origin)
    measured = {"budget_s": 5.0, "trace_steps": 3, "step_stats": True}
    made = configuration_of(
        program, [Optimizations(), STAGE], equivalence_steps=9, seed=4, **measured
    )
    settings = {**SETTINGS, "configuration": made.to_json()}
    untraced = (variant("off", 39.8, 0.4), variant("stage", 72.8, 0.8))
    return write_report(comparison(settings=settings, variants=untraced), path)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Runs the command in a folder of its own; what it asked of `compare`, and its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    seen = {}

    def measured(program, toggles, **options):
        seen.update(program=program, toggles=toggles, **options)
        return seen["found"]

    monkeypatch.setattr(experiments, "compare", measured)
    monkeypatch.setattr(found_program, "found_program", lambda text: seen.setdefault("place", text))

    def ask(*arguments, found=None):
        seen["found"] = found or comparison()
        seen["code"] = main.main(["rerun", *map(str, arguments)])
        return seen

    return ask


def test_a_model_is_measured_as_it_was(asked, tmp_path, capsys):
    seen = asked(report(Origin(model="dlrm", options=OPTIONS)))
    assert seen["code"] == 0
    program = seen["program"]
    assert (program.name, program.settings["rows"]) == ("dlrm", 40)
    assert program.settings["batch_size"] == 8 and program.settings["learning_rate"] == 0.5
    assert program.settings["data"] == str(tmp_path / "cache/workbench/data/clicks-40-2.tsv")
    assert (seen["baseline"], seen["toggles"]) == (Optimizations(), [STAGE])
    assert (seen["budget_s"], seen["trace_steps"], seen["step_stats"]) == (5.0, 3, True)
    assert (seen["equivalence_steps"], seen["seed"]) == (9, 4)
    shown = capsys.readouterr().out
    assert shown.startswith("Measuring dlrm again: off, stage\n")
    assert "\nStill holds: stage.\n" in shown
    assert (tmp_path / "rerun/report.html").is_file()
    assert (tmp_path / "rerun/comparison-1/comparison.json").is_file()


def test_a_directory_of_results_will_do_and_the_budget_can_be_another(asked, tmp_path):
    made = Program(name="dlrm", build=lambda o: None, origin=Origin(model="dlrm", options=OPTIONS))
    configured = configuration_of(
        made, [STAGE], budget_s=5.0, trace_steps=0, step_stats=False, equivalence_steps=0, seed=0
    )
    settings = {**SETTINGS, "configuration": configured.to_json()}
    comparison(settings=settings).save(tmp_path / "results/comparison")
    seen = asked("results", "--budget", "2min", "--out", "again")
    assert (seen["baseline"], seen["toggles"], seen["budget_s"]) == (STAGE, [], 120.0)
    assert (tmp_path / "again/report.html").is_file()


def test_what_no_longer_holds_is_1_and_a_failed_run_2(asked, monkeypatch, capsys):
    slower = Ratio(label="stage", ratio=0.9, low=0.88, high=0.92, verdict="slower")
    path = report(Origin(model="dlrm", options=OPTIONS))
    assert asked(path, found=comparison(ratios=(slower,)))["code"] == 1
    assert "No longer holds: stage (1 of 1)." in capsys.readouterr().out

    def fails(*arguments, **options):
        raise RunError("no")

    monkeypatch.setattr(experiments, "compare", fails)
    assert asked(path)["code"] == 2


@pytest.mark.parametrize(
    ("origin", "named"),
    [
        (Origin(place="evil.py:build"), "'evil.py:build'"),
        (Origin(place="os:system"), "'os:system'"),
        (Origin(model="../../tmp/evil.py", options=OPTIONS), "'../../tmp/evil.py'"),
        (Origin(model="__import__('os')", options=OPTIONS), "\"__import__('os')\""),
        (None, "'mine'"),
    ],
)
def test_nothing_that_a_report_names_runs_but_the_six_models(
    asked, tmp_path, capsys, origin, named
):
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    seen = asked(report(origin, name="mine"))
    assert seen["code"] == 2 and "program" not in seen and "place" not in seen
    said = capsys.readouterr().err
    assert f"the report is of {named}, which is none of the models dlrm, deepfm" in said
    assert "name the program that is to run, as in --program my_model.py:build" in said


def test_a_program_of_ones_own_runs_where_the_user_names_it(asked, monkeypatch, capsys):
    mine = Program(name="mine", build=lambda optimizations: None)
    monkeypatch.setattr(found_program, "found_program", lambda text: mine)
    path = report(Origin(place="evil.py:build"), name="mine")
    assert asked(path, "--program", "my_model.py:build")["program"] is mine
    assert asked(path, "--program", "dlrm")["code"] == 2
    assert "--program is 'dlrm'; expected a place, as in my" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"turbo": 1}, "its configuration is damaged: dlrm has no option 'turbo'"),
        ({"batch_size": 0}, "its configuration is damaged: batch_size is 0; expected at least 1"),
        ({"batch_size": 2.5}, "batch_size is 2.5; expected a whole number"),
        ({"learning_rate": "x"}, "learning_rate is 'x'; expected a number"),
        ({"rows": 10**12}, "says 1000000000000 rows; expected at most 10 million"),
        ({"rows": None}, "says None rows; expected at most 10 million"),
        ({"data": "no.tsv"}, "no.tsv: no such file; give the path of a click log"),
        ({"data": "/dev/zero"}, "/dev/zero: is a device"),
    ],
)
def test_options_of_a_stranger_are_checked(asked, capsys, changes, said):
    seen = asked(report(Origin(model="dlrm", options={**OPTIONS, **changes})))
    assert seen["code"] == 2 and "program" not in seen
    assert said in capsys.readouterr().err


def test_data_may_lie_elsewhere_now(asked, tmp_path):
    path = report(Origin(model="dlrm", options={**OPTIONS, "data": "gone.tsv"}))
    generate_criteo(tmp_path / "here.tsv", rows=50)
    assert asked(path, "--data", "here.tsv")["program"].settings["data"] == "here.tsv"


def test_a_damaged_report_is_one_line(asked, tmp_path, capsys):
    path = report(Origin(model="dlrm", options=OPTIONS))
    whole = path.read_text("utf-8")
    path.write_text(whole[: whole.index('"origin"')], "utf-8")
    assert asked(path)["code"] == 2
    said = capsys.readouterr().err
    assert said.endswith("ends in the middle of its configuration; copy it again\n")
    assert len(said.splitlines()) == 1
