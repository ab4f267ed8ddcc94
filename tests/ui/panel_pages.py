"""Pages that hold nothing but a panel, as a notebook keeps it or as a report has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.panel_sessions import panel_session
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.session.session import Session
from workbench.viz.panel.page import panel_html, panel_page
from workbench.viz.panel.report import session_report_html
from workbench.viz.panel.settings.groups import groups_of
from workbench.viz.panel.settings.known_settings import stored_settings
from workbench.viz.panel.settings.setting import setting_of
from workbench.viz.panel.tabs.contents import Contents
from workbench.viz.panel.view import panel_view, state_of
from workbench.viz.style import assets

READY_JS = """() => {
  const all = [...document.querySelectorAll(".wbp, [data-wb-panel]:not(:has(.wbp))")];
  return all.length > 0 && all.every((one) => one.dataset.wbReady);
}"""
# What is wider than the page, but for what scrolls in a frame of its own.
SIDEWAYS_JS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def made_up_session() -> Session:
    """Three made-up runs, two of them traced."""
    with pytest.MonkeyPatch.context() as patch:
        return panel_session(patch, traced=2)


def write_panel_page(
    path: Path,
    session: Session,
    *,
    shown: int = 1,
    program: AnyProgram | None = None,
    cut: str = "",
    panels: int = 1,
) -> str:
    """Writes a page with the panel of a session and returns its address.

    Args:
      path: where to.
      session: its runs.
      shown: number of the run whose tabs the page holds.
      program: whose toggles it has; None means the session's.
      cut: where the boundary was moved to, whether that is chosen or not.
      panels: how often the page has it.
    """
    groups = groups_of(program or session.program, cut=cut, toggles=session.toggles)
    contents = Contents(session)
    run, base = (session.runs[n - 1] for n in (shown, 1))
    setting = setting_of(run.optimizations)
    page = panel_page(
        session,
        contents,
        panel_view(session, groups),
        state_of(session, setting, shown=shown, base=1, cut=cut),
        stored_settings(session, groups, [setting]),
        session.runs[:2],
        base,
        400_000,
    )
    names = ["panel", *(f"panel-{number}" for number in range(2, panels + 1))]
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Panel</title>'
        "<style>:root { color-scheme: light dark } body { margin: 0; padding: 12px;"
        f" background: light-dark(#fff, #111) }}{assets.panel_style()}</style></head>"
        f"<body><main>{''.join(panel_html(page, name) for name in names)}</main>"
        f'<script type="module">{assets.panel_page_script()}</script></body></html>',
        "utf-8",
    )
    return path.as_uri()


def write_session_report(path: Path, session: Session) -> str:
    """Writes the report of a session and returns its address."""
    path.write_text(session_report_html(session), "utf-8")
    return path.as_uri()


def open_panel(page: Any, address: str) -> Any:
    """Goes there, waits until the panel stands, and returns it."""
    page.goto(address)
    page.wait_for_function(READY_JS, timeout=30_000)
    return page.locator(".wbp").first


def show_tab(panel: Any, key: str) -> Any:
    """Clicks a tab and returns its pane, filled."""
    panel.locator(f"[data-tab={key}]").click()
    pane = panel.locator(f"[data-pane={key}]")
    pane.locator(".wbp-holder > div").wait_for()
    return pane
