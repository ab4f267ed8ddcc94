"""Slack: how much later each event of a trace could have ended without its run ending later."""

from __future__ import annotations

import numpy as np

from workbench.core.analysis.path.executed_graph import NO_EVENT, ExecutedGraph


def slack_ns(graph: ExecutedGraph) -> np.ndarray:
    """Slack of each event within its run, int64 [events] ns; -1 for an event of no run.

    An op that begins later because of its inputs is taken to wait as long after the last of them
    as it did. The last op of a run has none.
    """
    return np.where(graph.run < 0, -1, _latest_end(graph) - graph.end_ns)


def _latest_end(graph: ExecutedGraph) -> np.ndarray:
    """When each event may end at the latest, int64 [events]."""
    last = graph.last_of_run[np.maximum(graph.run, 0)]
    producer, consumer = graph.dependencies
    before = graph.producer
    fed = np.where(before == NO_EVENT, graph.start_ns, graph.end_ns[np.maximum(before, 0)])
    # From an event's last input to its end, which a later input would only move.
    takes = (graph.end_ns - fed).tolist()
    latest = graph.end_ns[np.maximum(last, 0)].tolist()
    # By begin, the last first: whatever consumes an event's outputs began after it.
    order = np.lexsort((-graph.end_ns[consumer], -graph.start_ns[consumer]))
    for source, target in zip(producer[order].tolist(), consumer[order].tolist(), strict=True):
        allowed = latest[target] - takes[target]
        if allowed < latest[source]:
            latest[source] = allowed
    return np.array(latest, np.int64)
