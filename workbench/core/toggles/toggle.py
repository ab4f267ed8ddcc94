"""Toggle: a switch as a value; Choice: one of its positions.

What a choice does is a method of its toggle: to the environment of the process that runs the
program, to that process before anything is built, and to the config of a session.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping
from typing import Any

from workbench.errors import OptionError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# What a choice may be: JSON holds it, and a label shows it.
PLAIN = (str, int, float, bool)
_LONGEST = 80
_MOST_CHOICES = 64


class Training(enum.StrEnum):
    """What a choice does to the training.

    SAME: every loss is that of the first choice, bit by bit.
    ROUNDED: losses are alike, as sums have another order.
    ANOTHER: it is another training; both loss curves are kept beside each other.
    """

    SAME = "same"
    ROUNDED = "rounded"
    ANOTHER = "another"


@dataclasses.dataclass(frozen=True)
class Toggle:
    """A switch of your own, read by the program as `optimizations["name"]`.

    Attributes:
      name: an identifier, as the program and the command line say it.
      choices: its positions, the first being the usual one: texts, numbers or booleans.
      label: its name in tables; "" shows `name`.
      help: a sentence on what it does.
      training: what another choice does to the training.

    Raises:
      OptionError: another kind of name or choice, a choice twice, or fewer than two.
    """

    name: str
    choices: tuple[Any, ...]
    label: str = ""
    help: str = ""
    training: Training = Training.ANOTHER

    def __post_init__(self) -> None:
        who = f"{type(self).__name__} {self.name!r}"
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise OptionError(
                f"{who} has no name; expected at most 64 letters, digits and '_', no digit first"
            )
        given = self.choices
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise OptionError(f"{who}: choices is {given!r}; expected a list, such as [16, 32]")
        choices = tuple(given)
        for choice in choices:
            if not isinstance(choice, PLAIN) or not _is_shown(str(choice)):
                raise OptionError(f"{who}: {choice!r:.80} is no choice; expected text or a number")
        if not isinstance(self.label, str) or (self.label and not _is_shown(self.label)):
            raise OptionError(f"{who}: label is {self.label!r:.80}; expected a short text")
        if len({str(choice) for choice in choices}) < len(choices):
            raise OptionError(f"{who} has a choice twice: {choices}")
        if not 1 < len(choices) <= _MOST_CHOICES:
            raise OptionError(
                f"{who} has {len(choices)} choices; expected 2 to {_MOST_CHOICES}, the usual first"
            )
        object.__setattr__(self, "choices", choices)
        object.__setattr__(self, "training", Training(self.training))

    @property
    def title(self) -> str:
        """Its name in tables."""
        return self.label or self.name.replace("_", " ")

    @property
    def is_of_data(self) -> bool:
        """Whether its lines of code change a dataset, so that they stand before the model."""
        return False

    def at(self, choice: Any) -> Choice:
        """This toggle at one of its choices.

        Raises:
          OptionError: it has no such choice.
        """
        return Choice(toggle=self, value=choice)

    def named(self, text: str) -> Choice:
        """The choice that a command line names.

        Raises:
          OptionError: it has no such choice.
        """
        fits = [choice for choice in self.choices if _text(choice) == text]
        return self.at(fits[0] if fits else text)

    def environment(self, choice: Any) -> Mapping[str, str]:
        """Variables of the process that runs the program, there before it imports TensorFlow."""
        return {}

    def prepare(self, choice: Any, *, is_function: bool) -> None:
        """Sets what holds for a whole process, before the program is built in it.

        Raises:
          UnsupportedError: the process cannot have the choice; the message is a clause.
        """

    def configure(self, choice: Any, config: Any) -> None:
        """Changes the ConfigProto of a session."""

    def rewrite(self, choice: Any, graph: Any) -> None:
        """Changes the finished graph of a session, before the session starts.

        Raises:
          UnsupportedError: there is nothing to change; the message is a clause.
        """

    def arrange(self, choice: Any, step: Any, dataset: Any) -> tuple[Any, Any]:
        """Changes a tf.function or a Keras model and its dataset, before the first step.

        Returns:
          The function or model, and the dataset.

        Raises:
          UnsupportedError: there is nothing to change; the message is a clause.
        """
        return step, dataset

    def training_of(self, choice: Any) -> Training:
        """What one of its choices does to the training; `training` is the most that any does."""
        return self.training

    def refusal(self, choice: Any, *, is_function: bool) -> str:
        """Why a program cannot have a choice, as a clause; "" where it can."""
        return ""

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        """What a choice gives before anything is measured: it orders a search, and claims nothing.

        Returns:
          The mean, and the standard deviation, of the logarithm of steps/s over the first choice's.
        """
        return 0.0, 0.15

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        """Lines of Python that bring a choice about in a program of one's own."""
        return [f"# your own: {self.name} = {choice!r}"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
    """A toggle at one of its positions.

    Attributes:
      toggle: the switch.
      value: where it stands, one of its choices.
    """

    toggle: Toggle
    value: Any

    def __post_init__(self) -> None:
        # 1 and True are equal, and neither is the other's choice.
        fits = [c for c in self.toggle.choices if type(c) is type(self.value) and c == self.value]
        if not fits:
            expected = ", ".join(map(repr, self.toggle.choices))
            raise OptionError(
                f"toggle {self.toggle.name!r} has no choice {self.value!r:.80}; expected one of "
                f"{expected}"
            )

    @property
    def is_usual(self) -> bool:
        """Whether it is the toggle's first choice, with which nothing is changed."""
        return bool(self.value == self.toggle.choices[0])

    @property
    def training(self) -> Training:
        """What it does to the training, beside the toggle's first choice."""
        return self.toggle.training_of(self.value)

    @property
    def label(self) -> str:
        """What tables show: "embedding_dim 32"."""
        return f"{self.toggle.title} {_text(self.value).replace('_', ' ')}"


def _is_shown(text: str) -> bool:
    """Whether a table can show a text in one cell."""
    return text.isprintable() and 0 < len(text) <= _LONGEST


def _text(choice: Any) -> str:
    return str(choice).lower() if isinstance(choice, bool) else str(choice)
