"""oneDNN: Intel's kernels for products of matrices, which TensorFlow's wheel has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.core.toggles.toggle import Toggle, Training

_VARIABLE = "TF_ENABLE_ONEDNN_OPTS"


class _OneDnn(Toggle):
    def environment(self, choice: Any) -> Mapping[str, str]:
        return {_VARIABLE: "1" if choice == "on" else "0"}

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        return -0.03, 0.08

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        return [f'os.environ["{_VARIABLE}"] = "0"  # before TensorFlow is imported']


ONEDNN = _OneDnn(
    name="onednn",
    choices=("on", "off"),
    label="oneDNN",
    help="Intel's kernels for products of matrices. Off, TensorFlow's own do them.",
    training=Training.ROUNDED,
)
