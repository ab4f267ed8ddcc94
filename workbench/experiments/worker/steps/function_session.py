"""A FunctionProgram running in the child process; its plan, steps and traces.

The same methods as `graph_session.ProgramSession` has.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.core.capture.cpu_time import StepClock
from workbench.core.capture.function_capture import FunctionRecorder
from workbench.core.capture.fusable import with_fusable
from workbench.core.executor.policy import executor
from workbench.core.function.plan import plan_function
from workbench.core.function.rewrite import split
from workbench.core.function.run import FunctionRun, FunctionRunner, FunctionRunners, build_runner
from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import Trace
from workbench.errors import RunError
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.variant import LEARNING
from workbench.experiments.worker.steps.first_steps import Rest
from workbench.experiments.worker.steps.function_step import TrainingStep, training_step
from workbench.experiments.worker.steps.graph_session import (
    fused_parts,
    rounded_otherwise,
    verified,
)
from workbench.experiments.worker.steps.scored_steps import ScoredSteps
from workbench.experiments.worker.steps.traced_steps import settling_steps
from workbench.experiments.worker.tensorflow_import import gpu_names
from workbench.experiments.worker.wire.messages import (
    SCORES,
    Opened,
    Planned,
    Steps,
    Verified,
)
from workbench.keras_in_use import keras_in_use
from workbench.ops.lookup.fusion import fused_embeddings

# Of weights, shuffles and dropout: every variant begins alike.
_SEED = 1


class FunctionSession:
    """A step and its data, run element by element under an executor policy, staged or not."""

    def __init__(
        self,
        program: FunctionProgram,
        optimizations: Optimizations,
        *,
        recorded: bool = False,
        rounding: int = 0,
        scored: bool = False,
    ) -> None:
        """Makes the step and the data, and traces the step's function once.

        Args:
          program: what is run.
          optimizations: what it is run with. A smart stage is the widest legal one, or
            has the boundary that its options name.
          recorded: on an executor that records its ops: the normal one, where none is chosen.
          rounding: by how many numbers of its type each trainable weight is moved, up or down.
          scored: its labels and scores will be read.
        """
        self._name = program.name
        self._policy = optimizations.executor or (ExecutorPolicy.NORMAL if recorded else None)
        self._plan: StagePlan | None = None
        keras_in_use().utils.set_random_seed(_SEED)
        with fused_embeddings(optimizations.built_fusion):
            training = training_step(program, optimizations, scored=scored)
            # Traced for any element, and outside of an executor's context: what runs is the same
            # function with and without a stage, under each policy.
            function = training.concrete()
        parts = fused_parts(function.graph.as_graph_def())
        if optimizations.fuses_graph:
            plain, function = function, training.fused(function)
            fused = fused_parts(function.graph.as_graph_def())
            parts = 0 if function is plain else fused
        for variable in function.graph.trainable_variables if rounding else ():
            if variable.dtype.is_floating:
                variable.assign(rounded_otherwise(variable.numpy(), rounding))
        self._training = training
        self._function = function
        self._loss_of = training.reader("loss" if training.has_loss else "nothing")
        self._loop: _PlainLoop | _StagedLoop = _PlainLoop(training)
        if optimizations.smart_stage is not None:
            self._plan = plan_function(function, optimizations.smart_stage)
            runner = build_runner(split(function, self._plan), training.dataset.element_spec)
            self._loop = _StagedLoop(training.dataset, runner)
        stages = self._plan.stages if self._plan else ()
        settling = settling_steps([stage.options for stage in stages])
        self._rest = Rest(settling=settling, reads_ahead=training.own_prefetch)
        self.opened = Opened(
            stages=0,
            fused_ops=parts,
            threads=self._plan.stages[0].options.num_threads if self._plan else 0,
            has_loss=training.has_loss,
            has_fingerprint=training.has_fingerprint,
            has_scores=training.has_scores,
            inter_op_threads=tf.config.threading.get_inter_op_parallelism_threads(),
            intra_op_threads=tf.config.threading.get_intra_op_parallelism_threads(),
            inject_prefetch=training.inject_prefetch,
            own_prefetch=training.own_prefetch,
            end_counts=training.end_counts,
            gpus=gpu_names(),
        )

    def run(self, steps: int, fetch: str) -> Steps:
        """Runs up to `steps` steps, fetching what `RunSteps` says with each."""
        reads_scores = fetch == SCORES
        read = self._training.reader("loss" if reads_scores else fetch)
        clock = time.perf_counter_ns
        ends, values, scored = [clock()], [], ScoredSteps()
        ended = False
        with _on(self._policy):
            try:
                for _ in range(steps):
                    got = self._loop.step()
                    if read is not None:
                        values.append(read(got))
                    if reads_scores:
                        scored.add(got["labels"], got["scores"])
                    ends.append(clock())
            except StopIteration:
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
        with self._repeated():
            self._rest.run_until_over(self._run)

    def measure(self, clock: StepClock, steps: int) -> None:
        """Runs untraced steps, noted by the clock, after some that take what was ready before."""
        self.end_rest()
        with self._repeated():
            for _ in range(steps):
                clock.begin()
                self._step()
                clock.end()

    def trace(self, steps: int, *, step_stats: bool = False) -> Trace:
        """Traces `steps` steps, after some that take what was ready before.

        The session must run on an executor that records its ops; a function has no step stats.
        """
        assert self._policy is not None and not step_stats
        self.end_rest()
        recorder = FunctionRecorder(self._name, self._loop.runner)
        with self._repeated():
            try:
                self._loop.reads = recorder.reads
                recorder.start()
                for number in range(1, steps + 1):
                    with recorder.step(number):
                        self._step()
            except BaseException:
                recorder.abandon()
                raise
            finally:
                self._loop.reads = None
        return with_fusable(recorder.stop(), self._function)

    def _run(self, steps: int) -> None:
        for _ in range(steps):
            self._step()

    def _step(self) -> None:
        """A step whose loss is read, if it has one."""
        got = self._loop.step()
        if self._loss_of is not None:
            self._loss_of(got)

    @contextlib.contextmanager
    def _repeated(self) -> Iterator[None]:
        """The session's executor, and what it means that a loop which begins anew ends."""
        try:
            with _on(self._policy):
                yield
        except StopIteration:
            raise RunError(f"the dataset of {self._name!r} is empty") from None
        finally:
            self._rest.begin()

    def verify(self) -> Verified:
        """Compares what is fused with the step as it was, on the first element of the data."""
        return verified(self._training.verify())

    def planned(self) -> Planned:
        """The plan of its smart stage."""
        if self._plan is None:
            raise RunError("this session has no smart stage, so it has no plan")
        return Planned.of(self._plan)

    def close(self) -> None:
        """Ends what runs ahead."""
        self._loop.restart()


def _on(policy: ExecutorPolicy | str | None) -> contextlib.AbstractContextManager[None]:
    if policy is None:
        return contextlib.nullcontext()
    return executor(policy, start_step=LEARNING.start_step, stop_step=LEARNING.stop_step)


class _PlainLoop:
    """The loop that a user writes: one element after the other, each handed to the step.

    Attributes:
      runner: None, as nothing runs ahead.
      reads: where to note when an element was read, (start, end) in ns; None notes nothing.
    """

    def __init__(self, training: TrainingStep) -> None:
        self.runner: FunctionRunner | None = None
        self.reads: list[tuple[int, int]] | None = None
        self._training = training
        self._iterator: Any = None

    def step(self) -> Any:
        """Runs the next step; StopIteration where there is not a single element."""
        if self._iterator is None:
            self._iterator = iter(self._training.dataset)
        start_ns = time.time_ns()
        try:
            element = next(self._iterator)
        except StopIteration:
            self._iterator = iter(self._training.dataset)
            element = next(self._iterator)
        if self.reads is not None:
            self.reads.append((start_ns, time.time_ns()))
        return self._training.call(element)

    def restart(self) -> None:
        """The next step is the first of the data."""
        self._iterator = None


class _StagedLoop:
    """What iterating over `wb.smart_stage(step, dataset)` does, one epoch after the other."""

    def __init__(self, dataset: Any, runner: FunctionRunner) -> None:
        self.runner: FunctionRunner | None = runner
        self.reads: list[tuple[int, int]] | None = None
        self._dataset = dataset
        self._runners = FunctionRunners(lambda: runner)
        self._run: FunctionRun | None = None

    def step(self) -> Any:
        """Runs the next step; StopIteration where there is not a single element."""
        if self._run is None:
            return self._first()
        try:
            return self._run.step()
        except StopIteration:
            return self._first()

    def restart(self) -> None:
        """Ends what runs ahead; the next step is the first of the data."""
        if self._run is not None:
            self._run.stop()
        self._run = None

    def _first(self) -> Any:
        # On the executor of the thread that calls: the calls take it along.
        self.restart()
        self._run = self._runners.start(iter(self._dataset))
        return self._run.step()
