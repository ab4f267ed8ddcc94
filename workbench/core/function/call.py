"""FunctionCall: calls of a concrete function on flat tensors, for half of what Python else pays.

A step and each batch of its stage are one such call. It can be cancelled, and its errors name the
place in the user's function although what runs is a part of it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context, execute, record
from tensorflow.python.eager.cancellation import CancellationManager
from tensorflow.python.eager.polymorphic_function.atomic_function import InterpolateRuntimeError

# Stands in a message where a node of the user's function does not.
_FROM_DATASET = "[[IteratorGetNext]]"


class Cancellation:
    """Ends the calls of one thread that wait, at once and for good."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self.manager = CancellationManager()

    def cancel(self) -> None:
        """Ends the call that runs now, and each later one."""
        with self._lock:
            self._cancelled = True
            self.manager.start_cancel()

    def after_error(self) -> None:
        """Readies it for the next call: one that fails cancels its own manager."""
        with self._lock:
            if not self._cancelled:
                self.manager = CancellationManager()


class FunctionCall:
    """A concrete function, prepared to be called again and again.

    Any thread may call it; one that can be cancelled, one thread alone.
    """

    def __init__(
        self, function: Any, *, part_of: Any, prefix: str = "", cancel: Cancellation | None = None
    ) -> None:
        """Prepares a function.

        Args:
          function: what is called; its inputs but the captured ones are the call's arguments.
          part_of: the concrete function of the user that it is a part of.
          prefix: of the names of that function's nodes in this one.
          cancel: what ends its calls; None for nothing.
        """
        self._function = function
        self._part_of = part_of
        self._prefix = f"{prefix}/" if prefix else ""
        self._cancel = cancel
        self._context = context.context()
        self._name = function.inference_fn.name.decode()
        self._captured = function.captured_inputs
        self._outputs = len(function.outputs)
        self._pack = function.function_type.pack_output
        options = self._context.function_call_options.as_attrs()
        self._attributes = tuple(itertools.chain(*options.items()))
        # What else is done to a call's outputs concerns handles alone.
        self._gives_handles = any(t.dtype in (tf.resource, tf.variant) for t in function.outputs)

    def __call__(self, arguments: Sequence[tf.Tensor] = ()) -> Any:
        """Runs the function and returns what it returns.

        Raises:
          tf.errors.OpError: as the user's whole function would raise it.
        """
        inputs = [*arguments, *self._captured]
        try:
            if self._cancel is not None:
                return self._pack(
                    execute.execute_with_cancellation(
                        self._name,
                        self._outputs,
                        inputs,
                        self._attributes,
                        self._context,
                        self._cancel.manager,
                    )
                )
            if self._gives_handles or record.could_possibly_record():
                return self._function._call_flat(list(arguments), self._captured)
            return self._pack(
                execute.execute(self._name, self._outputs, inputs, self._attributes, self._context)
            )
        except tf.errors.OpError as error:
            if self._cancel is not None:
                self._cancel.after_error()
            self._explain(error)
            raise

    def _explain(self, error: tf.errors.OpError) -> None:
        """Has the message say where in the user's function the node was made that failed."""
        whole = self._part_of.inference_fn
        text = error.message.replace(self._name, whole.name.decode())
        error._message = text.replace(f"{{{{node {self._prefix}", "{{node ")
        if _FROM_DATASET in text:
            return
        explaining = InterpolateRuntimeError(whole)
        explaining.__exit__(type(error), error, None)
