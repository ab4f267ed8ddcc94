"""wb.toggles: switches of your own, of the environment, and those of TensorFlow."""

from workbench.core.toggles.environment import EnvironmentToggle
from workbench.core.toggles.stock import (
    CALLER_THREAD,
    FREED_MEMORY,
    GRAPPLER,
    ONEDNN,
    PRECISION,
    STOCK,
    TF_DATA,
    XLA,
)
from workbench.core.toggles.toggle import Choice, Toggle, Training

__all__ = [
    "CALLER_THREAD",
    "FREED_MEMORY",
    "GRAPPLER",
    "ONEDNN",
    "PRECISION",
    "STOCK",
    "TF_DATA",
    "XLA",
    "Choice",
    "EnvironmentToggle",
    "Toggle",
    "Training",
]
