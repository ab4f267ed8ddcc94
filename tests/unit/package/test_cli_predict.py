"""`workbench predict`: what it asks for, what it prints and writes; nothing here runs a model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders.predictions import SMART, predicted, predictions
from tests.builders.traces import staged_trace, unstaged_trace
from workbench.cli import main
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.comparison import trace as trace_module
from workbench.experiments.what_if import predict as predict_module
from workbench.models.data.criteo import generate_criteo

TAKEN = object()


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Runs the command on a small log; returns its exit code and what it asked for."""
    seen = SimpleNamespace(steps=None, options=None)
    monkeypatch.chdir(tmp_path)

    def trace(program, *, steps, progress):
        seen.steps = steps
        return TAKEN

    def predict(trace, program, toggles, **options):
        seen.trace, seen.toggles, seen.options = trace, toggles, options
        return predictions(predicted(SMART, 1.25))

    monkeypatch.setattr(trace_module, "trace", trace)
    monkeypatch.setattr(predict_module, "predict", predict)
    data = generate_criteo(tmp_path / "clicks.tsv", rows=5)

    def ask(*arguments: str) -> Any:
        seen.code = main.main(["predict", "dlrm", "--data", str(data), *arguments])
        return seen

    return ask


def test_it_traces_the_model_and_prints_what_is_predicted(asked, capsys, tmp_path):
    seen = asked()
    assert (seen.code, seen.steps, seen.trace, seen.toggles) == (0, 30, TAKEN, None)
    assert seen.options == {
        "stage": StageOptions(num_threads=2, capacity=2),
        "smart_stage": SmartStageOptions(reorder=True),
        "cores": None,
        "inter_op_threads": None,
        "batch_ratio": 1.0,
        "progress": True,
    }
    shown = capsys.readouterr().out.replace("\u00a0", " ")
    assert "Best: smart stage, predicted 1.25× as fast as all off" in shown
    assert not list(tmp_path.glob("*.html"))


def test_settings_are_those_of_the_arguments(asked):
    seen = asked(
        *("--toggle", "stage", "--toggle", "fused_v2+smart_stage", "--threads", "1"),
        *("--steps", "7", "--cores", "8", "--inter-op-threads", "4", "--batch-ratio", "2"),
    )
    assert (seen.steps, seen.toggles) == (7, ["stage", "fused_v2+smart_stage"])
    assert seen.options == {
        "stage": StageOptions(num_threads=1, capacity=2),
        "smart_stage": SmartStageOptions(),
        "cores": 8,
        "inter_op_threads": 4,
        "batch_ratio": 2.0,
        "progress": True,
    }


def test_a_saved_trace_is_not_taken_again(asked, tmp_path):
    unstaged_trace().save(tmp_path / "off.parquet")
    seen = asked("--trace", "off.parquet")
    assert (seen.code, seen.steps) == (0, None)
    assert len(seen.trace.steps()) == len(unstaged_trace().steps())


def test_a_trace_with_a_stage_is_refused(asked, capsys, tmp_path):
    staged_trace().save(tmp_path / "stage.parquet")
    assert asked("--trace", "stage.parquet").code == 2
    assert capsys.readouterr().err == (
        "workbench: error: stage.parquet: its steps have a stage; expected a trace of the model "
        "without toggles, such as `workbench trace` takes\n"
    )


def test_a_file_that_is_no_trace_is_one_line(asked, capsys):
    assert asked("--trace", "no.parquet").code == 2
    error = capsys.readouterr().err
    assert "no.parquet" in error and len(error.splitlines()) == 1


def test_a_page_is_written_on_request(asked, capsys, tmp_path):
    assert asked("--out", "new/predicted.html").code == 0
    page = (tmp_path / "new/predicted.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>") and "smart stage, predicted" in page
    assert capsys.readouterr().out.endswith("Wrote new/predicted.html\n")


def test_help_says_which_steps_are_traced(capsys):
    with pytest.raises(SystemExit):
        main.main(["predict", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "a few steps of each fused graph and of the inline executor" in said
    assert "Every setting is then simulated from these steps." in said
