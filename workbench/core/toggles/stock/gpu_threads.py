"""GPU threads: those that hand work to a GPU, shared by all ops of a process or its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.core.toggles.toggle import Toggle, Training
from workbench.errors import UnsupportedError

_PRIVATE = "private"
_MODE, _COUNT, _VISIBLE = "TF_GPU_THREAD_MODE", "TF_GPU_THREAD_COUNT", "CUDA_VISIBLE_DEVICES"
_VARIABLES = {_MODE: "gpu_private", _COUNT: "2"}
_DEVICES = Path("/dev")


class _GpuThreads(Toggle):
    def environment(self, choice: Any) -> Mapping[str, str]:
        return _VARIABLES if choice == _PRIVATE else {}

    def prepare(self, choice: Any, *, is_function: bool) -> None:
        import tensorflow as tf

        if not tf.config.list_physical_devices("GPU"):
            raise UnsupportedError("this TensorFlow sees no GPU")

    def refusal(self, choice: Any, *, is_function: bool) -> str:
        if os.environ.get(_VISIBLE) in ("", "-1"):
            return f"{_VISIBLE} hides the GPUs of this machine"
        if not any(_DEVICES.glob("nvidia[0-9]*")):
            return "this machine has no NVIDIA GPU"
        if os.environ.get(_MODE) == _VARIABLES[_MODE]:
            return f"the environment has {_MODE}={_VARIABLES[_MODE]} already"
        return ""

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        first, *rest = (f'os.environ["{name}"] = "{value}"' for name, value in _VARIABLES.items())
        return [f"{first}  # before TensorFlow is imported", *rest]


GPU_THREADS = _GpuThreads(
    name="gpu_threads",
    choices=("default", _PRIVATE),
    label="GPU threads",
    help="Two threads of each GPU's own start its kernels, so that no op on the CPU delays them.",
    training=Training.SAME,
)
