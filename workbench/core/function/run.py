"""FunctionRunner: a step's function cut around a buffer; FunctionRun: the threads of one epoch.

A runner is built once and holds no data. Started on an iterator it becomes a FunctionRun: threads
that each read a batch, run the staged half and put, in one call that holds no Python lock; and
`step`, which takes and runs the compute half in one call.
"""

from __future__ import annotations

import dataclasses
import functools
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from workbench.core.function.allowance import Allowance
from workbench.core.function.call import Cancellation, FunctionCall
from workbench.core.function.rewrite import Halves
from workbench.core.options import StageOptions
from workbench.core.staging.buffer import CLOSED, ENDED, Buffer, is_parked
from workbench.core.staging.buffer_names import give_back_with, lend_name
from workbench.core.staging.end_at_exit import end_at_exit, is_of_this_process
from workbench.core.staging.error_codes import closed_codes, error_codes
from workbench.core.staging.producer import Producers

_CPU = "/device:CPU:0"
# In native/staging/buffer/stage_messages.cc, said by a take after the end of the input alone.
_END_OF_INPUT = "its producers reached the end of their input"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FunctionRunner:
    """What runs a step's function in two halves.

    Attributes:
      halves: the function, cut.
      buffer: what is between them; no other runner has it.
      produce: concrete function of an iterator and an owner: reads, runs ahead, puts.
      consume: concrete function of nothing: takes, computes.
    """

    halves: Halves
    buffer: Buffer
    produce: Any
    consume: Any

    @property
    def options(self) -> StageOptions:
        """The stage's options."""
        return self.halves.stage.options


class FunctionRunners:
    """Runners of one cut function: as many as run at the same time, each built when it is needed.

    A buffer belongs to one run at a time, and what runs on it is a function of its own.
    """

    def __init__(self, build: Callable[[], FunctionRunner]) -> None:
        self._build = build
        self._idle: list[FunctionRunner] = []

    def start(self, iterator: Any, epoch_steps: int | None = None) -> FunctionRun:
        """Starts the producing threads on a `tf.data.Iterator`, which they then use up.

        They hold the iterator's data, not the Python object.

        Args:
          iterator: of one epoch, or of several.
          epoch_steps: the steps of an epoch beyond whose end nothing may be read before the next
            one has begun; None lets the threads run ahead as far as there is room.
        """
        runner = self._idle.pop() if self._idle else self._build()
        tensors = tf.nest.flatten(iterator, expand_composites=True)
        allowance = Allowance(epoch_steps) if epoch_steps else None
        return FunctionRun(runner, tensors, lambda: self._idle.append(runner), allowance)


def build_runner(
    halves: Halves, element_spec: Any, arguments: Callable[[Any], Any] = lambda element: element
) -> FunctionRunner:
    """Builds a runner, with a buffer of its own.

    Args:
      halves: the cut function.
      element_spec: of the datasets that it will run on.
      arguments: the function's arguments, in any nest, for one element.
    """
    stage = halves.stage
    capacity = stage.options.capacity
    kind = (stage.name, capacity, tuple(spec.dtype.name for spec in halves.travels))
    name = lend_name(kind)
    at = Buffer(shared_name=name, capacity=capacity, stage=stage.name)

    @_on_any_device
    def produce(iterator: Any, owner: tf.Tensor) -> None:
        batch = tf.nest.flatten(arguments(iterator.get_next()), expand_composites=True)
        batch = [tensor for tensor in batch if tensor is not None]
        tensors, effects = halves.ahead(batch)
        # Also what does not travel must have been there: the end of the input puts nothing.
        with tf.control_dependencies([*batch, *effects]), tf.device(_CPU):
            at.put(
                owner,
                tensors,
                timeout_millis=stage.options.timeout_millis,
                stream_id=stage.options.stage_subgraph_stream_id,
                reserve=bool(stage.stale_lookups),
            )

    @_on_any_device
    def consume() -> Any:
        travels = halves.travels
        with tf.device(_CPU):
            taken = at.take(
                [spec.dtype for spec in travels],
                shapes=[spec.shape for spec in travels],
                name="workbench_take",
            )
        graph = tf.compat.v1.get_default_graph()
        return halves.compute(taken, graph.get_operation_by_name("workbench_take"))

    runner = FunctionRunner(
        halves=halves,
        buffer=at,
        produce=_traced(produce, tf.data.IteratorSpec(element_spec), tf.TensorSpec([2], tf.int64)),
        consume=_traced(consume),
    )
    give_back_with(runner, kind, name)
    return runner


def _on_any_device(body: Callable[..., Any]) -> Callable[..., Any]:
    """A body whose ops are where the step's function put them, wherever it is traced."""

    @functools.wraps(body)
    def traced(*arguments: Any) -> Any:
        with tf.device(None):
            return body(*arguments)

    return traced


def _traced(body: Callable[..., Any], *specs: Any) -> Any:
    return tf.function(body, autograph=False).get_concrete_function(*specs)


class FunctionRun:
    """The producers of one epoch with the ProducerOps that they call, and the steps that take."""

    def __init__(
        self,
        runner: FunctionRunner,
        iterator: Sequence[tf.Tensor],
        on_stop: Callable[[], None],
        allowance: Allowance | None = None,
    ) -> None:
        self._on_stop = on_stop
        self._allowance = allowance
        self._stage = runner.halves.stage.name
        self._buffer = runner.buffer
        self._options = options = runner.options
        self._token = secrets.randbits(62) + 1
        # In the message that ends takes, so that an error of the compute half is told from it.
        self._failed = f"stage {self._stage!r} failed to produce ({self._token})"
        self._error: BaseException | None = None
        self._ended = False
        self._lock = threading.Lock()
        whole = runner.halves.function
        self._consume = FunctionCall(runner.consume, part_of=whole)
        self._cancellations = [Cancellation() for _ in range(options.num_threads)]
        self._puts = [
            FunctionCall(runner.produce, part_of=whole, prefix=self._stage, cancel=each)
            for each in self._cancellations
        ]
        # Also when this thread is just tracing a function.
        with tf.init_scope(), tf.device(_CPU):
            self._arguments = [
                [*iterator, tf.constant([self._token, thread], tf.int64)]
                for thread in range(options.num_threads)
            ]
        self._producers = Producers(
            self._stage,
            self,
            options.num_threads,
            closed_codes=closed_codes(options),
            ignored_codes=error_codes(options.ignored_exception_types),
        )
        _on_buffer(self._buffer.resume, [self._token, -1])
        end_at_exit(self)
        self._producers.start()

    @property
    def threads(self) -> list[threading.Thread]:
        """Where it produces."""
        return self._producers.threads

    @property
    def ignored(self) -> int:
        """Batches skipped so far because of an ignored exception."""
        return self._producers.ignored

    def step(self) -> Any:
        """Takes a batch, waiting for one, and runs the compute half.

        Raises:
          StopIteration: the input has ended and every batch was taken, or the run was stopped.
          BaseException: the error of a producer after all that was put before it, or one of the
            compute half; the run is stopped then.
        """
        if self._producers.stops:
            raise StopIteration
        if self._allowance:
            self._allowance.step()
        try:
            return self._consume()
        except tf.errors.OpError as error:
            ends = self._error if self._failed in error.message else None
            if isinstance(error, tf.errors.OutOfRangeError) and _END_OF_INPUT in error.message:
                ends = StopIteration()
            self.stop()
            if ends is None:
                raise
            try:
                raise ends from None
            finally:
                # The error refers to this frame: both would wait for the garbage collector.
                del ends
        except BaseException:
            self.stop()
            raise

    def end(self) -> bool:
        """Cancels what the producers do; False if that was done before."""
        first = self._producers.announce_stop()
        if first:
            for cancellation in self._cancellations:
                cancellation.cancel()
            if self._allowance:
                self._allowance.give(self._options.num_threads)
            self._cancel(tf.errors.CANCELLED, f"stage {self._stage!r} was stopped")
        return first

    def close(self) -> None:
        """Does nothing: what `end` cancels is all that the producers wait for."""

    def stop(self) -> None:
        """Ends the producers, waits for that a few seconds at most, and drops what they made."""
        if not is_of_this_process(self) or not self.end():
            return
        self._producers.join()
        self._error = None
        # A new owner: the batches left go, and what a straggler still puts is refused.
        self._token = secrets.randbits(62) + 1
        _on_buffer(self._buffer.resume, [self._token, -1])
        self._cancel(tf.errors.CANCELLED, f"stage {self._stage!r} was stopped")
        self._on_stop()

    def put(self, thread: int) -> None:
        """Reads a batch, once it may, runs the staged half and puts its item."""
        if self._allowance:
            self._allowance.take()
            if self._producers.stops:
                return
        try:
            self._puts[thread](self._arguments[thread])
        except tf.errors.OpError as error:
            # What has no room yet is a batch that was read; another one is read in its place else.
            if self._allowance and not is_parked(error):
                self._allowance.give()
            raise

    def flush(self, thread: int) -> None:
        """Waits until the buffer has the item that a timed-out put left in line."""
        timeout = self._options.timeout_millis
        _on_buffer(
            lambda owner: self._buffer.flush(owner, timeout_millis=timeout),
            self._arguments[thread][-1],
        )

    def rest(self, thread: int, reason: int, message: str) -> bool:
        """Notes the end of the input, which no producer reads again."""
        del thread, message
        if reason in (ENDED, CLOSED):
            self._ended = True
        return False

    def fail(self, thread: int, error: BaseException) -> None:
        """Hands the first error on, to the step that finds nothing more to take."""
        del thread
        with self._lock:
            if self._error is not None:
                return
            self._error = error
        self._cancel(tf.errors.INTERNAL, self._failed)

    def leave(self) -> None:
        """Releases the input, and closes the epoch where all producers came to its end."""
        self._puts, self._arguments = [], []
        if self._ended and self._error is None and not self._producers.stops:
            _on_buffer(self._buffer.close, [self._token, -1])

    def _cancel(self, code: int, message: str) -> None:
        def cancel(owner: tf.Tensor) -> None:
            self._buffer.cancel(owner, tf.constant(code, tf.int32), tf.constant(message))

        _on_buffer(cancel, [self._token, -1])


def _on_buffer(op: Callable[[tf.Tensor], Any], owner: Any) -> None:
    """Runs one op of a buffer now, also when this thread is just tracing a function."""
    with tf.init_scope(), tf.device(_CPU):
        op(tf.constant(owner, tf.int64))
