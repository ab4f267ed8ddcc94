"""Files of the traces that the workers of a cluster save."""

from __future__ import annotations

from pathlib import Path

from workbench.experiments.cluster.task import WORKER, Task


def trace_path(directory: Path, task: Task) -> Path:
    """Where a worker's trace is saved."""
    return directory / f"{task.job}_{task.index}.parquet"


def worker_traces(directory: Path) -> list[Path]:
    """The files of a directory that workers have saved."""
    found = directory.glob(f"{WORKER}_*.parquet")
    return sorted(found, key=lambda path: (len(path.name), path.name))
