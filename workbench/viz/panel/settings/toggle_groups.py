"""Toggles with choices → blocks of the panel's column. A toggle's value says all that is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workbench.core.toggles.environment import EnvironmentToggle
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Toggle, Training
from workbench.viz.panel.settings.choices import text_of
from workbench.viz.panel.settings.group import CHOSEN, OWN_SECTION, TENSORFLOW, Group, Option

# How many of a section are shown at first; the others stand in its fold.
_AT_ONCE = {TENSORFLOW: 0, OWN_SECTION: 4}
# What fits side by side into the column, in letters, with the space around each label.
_WIDTH, _AROUND = 36, 3
_PROCESS = "Takes a process of its own, about 0.4 GB."
_ANOTHER = "The receipt shows both loss curves, as this is another training."


def toggle_groups(authors: Sequence[Toggle], *, is_function: bool) -> list[Group]:
    """The blocks of TensorFlow's toggles and of an author's.

    Args:
      authors: the toggles of the program's author.
      is_function: whether the program is a function, which cannot have all choices.
    """
    return [
        *_section(STOCK, TENSORFLOW, is_function=is_function),
        *_section(authors, OWN_SECTION, is_function=is_function),
    ]


def _section(toggles: Iterable[Toggle], section: str, *, is_function: bool) -> Iterable[Group]:
    for place, toggle in enumerate(toggles):
        options = tuple(_options(toggle, is_function=is_function))
        letters = sum(len(option.label) + _AROUND for option in options)
        yield Group(
            key=f"{CHOSEN}.{toggle.name}",
            toggle=toggle.name,
            title=_capital(toggle.title),
            help=_help(toggle),
            options=options,
            section=section,
            more=place >= _AT_ONCE[section],
            listed=letters > _WIDTH,
        )


def _options(toggle: Toggle, *, is_function: bool) -> Iterable[Option]:
    labels = {choice: _label(toggle, choice) for choice in toggle.choices}
    # The usual choice changes nothing, so nobody refuses it.
    reasons = {
        choice: toggle.refusal(choice, is_function=is_function) for choice in toggle.choices[1:]
    }
    for choice, label in labels.items():
        why = reasons.get(choice, "")
        alike = ", ".join(labels[each] for each, reason in reasons.items() if reason == why)
        yield Option(
            value=text_of(choice),
            label=label,
            refused=f"{alike}: {why}." if why else "",
            warns=_ANOTHER if _trains_otherwise(toggle, choice) else "",
        )


def _trains_otherwise(toggle: Toggle, choice: Any) -> bool:
    one = toggle.at(choice)
    return one.training == Training.ANOTHER and not one.is_usual


def _help(toggle: Toggle) -> str:
    apart = any(toggle.environment(choice) for choice in toggle.choices)
    return " ".join(filter(None, [toggle.help, _PROCESS if apart else ""]))


def _label(toggle: Toggle, choice: Any) -> str:
    """A choice on screen; those of an author stand as they were given."""
    if toggle in STOCK:
        return _capital(text_of(choice).replace("_", " "))
    return text_of(choice) if isinstance(toggle, EnvironmentToggle) else _plain(choice)


def _plain(choice: Any) -> str:
    return text_of(choice).lower() if isinstance(choice, bool) else text_of(choice)


def _capital(words: str) -> str:
    """The first letter large, but of names such as oneDNN and float32."""
    first = words.split(" ", 1)[0]
    return words[:1].upper() + words[1:] if first.isalpha() and first.islower() else words
