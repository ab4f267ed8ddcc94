"""Ops of main steps → tracks: the threads of each task that worked for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from workbench.core.graph.tasks import tasks_of
from workbench.core.trace.op_columns import OpColumns
from workbench.core.trace.threads import thread_tracks


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OpTracks:
    """Where the ops of main steps are drawn.

    Attributes:
      track: int64 [ops], counted through `names`.
      names, index, tasks: of each track its name, its number within its task, and its task.
      known, system_names: as of `ThreadTracks`.
    """

    track: np.ndarray
    names: tuple[str, ...]
    index: tuple[int, ...]
    tasks: tuple[str, ...]
    known: bool
    system_names: Mapping[str, str]


def op_tracks(ops: OpColumns, callers: Mapping[int, str], main: str) -> OpTracks:
    """Gives each op a track: the main task's first, then those of others by name.

    Args:
      ops, callers: as of `thread_tracks`.
      main: the task that ran the steps; "" where all ops are of one task.
    """
    task = tasks_of(ops.nodes["device"])
    # A device without a task is of the main one; without that, all are.
    task[(task == "") | (main == "")] = main
    of_op = task[ops.node]
    tasks = [main, *sorted(set(of_op.tolist()) - {main})]
    track = np.zeros(len(of_op), np.int64)
    rows: list[tuple[str, int, str]] = []
    known = True
    system_names: dict[str, str] = {}
    for task in tasks:
        here = of_op == task
        found = thread_tracks(ops.rows(here), callers)
        track[here] = len(rows) + found.track
        rows += [(name, index, task) for index, name in enumerate(found.names)]
        known &= found.known
        system_names |= found.system_names
    names, index, places = zip(*rows, strict=True) if rows else ((), (), ())
    return OpTracks(
        track=track,
        names=names,
        index=index,
        tasks=places,
        known=known,
        system_names=system_names,
    )
