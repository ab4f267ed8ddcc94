"""What of a panel never changes: its header, toggles and tabs."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
from pathlib import PurePath
from typing import Any

from workbench.experiments.comparison.environment import usable_cores
from workbench.experiments.session.session import Session
from workbench.viz.panel.contents import OF_ALL_RUNS, TABS
from workbench.viz.panel.settings.groups import Group

VERSION = 1
TABS_OF_PANEL = tuple(TABS.items())


def panel_view(session: Session, groups: tuple[Group, ...]) -> dict[str, Any]:
    """Header, toggles and tabs of a session's panel, as the browser takes them."""
    return {
        "version": VERSION,
        "program": session.name,
        "about": _about(session),
        "machine": _machine(),
        "groups": [dataclasses.asdict(group) for group in groups],
        "tabs": [list(tab) for tab in TABS_OF_PANEL],
        "of_all_runs": list(OF_ALL_RUNS),
    }


def _about(session: Session) -> str:
    """What is trained on what, as far as the program says."""
    settings = session.program.settings if session.program else {}
    data, batch = settings.get("data"), settings.get("batch_size")
    said = [PurePath(str(data)).name if data else "", f"batch {batch}" if batch else ""]
    return ", ".join(filter(None, said))


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
