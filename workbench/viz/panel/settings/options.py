"""What the options of a toggle make of a setting, and which of them it excludes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.core.toggles.toggle import Toggle
from workbench.experiments.program.refusals import refusal_of
from workbench.viz.panel.settings.choices import choice_of, text_of
from workbench.viz.panel.settings.group import Group
from workbench.viz.panel.settings.setting import CHOICES, MOVED, OFF, PanelSetting
from workbench.viz.panel.words import sentence


def value_of(setting: PanelSetting, group: Group) -> str | int:
    """Where the toggle of a group stands: the value of its option, or its number."""
    if not group.toggle:
        value: str | int = getattr(setting, group.key)
        return value
    here = (each for each in setting.chosen if each.toggle.name == group.toggle)
    return next((text_of(each.value) for each in here), group.options[0].value)


def with_value(
    setting: PanelSetting, group: Group, value: str | int, toggles: Mapping[str, Toggle]
) -> PanelSetting:
    """The same setting with the toggle of a group elsewhere.

    Args:
      setting: where the toggles stand.
      group: whose toggle it is.
      value: of an option, or a number.
      toggles: those with choices, by name.
    """
    if not group.toggle:
        return setting.changed(**{group.key: value})
    others = tuple(each for each in setting.chosen if each.toggle.name != group.toggle)
    return setting.changed(chosen=(*others, choice_of(toggles[group.toggle], value)))


def without(setting: PanelSetting, group: Group, toggles: Mapping[str, Toggle]) -> PanelSetting:
    """The same setting with the toggle of a group off."""
    if group.key == "stage":
        return setting.changed(stage=OFF)
    usual = group.options[0].value if group.toggle else CHOICES.get(group.key, (0,))[0]
    return with_value(setting, group, usual, toggles)


def excluded_options(
    setting: PanelSetting,
    groups: Iterable[Group],
    toggles: Mapping[str, Toggle],
    *,
    is_function: bool,
) -> dict[str, dict[str, str]]:
    """By group and option, why this setting cannot have it, as sentences; numbers as "number".

    Args:
      setting: where the toggles stand.
      groups: the toggles.
      toggles: those with choices, by name.
      is_function: whether the program is a function.
    """
    now = refusal_of(setting.optimizations(), is_function=is_function)
    excluded: dict[str, dict[str, str]] = {}
    for group in groups:
        alike: dict[str, dict[str, str]] = {}
        for value, label in _others(setting, group):
            other = with_value(setting, group, value, toggles)
            why = refusal_of(other.optimizations(), is_function=is_function)
            # What is refused as it stands is said of the setting, not of every option.
            if why and why != now:
                alike.setdefault(why, {})[str(value) if label else NUMBER] = label
        for why, options in alike.items():
            labels = ", ".join(filter(None, options.values()))
            words = f"{labels}: {why}." if labels else f"{sentence(why).rstrip('.')}."
            excluded.setdefault(group.key, {}).update(dict.fromkeys(options, words))
    return excluded


# In the place of an option, of a toggle that is a number.
NUMBER = "number"


def _others(setting: PanelSetting, group: Group) -> Iterable[tuple[str | int, str]]:
    """Values that the toggle could have instead, with the labels of options."""
    now = value_of(setting, group)
    for option in group.options:
        # A moved boundary is another one where it is chosen.
        if option.value not in (now, MOVED) and not option.refused:
            yield option.value, option.label
    if not group.options and not group.refused and not now:
        yield 1, ""
