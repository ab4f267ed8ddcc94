"""Tabs of a run: each shows something, or says what to do; nothing is worked out twice."""

from __future__ import annotations

import re

import pytest

from tests.builders.limits import MADE, PEAKS, PRODUCT, with_shapes
from tests.builders.panel_sessions import linked_trace, panel_session
from tests.builders.sessions import OFF, SMART, measured
from workbench.core.optimizations import Optimizations
from workbench.core.toggles.toggle import Toggle
from workbench.errors import TraceError
from workbench.experiments.comparison import machine_peaks
from workbench.viz.panel.tabs import contents as module
from workbench.viz.panel.tabs.contents import (
    BOUNDARY,
    FINDINGS,
    LIMIT,
    TABS,
    TIMELINE,
    TWO_RUNS,
    WHAT_IF,
    Content,
    Contents,
)


def text(markup):
    return re.sub("<[^>]*>", "", markup)


@pytest.fixture
def session(monkeypatch):
    return panel_session(monkeypatch)


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_of_a_traced_run_shows_something(session, tab):
    off = session.runs[0]
    shown = Contents(session).of(off, off, tab)
    assert (shown.html != "") != (shown.timeline is not None or shown.boundary is not None)
    assert (shown.timeline is not None) == (tab == TIMELINE)
    assert (shown.boundary is not None) == (tab == BOUNDARY)


@pytest.mark.parametrize("tab", [TIMELINE, "path", "lens", "memory", TWO_RUNS])
def test_a_run_without_a_trace_says_what_to_do(session, tab):
    off, stage, _ = session.runs
    assert text(Contents(session).of(stage, off, tab).html) == (
        "This run was measured without a trace. Capture 30 steps."
    )
    if tab == TWO_RUNS:
        assert "The baseline was measured" in Contents(session).of(off, stage, tab).html


def test_the_boundary_of_another_choice_of_your_own_is_said_to_be_unknown(session):
    setting = Optimizations(chosen=(Toggle("dim", (16, 32)).at(32),))
    (run,) = session.add(measured([OFF, setting]), [OFF, setting])
    shown = Contents(session).of(run, session.runs[0], BOUNDARY).html
    assert "with another choice of yours the program may build another" in shown


def test_a_run_is_not_compared_with_itself(session):
    off = session.runs[0]
    assert "choose another run" in Contents(session).of(off, off, TWO_RUNS).html


def test_what_cannot_be_shown_says_why(session, monkeypatch):
    def fails(shown):
        raise TraceError("the trace has <no> steps")

    monkeypatch.setitem(module._MAKERS, "memory", fails)
    off = session.runs[0]
    shown = Contents(session).of(off, off, "memory").html
    assert shown == '<p class="wb-sentence">The trace has &lt;no&gt; steps.</p>'


def test_a_run_in_the_place_of_a_deleted_one_is_seen_by_what_shows_all_runs(session, monkeypatch):
    monkeypatch.setitem(module._MAKERS, FINDINGS, lambda _: Content(html=str(session.runs)))
    off, contents = session.runs[0], Contents(session)
    before = contents.of(off, off, FINDINGS).html
    session.delete_run(3)
    session.add(measured([OFF, SMART]), [OFF, SMART])
    now = contents.of(off, off, FINDINGS).html
    assert "Inline executor" not in now and now != before
    session.describe_run(2, name="mine")
    assert contents.of(off, off, FINDINGS).html == now
    contents.forget()
    assert contents.of(off, off, FINDINGS) is not None and (FINDINGS in module._NAMING)


def test_what_was_worked_out_is_kept(session):
    off, stage, _ = session.runs
    contents = Contents(session)
    assert contents.of(off, off, TIMELINE) is contents.of(off, stage, TIMELINE)
    assert contents.of(off, off, WHAT_IF) is contents.of(stage, off, WHAT_IF)
    assert contents.of(stage, off, "throughput") is not contents.of(stage, stage, "throughput")


def test_the_lens_is_drawn_anew_once_ids_are_known(monkeypatch):
    session = panel_session(monkeypatch)
    off = session.runs[0]
    learned, session._foreseen.known = session._foreseen.known, None
    contents = Contents(session)
    before = contents.of(off, off, "lens")
    session._foreseen.known = learned
    contents.learned()
    assert contents.of(off, off, "lens") is not before


class TestLimit:
    """Of a machine whose peaks are not known, until they are measured."""

    @pytest.fixture
    def unknown(self, monkeypatch, tmp_path):
        monkeypatch.setattr(machine_peaks, "_path", lambda: tmp_path / "peaks.json")
        monkeypatch.setattr(machine_peaks, "_probed", lambda: pytest.fail("measured unasked"))
        return panel_session(
            monkeypatch, trace=with_shapes(linked_trace(), {"dense": (PRODUCT, MADE)})
        )

    def test_nothing_is_measured_unasked_and_the_tab_says_what_to_do(self, unknown):
        off, contents = unknown.runs[0], Contents(unknown)
        asks = contents.of(off, off, LIMIT)
        assert text(asks.html).endswith("Measure this machine’s peaks, about 5 s.")
        assert "data-peaks" in asks.html

    def test_what_was_measured_meanwhile_shows(self, unknown, monkeypatch):
        off, contents = unknown.runs[0], Contents(unknown)
        contents.of(off, off, LIMIT)
        monkeypatch.setattr(machine_peaks, "_probed", lambda: PEAKS)
        machine_peaks.machine_peaks(progress=False)
        contents.learned()
        assert "at the peaks" in contents.of(off, off, LIMIT).html.lower()

    @pytest.mark.usefixtures("unknown")
    def test_a_trace_of_which_there_is_no_limit_says_so_first(self, monkeypatch):
        session = panel_session(monkeypatch)
        off = session.runs[0]
        shown = Contents(session).of(off, off, LIMIT).html
        assert "does not know the shapes" in shown and "data-peaks" not in shown
