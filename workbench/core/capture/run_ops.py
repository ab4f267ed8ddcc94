"""The ops of a session's traced runs: from the executor's recording, or from step stats."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

import numpy as np

from workbench.core.capture.op_events import Recording, op_columns
from workbench.core.capture.partition_edges import partition_edges
from workbench.core.capture.server_partitions import whole_partitions
from workbench.core.capture.step_stats import stats_columns
from workbench.core.capture.step_transfers import transfer_count
from workbench.core.staging.stage_record import StageRunRecord
from workbench.core.trace.builder import StepRecord
from workbench.core.trace.op_columns import OpColumns

_LOG = logging.getLogger("workbench")
# Later steps that have fewer transfers do so for another reason.
_MOST_UNSETTLED = 3


def recorded_ops(
    recording: Recording,
    steps: Sequence[StepRecord],
    stage_runs: Sequence[tuple[StageRunRecord, int]],
) -> tuple[OpColumns, int]:
    """The ops of these runs, in this order, and how many the recording lost."""
    events = recording.stop()
    runs = [(step.thread_id, step.start_ns, step.end_ns) for step in steps]
    runs += [(thread, run.start_ns, run.end_ns) for run, thread in stage_runs]
    ops = op_columns(events, np.array(runs, np.int64))
    if events.lost:
        _LOG.warning(
            "the trace lacks %d ops: more ran than the tracer's memory holds; trace fewer steps at "
            "a time",
            events.lost,
        )
    return ops, events.lost


def ops_of_stats(
    steps: list[StepRecord], stage_runs: Sequence[StageRunRecord]
) -> tuple[OpColumns, list[StepRecord]]:
    """The ops of step stats, and the steps that they are of: the others were not complete."""
    settled, of_stages = _settled(steps), [run.metadata for run in stage_runs]
    ops = stats_columns([*(step.metadata for step in settled), *of_stages])
    # The step that has the graphs may be one of those that are left out.
    runs = [each for each in (*(step.metadata for step in steps), *of_stages) if each is not None]
    graphs = list(whole_partitions(graph for run in runs for graph in run.partition_graphs))
    return dataclasses.replace(ops, edges=partition_edges(graphs, ops.nodes)), settled


def _settled(steps: list[StepRecord]) -> list[StepRecord]:
    """Without the first steps, as long as their records of transfers are not complete.

    A traced step asks the servers to keep them, and does not wait until they do.
    """
    counts = np.array([transfer_count(step.metadata) for step in steps])
    first = int(np.argmax(counts >= np.median(counts)))
    return steps[min(first, _MOST_UNSETTLED) :]
