"""The state of a panel as a browser takes it: where the toggles stand, and what is shown."""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.experiments.session.session import Session
from workbench.viz.panel.contents import THROUGHPUT, against_base
from workbench.viz.panel.runs import run_name
from workbench.viz.panel.settings.setting import PanelSetting


def state_of(
    session: Session,
    setting: PanelSetting,
    *,
    shown: int,
    base: int,
    tab: str = THROUGHPUT,
    selected: str = "",
    selected_table: str = "",
    saved: str = "",
    cut: str = "",
) -> dict[str, Any]:
    """What a page opens with.

    Args:
      session: its runs.
      setting: where the toggles stand.
      shown, base: numbers of the run that is shown and of the baseline; 0 for none.
      tab, selected, selected_table, saved: as of `Workbench`.
      cut: where the boundary was moved to, whether that is chosen or not.
    """
    return {
        **dataclasses.asdict(setting),
        "cut": setting.cut or cut,
        "run_list": run_list(session),
        "shown": shown,
        "base": base,
        "tab": tab,
        "selected": selected,
        "selected_table": selected_table,
        "saved": saved,
    }


def run_list(session: Session) -> list[dict[str, Any]]:
    """Number and name of every run, and its tabs that stand against the baseline."""
    return [
        {"number": run.number, "name": run_name(run), "against_base": list(against_base(run))}
        for run in session.runs
    ]
