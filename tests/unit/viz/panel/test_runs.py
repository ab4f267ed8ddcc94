"""The table of runs: against any of them, with what was predicted and how sure it is."""

from __future__ import annotations

import pytest

from tests.builders.panel_sessions import panel_session
from tests.builders.sessions import OFF, PROGRAM, STAGE, measured
from workbench.core.optimizations import Optimizations
from workbench.experiments.session.session import Session
from workbench.viz.panel.tabs.runs import runs_view


@pytest.fixture
def session(monkeypatch):
    return panel_session(monkeypatch)


def words(pieces):
    return "".join(text for text, _ in pieces)


def test_the_run_shown_stands_against_the_baseline(session):
    off, stage, _inline = session.runs
    view = runs_view(session, stage, off)
    assert words(view.sentence).startswith("My stage, 1 thread trains 1.50× as fast as all off (95")
    assert words(view.sentence).endswith("and whether the training is the same was not compared.")
    rows = [(row.number, row.shown, row.baseline, row.row.ratio) for row in view.rows]
    assert rows == [
        (1, False, True, "baseline"),
        (2, True, False, "1.50×"),
        (3, False, False, "0.75×"),
    ]
    assert view.rows[2].row.harm


def test_any_run_can_be_the_baseline(session):
    off, stage, _inline = session.runs
    view = runs_view(session, off, stage)
    assert [row.row.ratio for row in view.rows] == ["0.67×", "baseline", "0.50×"]
    assert "trains 0.67× as fast as my stage, 1 thread" in words(view.sentence)


def test_the_baseline_itself_is_a_rate(session):
    off = session.runs[0]
    assert words(runs_view(session, off, off).sentence).startswith(
        "All off is the baseline: 40.0 ± 0.8\u00a0steps/s"
    )


def test_a_prediction_stands_at_its_ratio_of_the_baseline(session):
    off, stage, _ = session.runs
    view = runs_view(session, stage, off)
    found = session.predict(STAGE)
    assert view.ticks[-1] == (1.0, f"{1 / view.one:g}×")
    assert view.rows[1].row.predicted_at == pytest.approx(found.ratio * view.one)
    assert view.rows[0].row.predicted_at == pytest.approx(view.one)
    assert view.predicts
    assert view.calibration is not None
    assert len(view.calibration.points) == 2


def test_a_prediction_of_another_batch_is_a_ratio_of_samples(session):
    half = Optimizations(batch_size=4)
    (run,) = session.add(measured([OFF, half]), [OFF, half])
    found = session.predict(half)
    row = runs_view(session, run, session.runs[0]).rows[-1].row
    axis = runs_view(session, run, session.runs[0]).one
    assert found.scenario.batch_ratio == 0.5
    assert row.predicted_at == pytest.approx(found.ratio * axis)


def test_every_mark_lies_on_the_axis(session):
    off, stage, _ = session.runs
    for each in runs_view(session, stage, off).rows:
        marks = (each.row.bar, each.row.low, each.row.high, each.row.predicted_at or 0)
        assert all(0 <= mark <= 1 for mark in marks)


def test_no_percentage_of_a_difference_that_may_be_none():
    session = Session(PROGRAM)
    session.add(measured([OFF, STAGE], half=0.9), [OFF, STAGE])
    off, stage = session.runs
    assert "shows no clear difference to all off" in words(runs_view(session, stage, off).sentence)
