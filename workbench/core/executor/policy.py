"""Executor policies: which of Workbench's executors runs a session or the calls of a tf.function.

The executors are native and registered by name when the library loads; a policy becomes such a
name, which TensorFlow takes in a session's config and with the call of a function. A session on a
gRPC server runs on stock TensorFlow's executor, whatever its config says: the server's workers make
executors without a look at it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from workbench import _native
from workbench.core.options import CostModelOptions
from workbench.core.options import ExecutorPolicy as ExecutorPolicy
from workbench.core.session.session_facts import OWN_EXECUTORS, STOCK_EXECUTOR
from workbench.errors import OptionError
from workbench.ignored import warn_ignored

_LOG = logging.getLogger("workbench")
_warned: set[str] = set()
_StockConfig = tf.compat.v1.ConfigProto
# The names under which native/executor/policies registers them.
_TYPES = {
    ExecutorPolicy.NORMAL: "WORKBENCH_NORMAL",
    ExecutorPolicy.INLINE: "WORKBENCH_INLINE",
}


def executor_options(
    policy: ExecutorPolicy | str,
    *,
    start_step: int = 100,
    stop_step: int = 200,
    batch_ns: int = 5_000,
    batch_ops: int = 100,
    config: Any = None,
) -> Any:
    """A session's config that asks for an executor policy.

    Args:
      policy: the policy or its name: "normal", "inline" or "cost_model".
      start_step, stop_step: steps from which COST_MODEL learns, see `CostModelOptions`.
      batch_ns, batch_ops: how COST_MODEL groups cheap nodes, see `CostModelOptions`.
      config: a `tf.compat.v1.ConfigProto` to start from, which stays as it is; None takes
        TensorFlow's defaults.

    Returns:
      A new `tf.compat.v1.ConfigProto` for `tf.compat.v1.Session` and all that makes one.

    Raises:
      OptionError: an unknown policy, steps that never let it learn, or no ConfigProto.
      UnsupportedError: the native library has no executors, as for TensorFlow 2.18 and 2.19.
      NativeError: the native library is missing or was built for another TensorFlow.
    """
    if config is not None and not isinstance(config, _StockConfig):
        raise OptionError(
            f"config is {config!r} of type {type(config).__name__}; expected a "
            "tf.compat.v1.ConfigProto (one of workbench.compat.v1 has the field executor_policy)"
        )
    asked = _StockConfig()
    if config is not None:
        asked.CopyFrom(config)
    learning = CostModelOptions(
        start_step=start_step, stop_step=stop_step, batch_ns=batch_ns, batch_ops=batch_ops
    )
    asked.experimental.executor_type = executor_type(policy, learning)
    return asked


@contextlib.contextmanager
def executor(
    policy: ExecutorPolicy | str,
    *,
    start_step: int = 100,
    stop_step: int = 200,
    batch_ns: int = 5_000,
    batch_ops: int = 100,
) -> Iterator[None]:
    """Runs the calls of tf.functions that this thread makes inside the `with` block on a policy.

    The functions that a called function calls go with it. TensorFlow writes the policy of such a
    nested call down while it traces the outer function. A function traced inside the block keeps
    the policy for its nested calls. Call it once outside before, if that matters.

    Args:
      policy: the policy or its name: "normal", "inline" or "cost_model".
      start_step, stop_step, batch_ns, batch_ops: of COST_MODEL, see `CostModelOptions`.

    Raises:
      OptionError, UnsupportedError, NativeError: as `executor_options`.
    """
    learning = CostModelOptions(
        start_step=start_step, stop_step=stop_step, batch_ns=batch_ns, batch_ops=batch_ops
    )
    if tf.config.functions_run_eagerly():
        warn_ignored(
            "executor(policy)",
            str(policy),
            "after tf.config.run_functions_eagerly(True) ops run one by one, and no function does",
        )
    with context.function_executor_type(executor_type(policy, learning)):
        yield


def executor_type(policy: ExecutorPolicy | str, learning: CostModelOptions) -> str:
    """The name under which TensorFlow knows the executor of a policy; loads the native library.

    Raises:
      OptionError: an unknown policy.
      UnsupportedError: the native library has no executors, as for TensorFlow 2.18 and 2.19.
      NativeError: the native library is missing or was built for another TensorFlow.
    """
    chosen = ExecutorPolicy(policy)
    _native.require_executors(f"the executor policy {chosen.value!r}")
    if chosen is not ExecutorPolicy.COST_MODEL:
        _native.library()
        return _TYPES[chosen]
    name: bytes = _native.calls().workbench_cost_model_type(
        learning.start_step, learning.stop_step, learning.batch_ns, learning.batch_ops
    )
    return name.decode()


def warn_of_server(target: Any, config: Any) -> None:
    """Warns, once for each policy, that sessions of a server run on TensorFlow's own executor.

    Args:
      target: of the session; empty for a local one.
      config: its stock ConfigProto, or None.
    """
    executor = config.experimental.executor_type if config is not None else ""
    is_policy = executor.startswith(OWN_EXECUTORS) and executor != STOCK_EXECUTOR
    if not target or not is_policy or executor in _warned:
        return
    _warned.add(executor)
    _LOG.warning(
        "executor policy %s: a session on a server (%s) runs on TensorFlow's own executor, because "
        "a server's workers make executors without the session's config; steps are right, but no "
        "faster. Run the session without a server to have the policy.",
        executor.split("(", 1)[0].removeprefix(OWN_EXECUTORS),
        target if isinstance(target, str) else target.decode(),
    )
