"""wb.toggles: switches of your own, of the environment, and those of TensorFlow."""

from workbench.core.toggles.environment import EnvironmentToggle
from workbench.core.toggles.stock import (
    CALLER_THREAD,
    FREED_MEMORY,
    GPU_THREADS,
    GRAPPLER,
    ONEDNN,
    PRECISION,
    STOCK,
    TF_DATA,
    XLA,
    ZENTF,
)
from workbench.core.toggles.toggle import Choice, Toggle, Training

__all__ = [
    "CALLER_THREAD",
    "FREED_MEMORY",
    "GPU_THREADS",
    "GRAPPLER",
    "ONEDNN",
    "PRECISION",
    "STOCK",
    "TF_DATA",
    "XLA",
    "ZENTF",
    "Choice",
    "EnvironmentToggle",
    "Toggle",
    "Training",
]
