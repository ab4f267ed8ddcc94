"""Task of a device: "ps 0" of "/job:ps/replica:0/task:0/device:CPU:0"."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

PS = "ps"
_DEVICE = re.compile(r"/job:(?P<job>[^/]+)(?:/replica:\d+)?/task:(?P<index>\d+)")


def task_of(device: str) -> str:
    """The task that a full device name is of, as messages call it; "" where it names none."""
    found = _DEVICE.match(device)
    return f"{found['job']} {int(found['index'])}" if found else ""


def tasks_of(devices: Iterable[str]) -> np.ndarray:
    """The task of each device, text."""
    known: dict[str, str] = {}
    names = [known.setdefault(device, task_of(device)) for device in devices]
    return np.array(names, object)


def is_ps(task: str) -> bool:
    """Whether a task is a parameter server."""
    return task.rpartition(" ")[0] == PS
