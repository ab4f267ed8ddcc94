"""`pack_transfers`: what one task of a cluster sends another in a step travels in few messages.

TensorFlow sends each tensor in a message of its own. A graph pass of the native library packs those
of one hop, which do not depend on one another, into one tensor on the task that sends them, and
takes them apart on the one that reads them: ids of all lookups, their rows, small dense weights,
gradients. It does so for each graph that a session or a call of a function runs, once that is
placed and pruned, so that nothing is computed which the run does not need.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from workbench import _native
from workbench.core.options import SMALL_TRANSFER_BYTES, require_at_least
from workbench.errors import OptionError

# In native/transfers/pack_transfers_pass.cc.
_NAME, _FORMAT = "WorkbenchPackTransfers", 1


def pack_transfers(config: Any = None, *, largest_bytes: int = SMALL_TRANSFER_BYTES) -> Any:
    """Lets sessions on servers send what goes from one task to another in few messages.

    Values are the same to the bit. Integers travel in as few bytes as their range needs. Both tasks
    need Workbench's library. Runs of `partial_run` may wait for ever: a message has all that it
    packs. A tensor stays on its own in three cases:

    - Its static shape says that it is larger than `largest_bytes`.
    - It is behind a branch, a loop or an op that waits, as a queue's, in the same run.
    - It is a string, or on another device than a CPU.

    Args:
      config: a ConfigProto, changed in place; None makes one.
      largest_bytes: of a tensor that is packed. One of unknown size is.

    Returns:
      The config.

    Raises:
      OptionError: `config` is no ConfigProto, or `largest_bytes` no integer of at least 0.
    """
    require_at_least("largest_bytes", largest_bytes, 0)
    if config is None:
        config = tf.compat.v1.ConfigProto()
    if not hasattr(getattr(config, "graph_options", None), "rewrite_options"):
        raise OptionError(
            f"config is {config!r} of type {type(config).__name__}; expected a ConfigProto"
        )
    # The pass is in the library; a session without it would send each tensor alone.
    _native.library()
    optimizers = config.graph_options.rewrite_options.custom_optimizers
    kept = [each for each in optimizers if each.name == _NAME]
    entry = kept[0] if kept else optimizers.add()
    entry.name = _NAME
    entry.parameter_map["format"].i = _FORMAT
    entry.parameter_map["largest_bytes"].i = largest_bytes
    return config


def pack_function_transfers(*, largest_bytes: int = SMALL_TRANSFER_BYTES) -> None:
    """Lets tf.functions send what goes from task to task in few messages, as `pack_transfers` does
    for sessions.

    It holds for each function that this process calls from now on, and for those that a coordinator
    schedules on its workers. TensorFlow sends the config of a call with it. Another thread that has
    called a function before goes on as it did, so this is called before a coordinator is made.

    Args:
      largest_bytes: of a tensor that is packed. One of unknown size is.

    Raises:
      OptionError: `largest_bytes` is no integer of at least 0.
    """
    eager = context.context()
    # What threads begin with that call their first function later.
    eager._config = pack_transfers(_copy_of(eager._config), largest_bytes=largest_bytes)
    options = eager.function_call_options
    config = tf.compat.v1.ConfigProto.FromString(options.config_proto_serialized)
    eager.function_call_options = context.FunctionCallOptions(
        executor_type=options.executor_type,
        config_proto=pack_transfers(config, largest_bytes=largest_bytes),
    )


def _copy_of(config: Any) -> Any:
    copy = tf.compat.v1.ConfigProto()
    if config is not None:
        copy.CopyFrom(config)
    return copy
