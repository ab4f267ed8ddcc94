"""A process counts its threads, for a program's loss."""

from __future__ import annotations

import os

import numpy as np


def threads_of_process() -> np.float32:
    """How many threads the process has."""
    return np.float32(len(os.listdir("/proc/self/task")))
