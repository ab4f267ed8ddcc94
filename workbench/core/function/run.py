"""FunctionRunner: a step's function cut around a buffer; FunctionRun: the threads of one epoch.

A runner is built once and holds no data. Started on an iterator it becomes a FunctionRun: threads
that each read a batch, run the staged half and put, in one call that holds no Python lock; and
`step`, which takes and runs the compute half in one call.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from workbench.core.function.call import Cancellation, FunctionCall
from workbench.core.function.rewrite import Halves
from workbench.core.options import StageOptions
from workbench.core.staging.buffer import Buffer, is_parked, is_superseded
from workbench.core.staging.buffer_names import give_back_with, lend_name
from workbench.core.staging.end_at_exit import end_at_exit, is_of_this_process
from workbench.core.staging.error_codes import error_codes

_LOG = logging.getLogger("workbench")
_CPU = "/device:CPU:0"
# How long a stop waits for producers to notice; one that is stuck in Python upstream ends later.
_JOIN_SECONDS = 5.0
# In native/staging/buffer/stage_messages.cc, said by a take after the end of the input alone.
_ENDED = "its producers reached the end of their input"


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

    def start(self, iterator: Any) -> FunctionRun:
        """Starts the producing threads on a `tf.data.Iterator`, which they then use up.

        They hold the iterator's data, not the Python object.
        """
        runner = self._idle.pop() if self._idle else self._build()
        tensors = tf.nest.flatten(iterator, expand_composites=True)
        return FunctionRun(runner, tensors, lambda: self._idle.append(runner))


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
    """The producing threads of one epoch, and the steps that take from them.

    Attributes:
      ignored: batches skipped so far because of an ignored exception.
      threads: where it produces.
    """

    def __init__(
        self, runner: FunctionRunner, iterator: Sequence[tf.Tensor], on_stop: Callable[[], None]
    ) -> None:
        self.ignored = 0
        self._on_stop = on_stop
        self._stage = runner.halves.stage.name
        self._buffer = runner.buffer
        self._options = runner.options
        self._closed_codes = error_codes(
            self._options.closed_exception_types or (tf.errors.OUT_OF_RANGE,)
        )
        self._ignored_codes = error_codes(self._options.ignored_exception_types)
        self._iterator = list(iterator)
        self._token = secrets.randbits(62) + 1
        # In the message that ends takes, so that an error of the compute half is told from it.
        self._failed = f"stage {self._stage!r} failed to produce ({self._token})"
        self._error: BaseException | None = None
        self._stopping = False
        self._ended_by_close = False
        self._lock = threading.Lock()
        self._cancellations = [Cancellation() for _ in range(self._options.num_threads)]
        whole = runner.halves.function
        self._consume = FunctionCall(runner.consume, part_of=whole)
        self._puts = [
            FunctionCall(runner.produce, part_of=whole, prefix=self._stage, cancel=each)
            for each in self._cancellations
        ]
        self._live = self._options.num_threads
        _on_buffer(self._buffer.resume, [self._token, -1])
        self.threads = [
            threading.Thread(
                target=self._produce, args=(i,), name=f"{self._stage}-{i}", daemon=True
            )
            for i in range(self._live)
        ]
        end_at_exit(self)
        for thread in self.threads:
            thread.start()

    def step(self) -> Any:
        """Takes a batch, waiting for one, and runs the compute half.

        Raises:
          StopIteration: the input has ended and every batch was taken, or the run was stopped.
          BaseException: the error of a producer after all that was put before it, or one of the
            compute half; the run is stopped then.
        """
        if self._stopping:
            raise StopIteration
        try:
            return self._consume()
        except tf.errors.OpError as error:
            ends = self._error if self._failed in error.message else None
            if isinstance(error, tf.errors.OutOfRangeError) and _ENDED in error.message:
                ends = StopIteration()
            self.stop()
            if ends is None:
                raise
            raise ends from None
        except BaseException:
            self.stop()
            raise

    def end(self) -> bool:
        """Cancels what the producers do; False if that was done before."""
        with self._lock:
            first, self._stopping = not self._stopping, True
        if first:
            for cancellation in self._cancellations:
                cancellation.cancel()
            self._cancel(tf.errors.CANCELLED, f"stage {self._stage!r} was stopped")
        return first

    def close(self) -> None:
        """Does nothing: what `end` cancels is all that the producers wait for."""

    def stop(self) -> None:
        """Ends the producers, waits for that a few seconds at most, and drops what they made."""
        if not is_of_this_process(self) or not self.end():
            return
        deadline = time.monotonic() + _JOIN_SECONDS
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))
        # A new owner: the batches left go, and what a straggler still puts is refused.
        self._token = secrets.randbits(62) + 1
        _on_buffer(self._buffer.resume, [self._token, -1])
        self._cancel(tf.errors.CANCELLED, f"stage {self._stage!r} was stopped")
        self._on_stop()

    def _produce(self, thread: int) -> None:
        put = self._puts[thread]
        arguments = [*self._iterator, tf.constant([self._token, thread], tf.int64)]
        try:
            while not self._stopping:
                try:
                    put(arguments)
                except tf.errors.OpError as error:
                    if is_parked(error):
                        self._wait_for_room(arguments[-1], error)
                    elif self._is_ignored(error):
                        self._skip(error)
                    else:
                        raise
        except BaseException as error:  # the thread's last word: nothing may vanish silently
            self._fail(error)
        finally:
            self._leave()

    def _wait_for_room(self, owner: tf.Tensor, error: tf.errors.OpError) -> None:
        """The batch of a timed-out put stays in line: waits until the buffer has taken it."""
        timeout = self._options.timeout_millis
        while not self._stopping:
            _LOG.warning("%s", error.message)
            try:
                _on_buffer(lambda own: self._buffer.flush(own, timeout_millis=timeout), owner)
                return
            except tf.errors.DeadlineExceededError as again:
                error = again

    def _is_ignored(self, error: tf.errors.OpError) -> bool:
        code = error.error_code
        ends = code == tf.errors.CANCELLED or code in self._closed_codes
        return not ends and code in self._ignored_codes

    def _skip(self, error: tf.errors.OpError) -> None:
        with self._lock:
            self.ignored += 1
            count = self.ignored
        _LOG.warning("stage %r skipped a batch (%d so far): %s", self._stage, count, error.message)

    def _fail(self, error: BaseException) -> None:
        """Ends this thread: quietly, by closing the epoch, or by handing the error on."""
        code = getattr(error, "error_code", None)
        with self._lock:
            if self._stopping or self._error is not None or is_superseded(error):
                return
            if code != tf.errors.CANCELLED and code in self._closed_codes:
                self._ended_by_close = True
                return
            self._error = error
        self._cancel(tf.errors.INTERNAL, self._failed)

    def _leave(self) -> None:
        with self._lock:
            self._live -= 1
            ended = self._ended_by_close and self._error is None
            closes = self._live == 0 and ended and not self._stopping
        if closes:
            _on_buffer(self._buffer.close, [self._token, -1])

    def _cancel(self, code: int, message: str) -> None:
        def cancel(owner: tf.Tensor) -> None:
            self._buffer.cancel(owner, tf.constant(code, tf.int32), tf.constant(message))

        _on_buffer(cancel, [self._token, -1])


def _on_buffer(op: Callable[[tf.Tensor], Any], owner: Any) -> None:
    """Runs one op of a buffer now, also when this thread is just tracing a function."""
    with tf.init_scope(), tf.device(_CPU):
        op(tf.constant(owner, tf.int64))
