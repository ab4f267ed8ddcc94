"""Executor policies: which of Workbench's executors runs a session or the calls of a tf.function.

The executors are native and registered by name when the library loads; a policy becomes such a
name, which TensorFlow takes in a session's config and with the call of a function. Workers of a
server make executors without a look at the config. So passes of the library carry the policy there,
see native/executor/server/partition.h.
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
from workbench.core.session.server_library import REMEDY, tasks_without_library
from workbench.core.session.session_facts import OWN_EXECUTORS, STOCK_EXECUTOR
from workbench.errors import OptionError
from workbench.ignored import warn_ignored

_LOG = logging.getLogger("workbench")
_checked: set[tuple[str, str]] = set()
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


def warn_of_servers(target: Any, config: Any) -> None:
    """Warns, once for each policy and server, of tasks on which an executor policy cannot act.

    Args:
      target: of the session; empty for a local one.
      config: its stock ConfigProto, or None.
    """
    executor = config.experimental.executor_type if config is not None else ""
    is_policy = executor.startswith(OWN_EXECUTORS) and executor != STOCK_EXECUTOR
    address = target.decode() if isinstance(target, bytes) else str(target or "")
    if not address or not is_policy or (executor, address) in _checked:
        return
    _checked.add((executor, address))
    name = executor.split("(", 1)[0].removeprefix(OWN_EXECUTORS)
    if config.graph_options.build_cost_model > 0:
        _LOG.warning(
            "executor policy %s: a session on a server that builds a cost model runs on "
            "TensorFlow's own executor; leave graph_options.build_cost_model at 0 for the policy",
            name,
        )
        return
    try:
        without = tasks_without_library(address, config)
    except tf.errors.OpError:
        # The user's own session says what is wrong with the cluster, or waits for it.
        _checked.discard((executor, address))
        return
    if without:
        _LOG.warning(
            "executor policy %s: %s has not loaded Workbench's library and runs its part of the "
            "steps on TensorFlow's own executor, which is right but no faster; %s. Where the task "
            "at %s lacks it, no task runs by the policy",
            name,
            ", ".join(without),
            REMEDY,
            address,
        )
