"""What a raw session says about itself: its server, its executor, how its runs are traced."""

from __future__ import annotations

from typing import Any

# RunOptions.TraceLevel. A server collects step stats for the highest level only; in a local session
# that level would start TensorFlow's profiler as well.
_SOFTWARE_TRACE, _FULL_TRACE = 1, 3
# What the names of Workbench's executor types begin with, and TensorFlow's own executor as one of
# them, in native/executor/policies/executor.h.
OWN_EXECUTORS = "WORKBENCH_"
STOCK_EXECUTOR = "WORKBENCH_STOCK"


def trace_level(session: Any) -> int:
    """The `RunOptions.trace_level` at which runs of this raw session return step stats."""
    return _FULL_TRACE if server_of(session) else _SOFTWARE_TRACE


def traced_by_executor(session: Any) -> bool:
    """Whether this raw session runs on one of Workbench's executors, which record their ops."""
    return records_ops(getattr(session, "_config", None)) and not server_of(session)


def records_ops(config: Any) -> bool:
    """Whether the executor of a local session with this ConfigProto, or None, records its ops."""
    kind = config.experimental.executor_type if config is not None else ""
    return kind.startswith(OWN_EXECUTORS) and kind != STOCK_EXECUTOR


def server_of(session: Any) -> str:
    """Address of the server that runs the session's steps; empty for a local session."""
    target = getattr(session, "sess_str", "") or ""
    return target.decode() if isinstance(target, bytes) else str(target)
