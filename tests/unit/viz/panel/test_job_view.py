"""What is said of a run: its progress, and what went wrong with a next action."""

from __future__ import annotations

import pytest

from workbench.errors import RunError
from workbench.viz.panel.job_view import JobView, failed, running


def test_blocks_have_a_share_and_phases_have_none():
    assert running("Block 9 of 24, 25 s left").share == 8 / 24
    assert running("Warming up") == JobView(running=True, words="Warming up")


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
