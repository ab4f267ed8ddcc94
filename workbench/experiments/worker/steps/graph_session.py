"""One part of a program, running in a session of the child process; its plan, steps and traces."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.core.capture.cpu_time import StepClock
from workbench.core.graph.workbench_ops import WORKBENCH_OPS
from workbench.core.optimizations import Optimizations
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.errors import RunError
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker.steps.built_part import build_part
from workbench.experiments.worker.steps.closing import free_in_background
from workbench.experiments.worker.steps.first_steps import Rest
from workbench.experiments.worker.steps.scored_steps import (
    ScoredSteps,
    has_scores,
    to_be_scored,
)
from workbench.experiments.worker.steps.session_config import wished_config, with_plan
from workbench.experiments.worker.steps.traced_steps import SHAPE_STEPS, settling_steps
from workbench.experiments.worker.tensorflow_import import gpu_names
from workbench.experiments.worker.wire.messages import (
    SCORES,
    Opened,
    Planned,
    Steps,
    Verified,
)

if TYPE_CHECKING:
    from workbench.core.fusion.verify.verification import Verification
    from workbench.experiments.worker.steps.stubbed_steps import StubbedStep


def rounded_otherwise(values: np.ndarray, rounding: int) -> np.ndarray:
    """Each value moved up or down, as this rounding draws, by `rounding` numbers of its type."""
    up = np.random.default_rng(rounding).integers(2, size=values.shape, dtype=np.int8)
    return values + (2 * up - 1) * values.dtype.type(rounding) * np.spacing(values)


class ProgramSession:
    """One program part, running in a MonitoredTrainingSession."""

    def __init__(
        self,
        program: Program,
        part: str,
        optimizations: Optimizations,
        sample: Trace | None = None,
        plan: str | None = None,
        recorded: bool = False,
        stub: Callable[[], StubbedStep] | None = None,
        rounding: int = 0,
        scored: bool = False,
    ) -> None:
        """Builds the part and starts its session.

        Args:
          program, part: what is run.
          optimizations: what it is built with.
          sample: a trace for a smart stage to be planned on.
          plan: the smart stage's plan as JSON; None makes one.
          recorded: on an executor that records its ops: the normal one, where neither the program
            nor the optimizations choose another; without any, step stats do.
          stub: builds the step without some work, in place of the part.
          rounding: by how many numbers of its type each trainable weight is moved, up or down.
          scored: its labels and scores will be fetched.
        """
        import tensorflow as tf

        from workbench.core.capture.session_capture import CaptureHook
        from workbench.core.fusion.plan import plan_fusion
        from workbench.core.session.prefetch_hook import make_prefetch_hook, runners
        from workbench.core.session.rewrite import apply

        v1 = tf.compat.v1
        self._out_of_range = tf.errors.OutOfRangeError
        with tf.Graph().as_default() as graph:
            stubbed = stub() if stub else None
            built = stubbed.built if stubbed else build_part(program, part, optimizations)
            self._built = to_be_scored(built, scored)
            config = wished_config(self._built, optimizations, recorded=recorded)
            self._fusion = fusion = plan_fusion(graph) if optimizations.fuses_graph else None
            if fusion is not None:
                config = apply(fusion, config)
            config, self._plan = with_plan(
                graph, self._built, config, optimizations.smart_stage, sample=sample, plan=plan
            )
            self._capture = CaptureHook(title=program.name)
            hooks = [*self._built.hooks, make_prefetch_hook(), self._capture]
            # A widened stage counts twice; a few steps more do no harm.
            stages = [runner.options for runner in runners(graph)]
            stages += [stage.options for stage in self._plan.stages] if self._plan else []
            self._settling = settling_steps(stages)
            fused = fusion.count if fusion else fused_parts(graph.as_graph_def())
            self.opened = _opened(graph, built, self._plan, config, fused, stubbed)
            self._rest = Rest(settling=self._settling, reads_ahead=self.opened.own_prefetch)
            self._session = v1.train.MonitoredTrainingSession(hooks=hooks, config=config)
            if rounding:
                weights = v1.trainable_variables()
                _round_otherwise(self._session._tf_sess(), weights, rounding)

    def run(self, steps: int, fetch: str) -> Steps:
        """Runs up to `steps` steps, fetching what `RunSteps` says with each."""
        built = self._built
        wanted = {
            "nothing": [],
            "loss": [built.loss],
            "fingerprint": [built.fingerprint],
            SCORES: [built.loss, built.labels, built.scores],
        }[fetch]
        fetches = [built.train_op, *wanted]
        run, clock = self._session.run, time.perf_counter_ns
        ends, values, scored = [clock()], [], ScoredSteps()
        ended = False
        try:
            for _ in range(steps):
                got = run(fetches)
                ends.append(clock())
                if wanted:
                    values.append(got[1])
                if fetch == SCORES:
                    scored.add(*got[2:])
        except self._out_of_range:
            ended = True
        self._rest.begin()
        return Steps(
            ends_ns=np.array(ends, np.int64),
            values=np.array(values),
            ended=ended,
            scored=scored.pairs(),
        )

    def end_rest(self) -> None:
        """Runs steps until the machine is warm and what was ready before is used up."""
        self._rest.run_until_over(self._run_as_traced)

    def measure(self, clock: StepClock, steps: int) -> None:
        """Runs untraced steps, noted by the clock, after some that take what was ready before."""
        self.end_rest()
        before, self._capture.clock = self._capture.clock, clock
        self._run_as_traced(steps)
        self._capture.clock = before

    def trace(self, steps: int, *, step_stats: bool = False) -> Trace:
        """Traces `steps` steps.

        Those before them are not kept: they set the tracer up, use up what was ready, and tell the
        shapes of all tensors. They also tell how many cores the input uses, which a thread must
        watch that would lengthen the steps to keep.
        """
        from workbench.core.capture.shape_steps import with_shapes_of

        self.end_rest()
        self._capture.start(step_stats=step_stats, ask_rules=False, shapes=True)
        self._run_as_traced(self._settling + SHAPE_STEPS + steps)
        before = self._capture.stop()
        self.end_rest()
        self._capture.start(step_stats=step_stats, sample_cpu=False)
        self._run_as_traced(steps)
        trace = with_shapes_of(self._capture.stop(), before)
        meta = dataclasses.replace(
            trace.meta,
            source_cores=before.meta.source_cores,
            packs_when_idle=before.meta.packs_when_idle,
        )
        return dataclasses.replace(trace, meta=meta)

    def _run_as_traced(self, steps: int) -> None:
        if self.run(steps, "loss" if self.opened.has_loss else "nothing").ended:
            raise RunError("the data ended before the steps to trace; repeat the dataset")

    def verify(self) -> Verified:
        """Compares what is fused with the graph's own nodes, on a batch of its own."""
        if self._fusion is None:
            raise RunError("nothing of this session's graph is fused, so nothing can be verified")
        return verified(self._fusion.verify(self._session))

    def planned(self) -> Planned:
        """The plan of its smart stage."""
        if self._plan is None:
            raise RunError("this session has no smart stage, so it has no plan")
        return Planned.of(self._plan)

    def close(self) -> None:
        """Ends the session."""
        held = self._session._tf_sess()
        if held is not None:
            free_in_background(held)
        self._session.close()


def verified(verification: Verification) -> Verified:
    """What a verification says, for a parent."""
    detail = "; ".join(verification.describe().splitlines())
    return Verified(right=verification.right, detail=detail)


def fused_parts(definition: Any) -> int:
    """How many ops of a GraphDef stand for something that is fused, those in functions too."""
    functions = (node for function in definition.library.function for node in function.node_def)
    nodes = itertools.chain(definition.node, functions)
    return sum(node.op in WORKBENCH_OPS and WORKBENCH_OPS[node.op].is_part for node in nodes)


def _opened(
    graph: Any,
    built: Built,
    plan: StagePlan | None,
    config: Any,
    fused: int,
    stubbed: StubbedStep | None,
) -> Opened:
    """What is told of the session, of whose graph `fused` lookups are fused."""
    from workbench.core.session.prefetch_hook import runners

    return Opened(
        stages=len(runners(graph)),
        fused_ops=fused,
        threads=_most_threads(runners(graph), plan),
        has_loss=built.loss is not None,
        has_fingerprint=built.fingerprint is not None,
        has_scores=has_scores(built.labels, built.scores) and built.loss is not None,
        inter_op_threads=config.inter_op_parallelism_threads,
        intra_op_threads=config.intra_op_parallelism_threads,
        left_out=stubbed.left_out if stubbed else (),
        kept=stubbed.kept if stubbed else (),
        gpus=gpu_names(),
        **_pipeline_facts(graph),
    )


def _most_threads(runners: Sequence[Any], plan: StagePlan | None) -> int:
    counts = [len(runner.puts) for runner in runners]
    counts += [stage.options.num_threads for stage in plan.stages] if plan else []
    return max(counts, default=0)


def _pipeline_facts(graph: Any) -> dict[str, Any]:
    """Whether the tf.data pipelines of a graph prefetch, by themselves or by TensorFlow."""
    from tensorflow.core.framework import dataset_options_pb2

    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    datasets = [node for node in nodes if "Dataset" in node.op]
    state = "on, TensorFlow's default" if datasets else "no tf.data pipeline"
    for node in datasets:
        if node.op == "OptionsDataset":
            options = dataset_options_pb2.Options()
            options.ParseFromString(node.attr["serialized_options"].s)
            optimization = options.optimization_options
            if optimization.WhichOneof("optional_inject_prefetch"):
                state = "on" if optimization.inject_prefetch else "off"
    return {
        "inject_prefetch": state,
        "own_prefetch": any(node.op.startswith("PrefetchDataset") for node in datasets),
    }


def _round_otherwise(session: Any, variables: Sequence[Any], rounding: int) -> None:
    """Moves weights of a session whose graph is finished: their initializers are fed."""
    floating = [each for each in variables if each.dtype.base_dtype.is_floating]
    for variable, values in zip(floating, session.run(floating), strict=True):
        variable.load(rounded_otherwise(values, rounding), session)
