"""A setting with one more toggle switched on, as a finding names it."""

from __future__ import annotations

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.program.toggles import optimizations_of
from workbench.experiments.session.session import Session
from workbench.viz.panel.settings.group import CHOSEN
from workbench.viz.panel.settings.setting import PanelSetting, setting_of


def toggled(
    session: Session, setting: PanelSetting, toggle: str
) -> tuple[PanelSetting, tuple[str, ...]]:
    """A setting with a toggle switched on.

    Args:
      session: whose author's toggles there are.
      setting: where the toggles stand before.
      toggle: its name on the command line, such as "smart_stage" or "dim=32".

    Returns:
      The setting, and the keys of the groups that have changed.

    Raises:
      OptionError: there is no such toggle.
    """
    wish = optimizations_of(toggle, StageOptions(), SmartStageOptions(), session.toggles)
    off, on = setting_of(Optimizations()).state(), setting_of(wish)
    changed = [name for name, value in on.state().items() if value != off[name]]
    plain = {name: getattr(on, name) for name in changed if name != CHOSEN}
    named = {each.toggle.name for each in on.chosen}
    others = tuple(each for each in setting.chosen if each.toggle.name not in named)
    groups = (*plain, *(f"{CHOSEN}.{name}" for name in sorted(named)))
    return setting.changed(**plain, chosen=(*on.chosen, *others)), groups
