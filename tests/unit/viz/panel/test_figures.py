"""Figures of the panel's tabs: which a run has, what the browser gets, what is said without one."""

from __future__ import annotations

import json

import pytest

import workbench as wb
from tests.builders.panel_sessions import panel_session
from workbench.viz.panel.tabs.contents import TABS
from workbench.viz.panel.tabs.figures import figure_answer, figures_of


@pytest.fixture
def session(monkeypatch):
    return panel_session(monkeypatch)


def offered(session, number):
    run = session.runs[number - 1]
    return [(tab, name) for tab in TABS for name, _ in figures_of(session, run, tab)]


def test_a_run_offers_what_it_has(session):
    always = [("throughput", "throughput"), ("throughput", "blocks"), ("what_if", "predictions")]
    assert offered(session, 2) == always
    assert set(offered(session, 1)) == {*always, ("memory", "memory")}


@pytest.mark.parametrize("theme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_each_is_the_figure_that_its_code_gives(session, theme):
    panel = wb.Workbench(session)
    for tab, name in offered(session, 2):
        wish = {"tab": tab, "name": name, "theme": theme, "width": 700, "script": False}
        answer, buffers = figure_answer(session, session.runs[1], wish)
        assert buffers == []
        again = eval(answer["code"], {"panel": panel, "wb": wb})
        assert {t["type"] for t in answer["figure"]["data"]} == {t.type for t in again.data}
        assert answer["config"]["plotlyServerURL"] == "" and answer["config"]["responsive"]
        json.dumps(answer, allow_nan=False)


def test_a_title_is_broken_where_its_figure_is_narrow(session):
    wish = {"tab": "throughput", "name": "throughput", "theme": "light", "script": False}
    wide, narrow = (
        figure_answer(session, session.runs[1], {**wish, "width": width})[0]["figure"]["layout"]
        for width in (900, 300)
    )
    breaks = [each["title"]["text"].count("<br>") for each in (wide, narrow)]
    assert breaks[0] < breaks[1]
    assert narrow["height"] - narrow["margin"]["t"] == wide["height"] - wide["margin"]["t"]


def test_the_script_is_sent_where_it_is_missing(session):
    wish = {"tab": "throughput", "name": "blocks", "theme": "light", "width": 700, "script": True}
    _, (script,) = figure_answer(session, session.runs[1], wish)
    assert script.startswith(b"const module") and script.endswith(b"module.exports;\n")


def test_what_cannot_be_drawn_is_said(session):
    wish = {"theme": "light", "width": 700, "script": True}
    answer, buffers = figure_answer(
        session, session.runs[1], {**wish, "tab": "memory", "name": "memory"}
    )
    assert answer == {"error": "Run 2 has no chart 'memory' in this tab."} and buffers == []
    # the made-up steps have no bytes
    answer, buffers = figure_answer(
        session, session.runs[0], {**wish, "tab": "memory", "name": "memory"}
    )
    assert "error" in answer and buffers == []
