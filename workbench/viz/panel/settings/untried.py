"""Settings that are predicted to be faster than where the toggles stand, and were not run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from workbench.core.toggles.toggle import Toggle
from workbench.core.what_if.predictions import Predicted
from workbench.experiments.session.session import Session
from workbench.viz.panel.settings.group import Group
from workbench.viz.panel.settings.options import value_of, with_value
from workbench.viz.panel.settings.setting import MOVED, PanelSetting
from workbench.viz.style import format

# How many are named, and the least gain that is.
_MOST, _LEAST = 3, 1.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class Untried:
    """A toggle elsewhere.

    Attributes:
      group, value: which one, and the option.
      label: both on screen.
      gain: what is predicted of it over the setting now.
    """

    group: str
    value: str
    label: str
    gain: str


def untried_of(
    session: Session,
    setting: PanelSetting,
    groups: tuple[Group, ...],
    toggles: Mapping[str, Toggle],
) -> tuple[Untried, ...]:
    """What one toggle elsewhere is predicted to give, the most first.

    Args:
      session: its runs and predictions.
      setting: where the toggles stand.
      groups: the toggles.
      toggles: those with choices, by name.
    """
    now = session.predict(setting.optimizations())
    if not isinstance(now, Predicted):
        return ()
    known: list[tuple[float, Untried]] = []
    for group in groups:
        here = value_of(setting, group)
        for option in group.options:
            # A moved boundary is predicted where it is chosen.
            if option.refused or option.value in (here, MOVED):
                continue
            other = with_value(setting, group, option.value, toggles).optimizations()
            then = session.predict(other)
            if not isinstance(then, Predicted) or session.run_of(other) is not None:
                continue
            ratio = then.ratio / now.ratio
            if ratio > _LEAST:
                words = Untried(
                    group=group.key,
                    value=option.value,
                    label=f"{group.title}: {option.label}",
                    gain=format.gain(ratio),
                )
                known.append((ratio, words))
    known.sort(key=lambda each: -each[0])
    return tuple(words for _, words in known[:_MOST])
