"""Messages of TensorFlow's step stats and of its profiler, from plain rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow.core.framework.step_stats_pb2 import StepStats
from tensorflow.core.protobuf.config_pb2 import RunMetadata
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def step_stats(ops: Sequence[tuple[str, str, int, int]], device: str = CPU) -> StepStats:
    """Of ops, each (name, type, start_ns, dur_ns)."""
    stats = StepStats()
    added = stats.dev_stats.add(device=device)
    for name, op, start_ns, dur_ns in ops:
        added.node_stats.add(
            node_name=name,
            timeline_label=f"{name} = {op}(x)",
            all_start_micros=start_ns // 1000,
            all_start_nanos=start_ns,
            op_end_rel_nanos=dur_ns,
            all_end_rel_nanos=dur_ns,
        )
    return stats


def run_metadata(ops: Sequence[tuple[str, str, int, int]], device: str = CPU) -> RunMetadata:
    """Of one run of these ops."""
    return RunMetadata(step_stats=step_stats(ops, device))


# Name, offset_ps and duration_ps of an event, and its stats.
Event = tuple[str, int, int, Mapping[str, Any]]


def add_plane(
    space: XSpace,
    name: str,
    lines: Mapping[str, Sequence[Event]],
    *,
    timestamp_ns: int = 0,
    shown: Mapping[str, str] | None = None,
) -> Any:
    """Adds a plane; `shown` are display names of kinds of events."""
    plane = space.planes.add(name=name)
    kinds: dict[str, int] = {}
    stats: dict[str, int] = {}
    for number, (line_name, events) in enumerate(lines.items()):
        line = plane.lines.add(id=-number, name=line_name, timestamp_ns=timestamp_ns)
        for event_name, offset_ps, duration_ps, held in events:
            kind = kinds.setdefault(event_name, len(kinds) + 1)
            plane.event_metadata[kind].id = kind
            plane.event_metadata[kind].name = event_name
            plane.event_metadata[kind].display_name = (shown or {}).get(event_name, "")
            event = line.events.add(metadata_id=kind, offset_ps=offset_ps, duration_ps=duration_ps)
            for stat, value in held.items():
                number_of = stats.setdefault(stat, len(stats) + 1)
                plane.stat_metadata[number_of].name = stat
                field = "str_value" if isinstance(value, str) else "int64_value"
                event.stats.add(metadata_id=number_of, **{field: value})
    return plane


def add_environment(space: XSpace, begun_ns: int) -> None:
    """Adds the plane that says when the profile began."""
    plane = space.planes.add(name="Task Environment")
    plane.stat_metadata[1].name = "profile_start_time"
    plane.stats.add(metadata_id=1, uint64_value=begun_ns)
