"""The tab Limit in a browser, on a machine whose peaks are not known: words, and with a kernel a
button."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.limits import MADE, PRODUCT, with_shapes
from tests.builders.panel_sessions import linked_trace, panel_session
from tests.ui.panel_pages import READY_JS, open_panel, show_tab, write_panel_page
from tests.ui.test_panel_toggles import MODEL_JS, SHARED
from tests.ui.watched import Watched
from workbench.experiments.comparison import machine_peaks
from workbench.experiments.session.session import Session
from workbench.viz.panel.tabs.contents import LIMIT
from workbench.viz.panel.workbench import Workbench
from workbench.viz.style import assets

# Notes what the page sends, and answers what it asks of a tab with what the test has ready.
ANSWERING_JS = MODEL_JS.replace(
    "send() {},",
    """send(message) {
      (window.sent ||= []).push(message.kind);
      if (message.kind !== "content") return;
      const answer = { ...window.tab, kind: "content", id: message.id };
      for (const call of listeners["msg:custom"]) call(answer, []);
    },""",
)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    monkeypatch.setattr(machine_peaks, "_path", lambda: tmp_path / "peaks.json")
    trace = with_shapes(linked_trace(), {"dense": (PRODUCT, MADE)})
    return panel_session(monkeypatch, trace=trace)


def test_a_kept_page_says_that_the_peaks_were_not_measured(
    watched: Watched, session: Session, tmp_path: Path
) -> None:
    panel = open_panel(watched.page, write_panel_page(tmp_path / "kept.html", session))
    pane = show_tab(panel, LIMIT)
    pane.get_by_text("is known once its peaks were measured").wait_for()
    assert pane.get_by_role("button").count() == 0


def test_a_click_asks_the_kernel_to_measure_them(
    watched: Watched, session: Session, tmp_path: Path
) -> None:
    made = Workbench(session)
    made.shown, made.tab = 1, LIMIT
    answer, _ = made._answers.tab({"id": 0, "run": 1, "base": 1, "tab": LIMIT})
    page = watched.page
    address = tmp_path / "alive.html"
    address.write_text(
        f"<!doctype html><meta charset=utf-8><style>{assets.panel_style()}</style><main></main>"
    )
    page.goto(address.as_uri())
    page.evaluate("(tab) => { window.tab = tab; }", json.loads(json.dumps(answer)))
    state: dict[str, Any] = {name: getattr(made, name) for name in SHARED}
    page.evaluate(ANSWERING_JS, [assets.panel_script(), json.loads(json.dumps(state))])
    page.wait_for_function(READY_JS)
    page.get_by_role("button", name="Measure this machine’s peaks, about 5 s.").click()
    assert page.evaluate("window.sent").count("peaks") == 1
    assert watched.errors == []
