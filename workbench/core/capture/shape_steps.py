"""ShapeSteps: the few runs of a session that tell the shapes of all its tensors.

The main step tells them once, and so does one run of each stage. They take longer than others, for
TensorFlow's step stats are on, and are no part of a trace.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from typing import Any

import tensorflow as tf

from workbench.core.capture.node_shapes import NodeShapes, node_shapes
from workbench.core.session.running.stage_run import StageRun, live_runs
from workbench.core.session.session_facts import trace_level
from workbench.core.staging.stage_record import StageRunRecord
from workbench.core.trace.trace import Trace

_LOG = logging.getLogger("workbench")
# A stage whose buffer is full runs once a step has taken an item; the worker of an experiment runs
# so many steps for it, see `traced_steps.SHAPE_STEPS`.
_MOST_STEPS = 8


class ShapeSteps:
    """Asks the main step and each stage of a session for their shapes.

    Attributes:
      ended: whether what was asked for is there, or was waited for long enough.
    """

    def __init__(self, session: Any) -> None:
        """`session` is a raw one, without a server."""
        self.ended = False
        self._level = trace_level(session)
        self._lock = threading.Lock()
        self._steps = 0
        self._main: Any = None
        self._staged: dict[str, Any] = {}
        self._stages: list[StageRun] = list(live_runs(session))
        for stage in self._stages:
            stage.step_stats = stage.graphs = True
            stage.sink = self._add_stage_run

    def options(self) -> Any:
        """The RunOptions of the next run of the main step, which returns its metadata."""
        return tf.compat.v1.RunOptions(
            trace_level=self._level, output_partition_graphs=self._main is None
        )

    def add_step(self, metadata: Any) -> None:
        """Adds the metadata of a run of the main step."""
        with self._lock:
            self._steps += 1
            if self._main is None:
                self._main = metadata
            waits = len(self._staged) < len({stage.runner.stage for stage in self._stages})
        if not waits or self._steps >= _MOST_STEPS:
            self.end()

    def end(self) -> None:
        """Stages run as before."""
        self.ended = True
        for stage in self._stages:
            stage.sink = None
            stage.step_stats = stage.graphs = False

    def added_to(self, trace: Trace) -> Trace:
        """A trace of that session with the shapes; without, and with a warning, where they fail."""
        shapes: NodeShapes = {}
        try:
            for metadata in filter(None, [*self._staged.values(), self._main]):
                shapes |= node_shapes(metadata)
        # No error in what tools of another version of TensorFlow return is worth a trace.
        except Exception as error:
            _LOG.warning(
                "the trace does not know the shapes of its tensors: %s: %s",
                type(error).__name__,
                error,
            )
            return trace
        told = [shapes.get(name, ("", "")) for name in trace.nodes["name"].tolist()]
        inputs, outputs = [read for read, _ in told], [made for _, made in told]
        return dataclasses.replace(trace, nodes=trace.nodes.assign(inputs=inputs, outputs=outputs))

    def _add_stage_run(self, run: StageRunRecord) -> None:
        # Called by the thread that ran it.
        if run.metadata is not None and len(run.metadata.partition_graphs):
            with self._lock:
                self._staged.setdefault(run.stage, run.metadata)


def with_shapes_of(trace: Trace, other: Trace) -> Trace:
    """A trace with the shapes that another one of the same graph knows."""
    columns = (other.nodes[name].tolist() for name in ("name", "op", "inputs", "outputs"))
    known = {(name, op): shapes for name, op, *shapes in zip(*columns, strict=True)}
    keys = zip(trace.nodes["name"].tolist(), trace.nodes["op"].tolist(), strict=True)
    told = [known.get(key, ["", ""]) for key in keys]
    return dataclasses.replace(
        trace,
        nodes=trace.nodes.assign(
            inputs=[read for read, _ in told], outputs=[made for _, made in told]
        ),
    )
