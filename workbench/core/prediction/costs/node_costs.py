"""Costs: what a step of one program costs, node by node, and the work of a side out of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from workbench.core.graph.graph_view import Bools, GraphView
from workbench.core.prediction.costs.added_ops import AddedOp
from workbench.core.simulation.dispatch import NORMAL, Dispatch
from workbench.core.simulation.list_schedule import Scheduled, schedule
from workbench.core.simulation.pipeline import Input, PipelineStage, Work, outside_ops

# What one run of a stage takes of its thread outside its ops: the Python loop, the prepared call,
# put, and take of 40 tensors. Measured: a chain of 1 to 3 stages that do nothing, 60 to 70 µs of
# CPU for each.
STAGE_RUN_NS = 60_000.0
# What a step takes of its client at least: a session.run of a small graph.
CALL_NS = 60_000.0
# The kernel clears a page and maps it: 2.1 to 2.5 µs more of CPU time for each, measured on a DIN
# with 185 to 10,000 faults a step, 2 cores of a virtual machine.
FAULT_NS = 2_000.0


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Costs:
    """What a step of one program costs; times in ns, with tracing off.

    Attributes:
      span_ns: float64 [nodes], time of each node in a step when it has the cores that it can use,
        wherever it runs; with what the executor does around it, without inputs.
      cores_per_op: cores that a running op keeps busy, on average, against what is known of its
        kind: below 1 where ops wait by themselves.
      lanes: float64 [nodes], ops that run side by side while a node runs: more than 1 where it
        calls a function. None: 1 of each.
      splits: bool [nodes], which nodes split their work among threads; None: none does.
      split_cores: that such a node keeps busy when no other runs.
      inputs: what delivers the items, by number of its node.
      client_ns: time of a step before its first op.
      calling_ns: of it, to call a function with the input that the client has fetched, which is
        shorter where a stage delivers the input: that calls it without Python.
      faults_ns: of the ops' time, what the kernel takes to hand out new pages.
      added: ops that TensorFlow's optimizer added, with their places in the graph.
      unmatched_ns: time in a step of other ops that the graph lacks.
      step_scales: time of each step's ops against the mean.
      cores: of the machine.
      inter_op_threads: of the session; 0 is one for each core.
      packs: the machine keeps a process that mostly waits on few cores.
      runs: float64 [nodes], how often each runs in a step; None where it is not known.
      dispatch: how the executor hands nodes to threads.
      between_ns: from one op of a thread to the next; part of the span of each node.
      wake_ns: until a thread that rests takes up a node.
      unevenness: how much longer steps take whose ops vary from step to step than one of their
        means: threads that share a step wait for the longer of two ops more often.
      scale: measured step time against the simulation of what was traced, where that cannot be
        explained otherwise; every prediction is multiplied by it.
      replayed_ns: of a step of what was traced, simulated without knowing how long it took; 0 where
        the trace does not say how long an untraced step takes.
    """

    span_ns: np.ndarray
    cores_per_op: float = 1.0
    lanes: np.ndarray | None = None
    splits: np.ndarray | None = None
    split_cores: float = 1.0
    inputs: dict[int, Input] = dataclasses.field(default_factory=dict)
    client_ns: float = 0.0
    calling_ns: float = 0.0
    faults_ns: float = 0.0
    added: tuple[AddedOp, ...] = ()
    unmatched_ns: float = 0.0
    step_scales: tuple[float, ...] = (1.0,)
    cores: int = 1
    inter_op_threads: int = 0
    packs: bool = False
    runs: np.ndarray | None = None
    dispatch: Dispatch = NORMAL
    between_ns: float = NORMAL.op_ns
    wake_ns: float = 0.0
    unevenness: float = 1.0
    scale: float = 1.0
    replayed_ns: float = 0.0

    @property
    def node_cores(self) -> np.ndarray:
        """Cores that each node uses while it runs, float64 [nodes]."""
        cores = np.full(len(self.span_ns), self.cores_per_op)
        if self.splits is not None:
            both = self.cores_per_op * self.split_cores
            cores[self.splits] = min(both, max(self.cores_per_op, self.cores))
        return cores if self.lanes is None else cores * self.lanes

    @property
    def op_ns(self) -> np.ndarray:
        """Time of the ops of each node, those side by side counted one by one, float64 [nodes]."""
        return self.span_ns if self.lanes is None else self.span_ns * self.lanes

    @property
    def added_ns(self) -> float:
        """Time in a step of the ops that TensorFlow's optimizer added, where all are there."""
        return sum(each.ns for each in self.added)

    @property
    def work_ns(self) -> np.ndarray:
        """CPU time of each node in a step, float64 [nodes]."""
        work = self.span_ns * self.node_cores
        for node, each in self.inputs.items():
            work[node] += each.work.cpu_ns
        return work

    @property
    def wait_ns(self) -> np.ndarray:
        """Time in a step that each node waits without a core, float64 [nodes]."""
        wait = np.zeros(len(self.span_ns))
        for node, each in self.inputs.items():
            wait[node] = each.wait_ns
        return wait

    def dispatched(self, dispatch: Dispatch) -> Costs:
        """What the same nodes cost on another executor."""
        span_ns, lanes = self.span_ns, self.lanes
        if dispatch.serial and lanes is not None:
            span_ns, lanes = self.op_ns, None
        between_ns = self.between_ns * dispatch.op_ns / self.dispatch.op_ns
        if self.runs is not None:
            saved = (self.between_ns - between_ns) * self.runs
            span_ns = np.maximum(span_ns - (saved if lanes is None else saved / lanes), 0.0)
        # On a pool a step begins by waking a thread, and ends by waking its client.
        woken_ns = 2 * self.wake_ns * (dispatch.calls - self.dispatch.calls)
        return dataclasses.replace(
            self,
            span_ns=span_ns,
            lanes=lanes,
            between_ns=between_ns,
            client_ns=max(0.0, self.client_ns - woken_ns),
            dispatch=dispatch,
        )

    def pool(self, cores: int) -> int:
        """Inter-op threads on a machine of `cores` cores."""
        return self.inter_op_threads or cores

    def stage(
        self,
        view: GraphView,
        chosen: Bools,
        *,
        name: str,
        after: Sequence[int],
        threads: int,
        capacity: int,
        cores: int,
        unmatched_ns: float = 0.0,
    ) -> PipelineStage:
        """A stage that runs the chosen nodes."""
        ops = self._ops(view, chosen, cores, unmatched_ns)
        return PipelineStage(
            name=name,
            work=ops.behind.then(outside_ops(STAGE_RUN_NS)),
            inputs=self._inputs_in(chosen),
            beside=ops.beside,
            after=tuple(after),
            threads=threads,
            capacity=capacity,
        )

    def step(
        self,
        view: GraphView,
        chosen: Bools,
        *,
        name: str,
        after: Sequence[int],
        clients: int,
        cores: int,
        unmatched_ns: float,
    ) -> PipelineStage:
        """The step, of which the chosen nodes are left."""
        ops = self._ops(view, chosen, cores, unmatched_ns)
        saved_ns = max(0.0, self.calling_ns - CALL_NS) if after else 0.0
        return PipelineStage(
            name=name,
            work=outside_ops(max(0.0, self.client_ns - saved_ns)).then(ops.behind),
            inputs=self._inputs_in(chosen),
            beside=ops.beside,
            after=tuple(after),
            threads=clients,
        )

    def _inputs_in(self, chosen: Bools) -> tuple[Input, ...]:
        return tuple(each for node, each in self.inputs.items() if chosen[node])

    def _ops(
        self,
        view: GraphView,
        chosen: Bools,
        cores: int,
        unmatched_ns: float,
    ) -> Scheduled:
        alone = self._alone(view, chosen, cores)
        beside, behind = alone.beside, alone.behind
        if not self.dispatch.serial:
            beside, behind = beside.longer(self.unevenness), behind.longer(self.unevenness)
        if unmatched_ns > 0:
            pooled = 0.0 if self.dispatch.serial else 1.0
            added = (unmatched_ns, pooled, min(float(cores), self.cores_per_op))
            behind = behind.then(Work(pieces=(added,)))
        return Scheduled(beside=beside, behind=behind)

    def _alone(self, view: GraphView, chosen: Bools, cores: int) -> Scheduled:
        """How the chosen nodes run by themselves; candidates share sides, so each is kept."""
        side = (cores, np.packbits(chosen).tobytes())
        if side not in self._scheduled:
            self._scheduled[side] = schedule(
                view,
                chosen,
                self._with_added(chosen),
                threads=self.pool(cores),
                cores=cores,
                cores_per_op=self.cores_per_op,
                lanes=self.lanes,
                splits=self.splits,
                split_cores=self.split_cores,
                dispatch=self.dispatch,
                wake_ns=self.wake_ns,
                inputs_ns={
                    node: each.item_ns
                    for node, each in self.inputs.items()
                    # A function begins when its client has fetched all of its arguments.
                    if not each.ahead and node not in view.arguments
                },
            )
        return self._scheduled[side]

    def _with_added(self, chosen: Bools) -> np.ndarray:
        """Time of each node, with the added ops that are there when these nodes are together."""
        span_ns = self.span_ns.copy()
        for each in self.added:
            if chosen[list(each.nodes)].all():
                span_ns[each.host] += each.ns
        return span_ns

    @functools.cached_property
    def _scheduled(self) -> dict[tuple[int, bytes], Scheduled]:
        """By cores and the chosen nodes of the one graph that these costs are of."""
        return {}
