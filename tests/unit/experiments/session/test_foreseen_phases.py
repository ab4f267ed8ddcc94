"""What the first run takes: from the budget, then from what runs on this machine took."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.sessions import PROGRAM
from workbench.experiments.comparison.wait import times_of
from workbench.experiments.measurement import phase_times
from workbench.experiments.measurement.schedule import BUILD, CHECK, START, TRACE
from workbench.experiments.session.session import Session


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    """Of a machine on which nothing ran."""
    monkeypatch.setattr(phase_times, "phase_times_home", lambda: tmp_path)
    return Session(PROGRAM, budget_s=20.0)


def test_the_first_run_is_guessed_from_the_budget(session: Session) -> None:
    assert session.first_wait() == (20.0 + 12.0 + 3.0 + 15.0 + 3.0, False)
    assert Session(PROGRAM, budget_s=20.0, trace_steps=0).first_wait() == (20.0, False)


@pytest.mark.parametrize("is_quiet", [True, False])
def test_runs_on_this_machine_tell_what_it_takes(session: Session, is_quiet: bool) -> None:
    times = times_of(PROGRAM, is_quiet=is_quiet)
    times.learn("off; 20 s", {START: 15.0, BUILD: 10.0, CHECK: 4.0, TRACE: 6.0})
    learned = {"graphs": 30.0, "ids": 2.0, "costs": 1.0, "predict": 1.0}
    times_of(PROGRAM).learn("predictions", learned)
    assert session.first_wait() == (35.0 + 30.0 + 2.0 + 1.0 + 1.0, True)
    # a budget that they leave time of is taken
    longer = Session(PROGRAM, budget_s=60.0)
    assert longer.first_wait() == (60.0 + 34.0, True)
