"""Settings of which nothing is predicted, by their reasons."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from workbench.viz.style import format
from workbench.viz.style.plain_text import plain, wrapped

_MOST = 8


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why nothing is predicted, a sentence, and of which settings."""

    words: str
    settings: str


def reasons(withheld: Iterable[tuple[str, str]]) -> tuple[Reason, ...]:
    """One for all settings that share it; those with fewer toggles are named first.

    Args:
      withheld: (setting, reason).
    """
    by_reason: dict[str, list[str]] = {}
    for setting, reason in withheld:
        by_reason.setdefault(reason, []).append(plain(setting))
    return tuple(Reason(sentence(why), _named(names)) for why, names in by_reason.items())


def reason_lines(withheld: Sequence[Reason]) -> list[str]:
    """What is withheld, and why, as lines of text."""
    lines: list[str] = []
    for reason in withheld:
        lines += ["", *wrapped(f"Withheld: {reason.settings}"), *wrapped(reason.words, "    ")]
    return lines


def sentence(clause: str) -> str:
    """A clause as a sentence of its own."""
    clause = plain(clause)
    return f"{clause[:1].upper()}{clause[1:]}{'' if clause.endswith('.') else '.'}"


def _named(names: list[str]) -> str:
    names = sorted(names, key=lambda name: name.count(" + "))
    # One more costs no more room than the words that it is left out.
    if len(names) <= _MOST + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST])} and {format.integer(len(names) - _MOST)} more"
