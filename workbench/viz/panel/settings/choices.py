"""Choices of toggles as the panel and a browser know them: by the toggle's name, as texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Choice, Toggle
from workbench.errors import OptionError
from workbench.experiments.session.session import Session


def known_toggles(session: Session) -> dict[str, Toggle]:
    """The toggles with choices that a panel shows, by name: TensorFlow's, then the author's."""
    return {each.name: each for each in (*STOCK, *session.toggles)}


def text_of(choice: Any) -> str:
    """The text of a choice; no toggle has two with one text."""
    return str(choice)


def choice_of(toggle: Toggle, given: Any) -> Choice:
    """The choice that a value is, or that a text stands for.

    Raises:
      OptionError: the toggle has no such choice.
    """
    fits = (each for each in toggle.choices if isinstance(given, str) and text_of(each) == given)
    return toggle.at(next(fits, given))


def choices_of(given: Mapping[str, Any], toggles: Mapping[str, Toggle]) -> tuple[Choice, ...]:
    """The choices that are not the usual ones, in the order of the names.

    Args:
      given: choices or their texts, by name.
      toggles: those that there are, by name.

    Raises:
      OptionError: no such toggle, or no such choice.
    """
    unknown = next((name for name in given if name not in toggles), None)
    if unknown is not None:
        raise OptionError(
            f"the panel has no toggle {unknown!r:.80}, only {', '.join(toggles)}; give it: "
            "wb.Workbench(program, toggles=[wb.Toggle(…)])"
        )
    choices = (choice_of(toggles[name], given[name]) for name in sorted(given))
    return tuple(each for each in choices if not each.is_usual)
