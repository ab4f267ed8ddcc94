"""What is known of every setting that a page may be asked for without a kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from workbench.experiments.session.session import Session
from workbench.viz.panel.settings.group import Group
from workbench.viz.panel.settings.notebook_variables import notebook_variables
from workbench.viz.panel.settings.program_expression import program_expression
from workbench.viz.panel.settings.setting import PanelSetting, setting_of
from workbench.viz.panel.settings.setting_view import setting_view


def stored_settings(
    session: Session, groups: tuple[Group, ...], further: Iterable[PanelSetting] = ()
) -> list[dict[str, Any]]:
    """Every combination of toggles that is predicted, those that were run, and some others."""
    found = session.predictions
    wishes = [each.scenario.optimizations for each in found.predicted] if found else []
    wishes += [run.optimizations for run in session.runs]
    settings = dict.fromkeys([*map(setting_of, wishes), *further])
    return [said_of(session, setting, groups) for setting in settings]


def last_cut(session: Session) -> str:
    """Where the newest run of a moved boundary has it, as of `PanelSetting`; "" without one."""
    cuts = (setting_of(run.optimizations).cut for run in reversed(session.runs))
    return next(filter(None, cuts), "")


def said_of(session: Session, setting: PanelSetting, groups: tuple[Group, ...]) -> dict[str, Any]:
    """What is known of a setting, JSON-ready."""
    program = program_expression(session.program, notebook_variables())
    return dataclasses.asdict(setting_view(session, setting, groups, program))
