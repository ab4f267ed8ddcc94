"""wb.toggles: switches of your own, of the environment, of TensorFlow, and of serving."""

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
from workbench.experiments.serving.toggles import SESSIONS, STEPS_AT_ONCE

__all__ = [
    "CALLER_THREAD",
    "FREED_MEMORY",
    "GPU_THREADS",
    "GRAPPLER",
    "ONEDNN",
    "PRECISION",
    "SESSIONS",
    "STEPS_AT_ONCE",
    "STOCK",
    "TF_DATA",
    "XLA",
    "ZENTF",
    "Choice",
    "EnvironmentToggle",
    "Toggle",
    "Training",
]
