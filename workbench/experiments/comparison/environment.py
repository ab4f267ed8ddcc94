"""What a measurement ran on, as a reader of the report needs it; loads no TensorFlow."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path
from typing import Any

from workbench.experiments.comparison.provenance import provenance
from workbench.experiments.worker.wire.messages import Opened
from workbench.freed_memory import has_own_settings
from workbench.usable import usable_cores


def environment(opened: Opened) -> dict[str, Any]:
    """Date, versions, machine and session settings, JSON-ready, in the order to show them."""
    return {
        **provenance(),
        **machine(),
        **({"gpus": ", ".join(opened.gpus)} if opened.gpus else {}),
        "inter_op_threads": opened.inter_op_threads or "one per core",
        "intra_op_threads": opened.intra_op_threads or "one per core",
        "freed memory": "as MALLOC_… says" if has_own_settings() else "kept in the process",
        "tf.data inject_prefetch": opened.inject_prefetch,
        "tf.data prefetch of its own": "yes" if opened.own_prefetch else "no",
    }


def machine() -> dict[str, Any]:
    """Versions and machine, JSON-ready, in the order to show them."""
    return {
        "tensorflow": importlib.metadata.version("tensorflow"),
        "workbench": importlib.metadata.version("recsys-workbench"),
        "python": platform.python_version(),
        "cpu": _cpu_model(),
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.release()}",
    }


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
