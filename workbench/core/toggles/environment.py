"""EnvironmentToggle: a switch that is a variable of the environment."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from workbench.core.toggles.toggle import Toggle, Training
from workbench.errors import OptionError

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclasses.dataclass(frozen=True)
class EnvironmentToggle(Toggle):
    """A variable of the environment, set before the program's process imports TensorFlow.

    Each choice has a process of its own that imports TensorFlow, about 0.4 GB, as long as it is
    measured.

    Attributes:
      name: of the variable, such as "TF_ENABLE_ONEDNN_OPTS".
      choices: its values, as texts; the first is the usual one.

    Raises:
      OptionError: as of `Toggle`.
    """

    training: Training = Training.ROUNDED

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _VARIABLE.fullmatch(self.name):
            raise OptionError(f"{self.name!r} is no name of a variable of the environment")
        object.__setattr__(self, "choices", tuple(map(str, self.choices)))

    @property
    def title(self) -> str:
        """The variable's name as it is."""
        return self.label or self.name

    def environment(self, choice: Any) -> Mapping[str, str]:
        """The variable; also at its usual choice, whatever the caller's environment has."""
        return {self.name: choice}

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        """The variable is set before the import."""
        return [f'os.environ["{self.name}"] = "{choice}"  # before TensorFlow is imported']


class SavedEnvironmentToggle(EnvironmentToggle):
    """One that a file names: it is shown, and no process gets its variable.

    A variable can make a process load code, and files come from anybody.
    """

    def environment(self, choice: Any) -> Mapping[str, str]:
        return {}

    def refusal(self, choice: Any, *, is_function: bool) -> str:
        return (
            "a file asks for this variable of the environment, and files may come from anybody; "
            "give wb.toggles.EnvironmentToggle in Python"
        )
