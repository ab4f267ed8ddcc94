"""Group: one toggle in the column of the panel, in finished words, as the browser draws it."""

from __future__ import annotations

import dataclasses

WORKBENCH, TENSORFLOW, OWN_SECTION = "workbench", "tensorflow", "own"
# What the key of a toggle with choices begins with.
CHOSEN = "chosen"
# Titles of the parts of the column; a part without toggles is not drawn.
SECTIONS = {WORKBENCH: "Workbench", TENSORFLOW: "TensorFlow", OWN_SECTION: "Your own"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Option:
    """One value of a choice.

    Attributes:
      value, label: as the setting has it, and on screen.
      refused: why it cannot be had, "" where it can.
      warns: what is said where it is chosen.
      help: what it does, a short sentence; "" where its group says enough.
    """

    value: str
    label: str
    refused: str = ""
    warns: str = ""
    help: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Number:
    """A number that is stepped; 0 is shown as `auto`.

    `stages` are those that it counts for, empty for all; `warns` is said where it is above 0.
    """

    key: str
    label: str = ""
    auto: str = "auto"
    most: int = 64
    step: int = 1
    title: str = ""
    warns: str = ""
    stages: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flag:
    """A box to tick; `refused` says why it cannot be had, "" where it can."""

    key: str
    label: str
    title: str
    refused: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """One block of the column of toggles.

    Attributes:
      key: of its choice, or of its only number; of a toggle with choices "chosen." and its name.
      title, help: its name and one sentence.
      options: of a choice; empty for a number.
      numbers: the group's own; those beside a choice stand in the fold, with the flag.
      needs_stage: its numbers count only where a stage is on.
      flag: below the numbers, or None.
      folded: title of the block in the fold that has the numbers beside a choice.
      refused: why its number cannot be set, "" where it can.
      section: one of SECTIONS, under which it stands.
      more: whether it stands in the section's fold.
      toggle: name of a toggle with choices; "" for one of Workbench's own.
      listed: its options are too long to stand side by side.
    """

    key: str
    title: str
    help: str
    options: tuple[Option, ...] = ()
    numbers: tuple[Number, ...] = ()
    needs_stage: bool = False
    flag: Flag | None = None
    refused: str = ""
    section: str = WORKBENCH
    more: bool = False
    toggle: str = ""
    listed: bool = False
    folded: str = ""
