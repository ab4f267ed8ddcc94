"""The panel as a notebook keeps it: small, whatever ran."""

from __future__ import annotations

import pytest

from tests.builders.panel_sessions import panel_session
from tests.builders.sessions import build
from tests.ui.synthetic import dlrm_trace
from workbench.experiments.program.program import Program
from workbench.experiments.session.session import Session
from workbench.viz.panel import still as module
from workbench.viz.panel.settings.groups import groups_of
from workbench.viz.panel.settings.known_settings import stored_settings
from workbench.viz.panel.settings.setting import PanelSetting
from workbench.viz.panel.still import panel_still
from workbench.viz.panel.tabs.contents import Contents
from workbench.viz.panel.view import panel_view, state_of


@pytest.fixture
def kept(monkeypatch):
    """How many bytes a panel with a long trace takes."""

    def size() -> int:
        session = panel_session(monkeypatch, trace=dlrm_trace(200))
        groups, run = groups_of(session.program), session.runs[0]
        picture, _ = panel_still(
            session,
            Contents(session),
            run,
            run,
            panel_view(session, groups),
            state_of(session, PanelSetting(), shown=1, base=1),
            stored_settings(session, groups),
        )
        return len(picture)

    return size


def test_a_name_of_a_program_is_text_before_anything_has_run():
    session = Session(Program(name="<img src=x onerror=alert(1)>", build=build))
    picture, _ = panel_still(session, Contents(session), None, None, {}, {}, [])
    assert "<img" not in picture and "&lt;img" in picture


def test_a_long_trace_leaves_it_below_its_limit(kept):
    assert kept() <= module.MOST_BYTES


def test_where_it_grows_too_large_the_timeline_gets_less(kept, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 10**9)
    free = kept()
    monkeypatch.setattr(module, "MOST_BYTES", free - 1)
    assert kept() < free
