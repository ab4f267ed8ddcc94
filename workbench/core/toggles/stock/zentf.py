"""AMD's plugin zentf: kernels for EPYC processors, which TensorFlow loads beside its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.core.toggles.toggle import Toggle, Training
from workbench.errors import UnsupportedError

_PACKAGE = "zentf"
# As AMD's instructions have them: with oneDNN on, its kernels would come first.
_VARIABLES = {"TF_ENABLE_ZENDNN_OPTS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
# TensorFlow loads each library in this folder of the packages, when it is imported.
_FOLDER = "/tensorflow-plugins/"
_LOADED = Path("/proc/self/maps")


class _Zentf(Toggle):
    def environment(self, choice: Any) -> Mapping[str, str]:
        return _VARIABLES if choice == "on" else {}

    def prepare(self, choice: Any, *, is_function: bool) -> None:
        if _FOLDER not in _LOADED.read_text():
            raise UnsupportedError(
                f"TensorFlow has loaded no plugin; reinstall {_PACKAGE} for this TensorFlow"
            )

    def refusal(self, choice: Any, *, is_function: bool) -> str:
        if importlib.util.find_spec(_PACKAGE) is None:
            return (
                f"the package {_PACKAGE} is not installed; in an environment of its own, run "
                f"pip install --no-deps {_PACKAGE}"
            )
        return ""

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        first, *rest = (f'os.environ["{name}"] = "{value}"' for name, value in _VARIABLES.items())
        return [f"{first}  # before TensorFlow is imported", *rest]


ZENTF = _Zentf(
    name="zentf",
    choices=("off", "on"),
    label="AMD's plugin",
    help="AMD's kernels for EPYC processors, from its package zentf, which is made for inference.",
    training=Training.ROUNDED,
)
