"""Draws the pictures of docs/ from a measured session, as `make pictures` does.

    python -m tests.ui.doc_pictures                # measures ten settings of DLRM, some minutes
    python -m tests.ui.doc_pictures --session DIR  # takes a session that was saved

A machine that does nothing else gives intervals that say something. Look at the pictures before
they are committed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import workbench as wb
from tests.ui.conftest import ARGUMENTS, NAMES
from tests.ui.pages import open_page, write_page
from tests.ui.panel_pages import open_panel, show_tab, write_panel_page
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.experiments.session.session import Session
from workbench.viz.timeline.view import timeline_view

DOCS = Path(__file__).resolve().parents[2] / "docs"
SMART = SmartStageOptions()
SETTINGS = (
    Optimizations(smart_stage=SMART),
    Optimizations(fused_embeddings="v2"),
    Optimizations(fused_embeddings="grouped"),
    Optimizations(fused_embeddings="auto"),
    Optimizations(executor="inline"),
    Optimizations(executor="cost_model"),
    Optimizations(smart_stage=SMART, fused_embeddings="v2"),
    Optimizations(smart_stage=SMART, fused_embeddings="grouped"),
    Optimizations(smart_stage=SMART, fused_embeddings="auto"),
)
# Of a run behind a stage, its last steps.
STEPS = 5
# The whole table of runs and what stands below it.
PANEL_HEIGHT = 1360


def measured(budget_s: float) -> Session:
    """Nine settings of DLRM beside all off, some minutes."""
    session = Session(wb.models.dlrm(), budget_s=budget_s)
    for setting in SETTINGS:
        session.run(setting)
    return session


def draw_panel(page: Any, session: Session, folder: Path) -> None:
    """The tab Throughput with the last run shown."""
    shown = session.runs[-1].number
    panel = open_panel(page, write_panel_page(folder / "panel.html", session, shown=shown))
    panel.evaluate(f"(one) => one.style.setProperty('--wbp-height', '{PANEL_HEIGHT}px')")
    show_tab(panel, "throughput")
    panel.screenshot(path=DOCS / "panel.png")


def draw_timeline(page: Any, session: Session, folder: Path) -> None:
    """The last steps of the first run behind a stage; a smart stage may find no use for one."""
    traces = [run.measured.trace for run in session.runs]
    trace = next(each for each in traces if each is not None and len(each.items))
    last = trace.steps()["number"].tolist()[-STEPS:]
    view = timeline_view(trace, title="SmartStage", steps=(last[0], last[-1]))
    open_page(page, write_page(folder / "timeline.html", view))
    page.screenshot(path=DOCS / "timeline.png", full_page=True)


def main() -> None:
    """Draws both pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--session", type=Path, help="a folder of Session.save")
    parser.add_argument("--budget", type=float, default=25.0, help="seconds of a run")
    asked = parser.parse_args()
    session = wb.load_session(asked.session) if asked.session else measured(asked.budget)
    path = next(filter(None, map(shutil.which, NAMES)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        for draw, width in ((draw_panel, 1260), (draw_timeline, 1100)):
            page = browser.new_page(viewport={"width": width, "height": 480}, color_scheme="light")
            draw(page, session, Path(folder))
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
