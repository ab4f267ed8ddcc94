"""Buffer: the ops of a stage's buffer, put, flush, take, rest, resume, cancel, close, size, drain.

Runs whose updates trail have four more: begin, await_returned, return_taken, settle.

`owner` is an int64 tensor [token, thread]: the session's producers own the buffer by the token
(never 0), `thread` is the number of the producer that calls.

Each device has buffers of its own: build all ops of a buffer under one `tf.device`. Without it,
TensorFlow puts some or all of them on a GPU where there is one. With a buffer on a GPU the run of
the put copies the item there, ahead of the step that takes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from workbench import _native

# Values of the column `kind` of what `drain` returns; EVENT_DROPPED stands in the first row only
# and says, in column `item`, how many older events were lost.
EVENT_PUT, EVENT_TAKE, EVENT_DROPPED = 0, 1, 2
EVENT_COLUMNS = ("kind", "item", "who", "start_ns", "end_ns", "size")

# In native/staging/buffer/stage_messages.cc, which says these words in these cases only.
_PARKED = "the batch stays in line"
_SUPERSEDED = "a newer session owns the stage"
_RESTARTED = "the stage begins again"
_NOT_TRAINED = "the step that took its batch trained nothing"
_CUT_SHORT = "its input was to be initialized again, but"
# A server's words.
_REFUSED = "request was received twice"

# Why a producer rests; RestReason in native/staging/buffer/producers_at_rest.h.
READY, ENDED, CLOSED, NOT_READY, CUT_SHORT = range(5)

# What went through a buffer was made by an earlier run: no gradient flows back through it.
_OPS = ("Put", "Flush", "Take", "Rest", "Resume", "Cancel", "Close", "Size", "Drain")
for _op in (*_OPS, "Begin", "Await", "Return", "Settle"):
    tf.no_gradient(f"WorkbenchBuffer{_op}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Buffer:
    """Names one buffer; its methods build ops on it in the current graph, on one device.

    Attributes:
      shared_name: name of the buffer's resource on the device.
      capacity: most items it holds; the first op that runs fixes it.
      stage: name of the stage in messages; empty means `shared_name`.
      container: resource container; empty means the session's.
    """

    shared_name: str
    capacity: int
    stage: str = ""
    container: str = ""

    def put(
        self,
        owner: tf.Tensor,
        tensors: Sequence[tf.Tensor],
        host_tensors: Sequence[tf.Tensor] = (),
        *,
        timeout_millis: int = 300_000,
        stream_id: int = 0,
        reserve: bool = False,
        name: str | None = None,
    ) -> tf.Operation:
        """Puts tensors in as one item; waits for room without holding a thread.

        Args:
          owner: int64 [2], token and thread.
          tensors: the item's first tensors, in the memory of the buffer's device; any number and
            shapes, dtypes as in `take`.
          host_tensors: its other tensors, in the host's memory on every device: for what a CPU, or
            a GPU op that wants it there (most int32), reads. Strings never leave the host.
          timeout_millis: how long to wait for room. Then the op fails with DEADLINE_EXCEEDED, see
            `is_parked`, but the item stays in line; `flush` waits for it.
          stream_id: logical device that the staged side runs on; 0 shares the main one.
          reserve: end only when there is room for one item more than this, or a take has come for
            it. A single producer then begins item n after item n - capacity was taken.
          name: name of the op.

        Returns:
          The op. It fails with CANCELLED when the buffer is closed or cancelled, or owned by a
          newer session (`is_superseded`), and with FAILED_PRECONDITION before any resume.
        """
        return _native.library().workbench_buffer_put(
            owner=owner,
            record=list(tensors),
            host_record=list(host_tensors),
            timeout_millis=timeout_millis,
            stream_id=stream_id,
            reserve=reserve,
            name=name,
            **self._address(),
        )

    def flush(
        self, owner: tf.Tensor, *, timeout_millis: int = 300_000, name: str | None = None
    ) -> tf.Operation:
        """Waits until the buffer has what timed-out puts of the owner's thread left in line.

        Returns:
          The op. It fails with DEADLINE_EXCEEDED (`is_parked`) when that takes longer than
          `timeout_millis`, and may be run again.
        """
        return _native.library().workbench_buffer_flush(
            owner=owner, timeout_millis=timeout_millis, name=name, **self._address()
        )

    def take(
        self,
        dtypes: Sequence[tf.DType],
        host_dtypes: Sequence[tf.DType] = (),
        *,
        shapes: Sequence[tf.TensorShape] = (),
        host_shapes: Sequence[tf.TensorShape] = (),
        num_clients: int = 1,
        start_timeout_millis: int = 8_000,
        returns: bool = False,
        name: str | None = None,
    ) -> list[tf.Tensor]:
        """Takes the oldest item; waits for one without holding a thread.

        Args:
          dtypes: dtypes of the item's first tensors, as put.
          host_dtypes: dtypes of its host tensors, as put.
          shapes: static shapes of the first tensors; none when they are not known.
          host_shapes: static shapes of the host tensors; none when they are not known.
          num_clients: accepted, without effect: any number of takes may wait.
          start_timeout_millis: how long to wait for the buffer's first resume.
          returns: whether the step may `return_taken` something of the item.
          name: name of the op.

        Returns:
          The item's tensors, of these shapes, the host's last; or, with no dtypes, an empty list.
          The op fails with OUT_OF_RANGE when the buffer is closed and everything was taken, with
          the error given to `cancel` when it was cancelled, with FAILED_PRECONDITION when no owner
          ever came, and with INVALID_ARGUMENT when items were put with other dtypes.
        """
        taken = _native.library().workbench_buffer_take(
            dtypes=list(dtypes),
            host_dtypes=list(host_dtypes),
            shapes=list(shapes),
            host_shapes=list(host_shapes),
            num_clients=num_clients,
            start_timeout_millis=start_timeout_millis,
            returns=returns,
            name=name,
            **self._address(),
        )
        return [*taken.record, *taken.host_record] if dtypes or host_dtypes else []

    def begin(self, owner: tf.Tensor, *, name: str | None = None) -> tf.Operation:
        """Begins a run of the owner's thread whose updates trail; the one before has ended.

        It ends when the run before, of whatever thread, has put its item, and when all runs but the
        last `capacity` - 1 have ended. It fails as `put` does, and with `is_restarted`.
        """
        return _native.library().workbench_buffer_begin(owner=owner, name=name, **self._address())

    def await_returned(
        self,
        owner: tf.Tensor,
        dtypes: Sequence[tf.DType],
        *,
        shapes: Sequence[tf.TensorShape] = (),
        name: str | None = None,
    ) -> list[tf.Tensor]:
        """Waits, behind the put of a run, for what the step that takes its item returns.

        Args:
          owner: int64 [2], token and thread.
          dtypes: of what is returned, one at least.
          shapes: static shapes; none when they are not known.
          name: name of the op.

        Returns:
          What was returned. The op fails with CANCELLED when the step ended without returning
          anything (`is_not_trained`), when the item was dropped, or the stage stopped.
        """
        return _native.library().workbench_buffer_await(
            owner=owner, T=list(dtypes), shapes=list(shapes), name=name, **self._address()
        )

    def return_taken(
        self, tensors: Sequence[tf.Tensor], *, name: str | None = None
    ) -> tf.Operation:
        """Returns tensors, one at least, to the run that put the item which this step took.

        Returns:
          The op. It fails with FAILED_PRECONDITION when the step took none.
        """
        return _native.library().workbench_buffer_return(
            record=list(tensors), name=name, **self._address()
        )

    def settle(self, *, name: str | None = None) -> tf.Operation:
        """Waits until all that was returned so far has been applied: its runs have ended."""
        return _native.library().workbench_buffer_settle(name=name, **self._address())

    def rest(
        self, owner: tf.Tensor, reason: tf.Tensor, message: tf.Tensor, *, name: str | None = None
    ) -> tf.Operation:
        """Says that the owner's thread has nothing to put; waits until it is to try again.

        An input that is initialized again, in a graph that the session's graph pass sees, begins
        the stage again: the items go, puts fail (`is_restarted`), and the initializer waits until
        every producer rests.

        Args:
          owner: int64 [2], token and thread.
          reason: int32 scalar. READY: the thread may try as soon as a take waits. ENDED: its input
            has ended; when all threads rest waiting takes fail with OUT_OF_RANGE, and a later take
            lets them look again. CLOSED: likewise, but only a restart lets them look again.
            NOT_READY: it needs what is not initialized yet; as READY, but a take on the staged side
            of another stage does not let it try, and fails with FAILED_PRECONDITION. CUT_SHORT: it
            takes from a stage of which `is_cut_short` holds; takes fail with FAILED_PRECONDITION,
            and only a restart lets it try again.
          message: string scalar; with NOT_READY, what that is.
          name: name of the op.
        """
        return _native.library().workbench_buffer_rest(
            owner=owner, reason=reason, message=message, name=name, **self._address()
        )

    def resume(self, owner: tf.Tensor, *, name: str | None = None) -> tf.Operation:
        """Makes the token the buffer's owner, opens the buffer, drops what an earlier owner left.

        With the token of the present owner it only lifts `cancel` and `close`.

        Args:
          owner: int64 [2], the token, and how many threads `rest`; 0 or less when none ever does.
          name: name of the op.
        """
        return _native.library().workbench_buffer_resume(owner=owner, name=name, **self._address())

    def cancel(
        self, owner: tf.Tensor, code: tf.Tensor, message: tf.Tensor, *, name: str | None = None
    ) -> tf.Operation:
        """Ends the stage at once; takes get what is in the buffer, then this error.

        Args:
          owner: int64 [2]; with another token than the owner's nothing happens.
          code: int32 scalar, an error code of `tf.errors`; 0 or CANCELLED is a plain stop.
          message: string scalar, the message of that error.
          name: name of the op.
        """
        return _native.library().workbench_buffer_cancel(
            owner=owner, code=code, message=message, name=name, **self._address()
        )

    def close(self, owner: tf.Tensor, *, name: str | None = None) -> tf.Operation:
        """Ends the epoch: every item already produced is taken, then takes fail with OUT_OF_RANGE.

        With another token than the owner's nothing happens.
        """
        return _native.library().workbench_buffer_close(owner=owner, name=name, **self._address())

    def size(self, *, name: str | None = None) -> tf.Tensor:
        """Items in the buffer now, int32 scalar; those in line are not counted."""
        return _native.library().workbench_buffer_size(name=name, **self._address())

    def drain(self, enable: tf.Tensor, *, name: str | None = None) -> tf.Tensor:
        """What happened since the last drain; `enable` switches recording on or off.

        Returns:
          int64 [n, 6], columns EVENT_COLUMNS. EVENT_PUT: `who` is the thread, `start_ns` the call
          of put, `end_ns` when the item was admitted. EVENT_TAKE: `who` is TensorFlow's step id,
          `start_ns` the call of take, `end_ns` when the item was handed over. `size` is the number
          of items after it; times are those of `time.time_ns()`. The latest 2**20 events are kept.
        """
        return _native.library().workbench_buffer_drain(enable=enable, name=name, **self._address())

    def _address(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def is_parked(error: BaseException) -> bool:
    """Whether a put or flush timed out and its item waits in line, so that `flush` is due."""
    return isinstance(error, tf.errors.DeadlineExceededError) and _PARKED in error.message


def is_superseded(error: BaseException) -> bool:
    """Whether a call ended because a newer session owns the buffer."""
    return isinstance(error, tf.errors.CancelledError) and _SUPERSEDED in error.message


def is_restarted(error: BaseException) -> bool:
    """Whether a call ended because the input of its stage is initialized again."""
    return isinstance(error, tf.errors.CancelledError) and _RESTARTED in error.message


def is_not_trained(error: BaseException) -> bool:
    """Whether a run ended because the step that took its batch returned nothing of it."""
    return isinstance(error, tf.errors.CancelledError) and _NOT_TRAINED in error.message


def is_cut_short(error: BaseException) -> bool:
    """Whether a take failed because its stage was to begin again, which was cut short."""
    return isinstance(error, tf.errors.FailedPreconditionError) and _CUT_SHORT in error.message


def is_refused(error: BaseException, fed: str) -> bool:
    """Whether a server refused a run before any op of it ran beside a fed tensor, by its name.

    It refuses what has the number of one of the last 100,000 runs. TensorFlow draws the number of
    each run in a thread of its own, from one of 2**32 seeds: one run of 45,000 is refused.
    """
    # The message ends with the request, which has what is fed on that server.
    return isinstance(error, tf.errors.AbortedError) and all(
        part in error.message for part in (_REFUSED, f";{fed};")
    )


def prepared(
    session: Any,
    *,
    feeds: Sequence[str],
    targets: Sequence[str] = (),
    fetches: Sequence[str] = (),
    options: Any = None,
) -> Callable[..., Any]:
    """Prepares runs of nodes by name, for a fraction of the cost of `session.run`.

    Nodes that only a stage plan adds to the session's graph can be run in no other way. A run that
    a server refuses is run again.

    Args:
      session: a raw `tf.compat.v1.Session`.
      feeds: names of the fed tensors; whatever a run changes is on the server of the first.
      targets: names of the ops to run.
      fetches: names of the tensors to return.
      options: RunOptions of every run, None for the defaults.

    Returns:
      A function of the feeds' values, in their order, and of `run_metadata`; it returns the list of
      the fetches' values.
    """
    spec = config_pb2.CallableOptions(
        feed=feeds, target=targets, fetch=fetches, run_options=options
    )
    run = session._make_callable_from_options(spec)

    def call(*values: Any, run_metadata: Any = None) -> Any:
        return run(*[np.asarray(value) for value in values], run_metadata=run_metadata)

    return again_where_refused(call, feeds[0])


def again_where_refused(run: Callable[..., Any], fed: str) -> Callable[..., Any]:
    """A run that is run again where a server refuses it, by `is_refused` of what is fed."""

    def call(*values: Any, run_metadata: Any = None) -> Any:
        while True:
            try:
                return run(*values, run_metadata=run_metadata)
            except tf.errors.AbortedError as error:
                if not is_refused(error, fed):
                    raise

    return call
