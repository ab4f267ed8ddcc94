"""The panel as a browser takes it: what never changes of it, and its state."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from workbench.experiments.session.session import Session
from workbench.usable import usable_cores
from workbench.viz.panel.settings.group import SECTIONS, Group
from workbench.viz.panel.settings.setting import PanelSetting
from workbench.viz.panel.tabs.contents import (
    OF_ALL_RUNS,
    OF_GRAPHS,
    TABS,
    THROUGHPUT,
    against_base,
)
from workbench.viz.panel.tabs.ratio_rows import run_name
from workbench.viz.style import format

VERSION = 2
TABS_OF_PANEL = tuple(TABS.items())


def panel_view(session: Session, groups: tuple[Group, ...]) -> dict[str, Any]:
    """Header, toggles and tabs of a session's panel, as the browser takes them."""
    return {
        "version": VERSION,
        "program": session.name,
        "about": _about(session),
        "machine": _machine(),
        "groups": [dataclasses.asdict(group) for group in groups],
        "sections": [list(section) for section in SECTIONS.items()],
        "tabs": [list(tab) for tab in TABS_OF_PANEL],
        "of_all_runs": list(OF_ALL_RUNS),
        "of_graphs": list(OF_GRAPHS),
        **_wait(session),
    }


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
    news: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a page opens with.

    Args:
      session: its runs.
      setting: where the toggles stand.
      shown, base: numbers of the run that is shown and of the baseline; 0 for none.
      tab, selected, selected_table, saved: as of `Workbench`.
      cut: where the boundary was moved to, whether that is chosen or not.
      news: as of `PanelWidget`.
    """
    return {
        **setting.state(),
        "cut": setting.cut or cut,
        "run_list": run_list(session),
        "shown": shown,
        "base": base,
        "tab": tab,
        "selected": selected,
        "selected_table": selected_table,
        "saved": saved,
        "news": dict(news or {}),
    }


def run_list(session: Session) -> list[dict[str, Any]]:
    """Every run: number, name, the words of the user, tabs that stand against the baseline."""
    return [
        {
            "number": run.number,
            "name": run_name(run),
            "own": {"name": run.name, "note": run.note, "group": run.group},
            "against_base": list(against_base(run)),
        }
        for run in session.runs
    ]


def _about(session: Session) -> str:
    """What is trained on what, as far as the program says."""
    settings = session.program.settings if session.program else {}
    data, batch = settings.get("data"), settings.get("batch_size")
    said = [PurePath(str(data)).name if data else "", f"batch {batch}" if batch else ""]
    return ", ".join(filter(None, said))


def _wait(session: Session) -> dict[str, Any]:
    """About how long the first run takes, and whether that is from runs on this machine."""
    if session.program is None:
        return {"wait": "", "wait_measured": False}
    seconds, measured = session.first_wait()
    return {
        "wait": f"about {max(10, round(seconds / 10) * 10)}{format.NBSP}s",
        "wait_measured": measured,
    }


def _machine() -> str:
    cores = usable_cores()
    words = f"{cores} core" + "s" * (cores != 1)
    # Its name alone: TensorFlow itself is loaded by child processes.
    for name in ("tensorflow", "tensorflow-cpu"):
        try:
            return f"{words}, TensorFlow {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return words
