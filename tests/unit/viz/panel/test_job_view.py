"""What is said of a run: its progress, and what went wrong with a next action."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics

import pytest

from workbench.errors import RunError
from workbench.experiments.measurement.evidence import Evidence
from workbench.experiments.measurement.progress_line import ProgressLine, ProgressState
from workbench.experiments.measurement.schedule import PhaseState
from workbench.experiments.measurement.statistics import Interval
from workbench.viz.panel.job_view import JobView, failed, running


def test_blocks_have_a_share_and_phases_have_none():
    assert running("Block 9 of 24, 25 s left").share == 8 / 24
    assert running("Warming up") == JobView(running=True, words="Warming up")


def line(text, **state):
    return ProgressLine(text, ProgressState(**state))


def evidence(*ratios, low=0.0, high=math.inf, final=False):
    interval = Interval(value=statistics.geometric_mean(ratios), low=low, high=high)
    return Evidence(label="stage", ratios=ratios, rounds=6, interval=interval, final=final)


def test_a_line_with_its_numbers_has_the_whole_wait():
    phases = (
        PhaseState(title="Start", state="over", seconds=2.0),
        PhaseState(title="Measure", state="now", seconds=9.0),
        PhaseState(title="Trace", state="next", seconds=5.0),
    )
    words = "Block 9 of 24, 25 s left"
    view = running(line(words, phase="Measure", phases=phases, share=0.6, left_s=12.2))
    assert (view.words, view.share, view.left_s) == (words, 0.6, 12.2)
    assert view.left == "phase 2 of 3, about 13\u00a0s left"
    assert [(each.title, each.state) for each in view.phases] == [
        *(("Start", "over"), ("Measure", "now"), ("Trace", "next")),
    ]
    assert (view.evidence, view.result, view.machine) == (None, "", "")


def test_each_round_is_a_dot_and_the_interval_shrinks():
    first = running(line("Block 5 of 24", evidence=(evidence(1.2, 1.4),))).evidence
    assert (first.rows[0].low, first.rows[0].high) == (None, None)
    assert first.rows[0].words == "1.30×" and first.rows[0].verdict == "not clear yet"
    later = evidence(1.2, 1.4, 1.3, low=1.1, high=1.55)
    row = running(line("Block 7 of 24", evidence=(later,))).evidence.rows[0]
    assert len(row.dots) == 3 and row.dots[0] < row.dots[2] < row.dots[1]
    assert 0.5 < row.low < row.at < row.high <= 1.0
    assert (row.words, row.verdict) == ("1.30× (1.10–1.55)", "faster")
    assert (row.label, row.rounds) == ("Stage", "3 of 6 rounds")


def test_the_result_is_there_before_the_run_is_over():
    said = evidence(1.2, 1.4, 1.3, low=1.1, high=1.55)
    assert running(line("Block 7 of 24", evidence=(said,))).result == ""
    over = dataclasses.replace(said, final=True)
    view = running(line("Tracing 30 steps", evidence=(over,)))
    assert view.result == "Stage: 1.30× (1.10–1.55), faster"
    unclear = dataclasses.replace(over, interval=Interval(value=1.3, low=0.9, high=1.8))
    assert running(line("x", evidence=(unclear,))).result.endswith("no clear difference")


def test_every_view_of_a_job_can_be_sent_to_a_page():
    said = evidence(1.2, 1.4)
    json.dumps(dataclasses.asdict(running(line("x", evidence=(said,)))), allow_nan=False)


def test_an_error_keeps_the_traceback_of_the_child():
    error = RunError("`train.py`, line 41: ValueError: no")
    error.add_note("Traceback of the child process:\nTraceback (most recent call last): …")
    shown = failed(error)
    assert shown.error == "`train.py`, line 41: ValueError: no"
    assert shown.details == "Traceback (most recent call last): …"
    assert not shown.running


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("the session has no program", "The session has no program"),
        ("build(a, b) needs 2 arguments", "build(a, b) needs 2 arguments"),
        ("`train.py`, line 4: no", "`train.py`, line 4: no"),
        ("", "RunError"),
    ],
)
def test_an_error_begins_as_a_sentence_but_a_name_stays(words, shown):
    assert failed(RunError(words)).error == shown


def test_a_cancelled_run_is_no_error():
    words = "Cancelled. Nothing was kept; no process is left."
    assert failed(KeyboardInterrupt(words), cancelled=True) == JobView(words=words)
