"""Toggles of a program's author in a session: each of its settings has a choice of each of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Choice, Toggle, Training
from workbench.errors import OptionError
from workbench.experiments.program.toggles import own_choices, require_free_names, with_usual


def require_own(toggles: Iterable[object]) -> tuple[Toggle, ...]:
    """The toggles of a program's author, as they were given.

    Raises:
      OptionError: what is no toggle, or a name that another toggle has.
    """
    if isinstance(toggles, str | Toggle):
        raise OptionError(f"toggles is {toggles!r:.80}; expected a list, such as [wb.Toggle(…)]")
    authors: list[Toggle] = []
    for value in toggles:
        if not isinstance(value, Toggle):
            raise OptionError(
                f"toggles has {value!r:.80}; expected toggles, such as wb.Toggle('dim', [16, 32]); "
                "TensorFlow's and Workbench's own are there without them"
            )
        if value not in STOCK:
            authors.append(value)
    require_free_names(authors)
    return tuple(authors)


def own_toggles(settings: Iterable[Optimizations]) -> tuple[Toggle, ...]:
    """The toggles of an author that settings have choices of, by name; each name once."""
    own = (choice.toggle for setting in settings for choice in own_choices(setting))
    toggles = {each.name: each for each in own}
    return tuple(toggles[name] for name in sorted(toggles))


def completed(setting: Optimizations, authors: Sequence[Toggle]) -> Optimizations:
    """The setting as a session keeps it.

    Each toggle of the author stands somewhere in it. TensorFlow's are left out where they stand at
    their usual choice and that one sets nothing. So two settings that run alike are equal.

    Args:
      setting: a setting.
      authors: toggles of the author. A choice of a toggle of the same name becomes one of these.
    """
    by_name = {each.name: each for each in authors}
    chosen = (_as_given(each, by_name) for each in setting.chosen if _counts(each))
    return with_usual(dataclasses.replace(setting, chosen=tuple(chosen)), authors)


def keeps_training(toggle: Toggle) -> bool:
    """Whether no choice of a toggle makes it another training."""
    return all(toggle.at(each).training != Training.ANOTHER for each in toggle.choices)


def other_choices(setting: Optimizations, baseline: Optimizations) -> tuple[Choice, ...]:
    """Where a setting has another choice than a baseline: the choices of the setting."""
    toggles = {each.name: each for each in _toggles([baseline, setting])}
    return tuple(
        toggle.at(setting[toggle])
        for toggle in toggles.values()
        if setting[toggle] != baseline[toggle]
    )


def _toggles(settings: Iterable[Optimizations]) -> Iterable[Toggle]:
    return (choice.toggle for setting in settings for choice in setting.chosen)


def _counts(choice: Choice) -> bool:
    toggle = choice.toggle
    return not (choice.is_usual and toggle in STOCK and not toggle.environment(choice.value))


def _as_given(choice: Choice, own: dict[str, Toggle]) -> Choice:
    """The choice of the toggle that was given, where that has it; files hold no more than shape."""
    given = own.get(choice.toggle.name)
    if given is None or given == choice.toggle:
        return choice
    fits = any(type(each) is type(choice.value) and each == choice.value for each in given.choices)
    return given.at(choice.value) if fits else choice
