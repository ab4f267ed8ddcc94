"""What a graph's nodes run on: values of variables and batches, taken without changing any."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.core.fusion.pattern.definition import Definition
from workbench.core.graph.op_types import VARIABLES
from workbench.core.tf_graph.concrete_function import arguments_of
from workbench.errors import OptionError

v1 = tf.compat.v1
# Lines of an error that say where, and how many there are.
_PLACES = (
    "Graph execution error",
    "Detected at node",
    "File ",
    "[[",
    "(0)",
    "(1)",
    "0 succ",
    "Hint",
)
_READS_ALONE = "ReadVariableOp"


@dataclasses.dataclass(kw_only=True)
class Inputs:
    """What private sessions begin with.

    Attributes:
      config: of the private sessions.
      variables: values by the names of variables' nodes; those without a value have none.
      feeds: values by the names of tensors.
      handles: dtypes and shapes of the variables that a function reads through placeholders, by the
        names of these.
      refused: by the names of nodes why what depends on them is not verified, a clause.
    """

    config: Any
    variables: dict[str, Any] = dataclasses.field(default_factory=dict)
    feeds: dict[str, Any] = dataclasses.field(default_factory=dict)
    handles: dict[str, Any] = dataclasses.field(default_factory=dict)
    refused: dict[str, str] = dataclasses.field(default_factory=dict)


def session_inputs(
    session: Any, feed_dict: Any, graph: Definition, needed: Iterable[str]
) -> Inputs:
    """What a session's graph runs on.

    Args:
      session: the user's; variables are read in it, and nothing else is run.
      feed_dict: as of `session.run`; None for nothing.
      graph: of the session.
      needed: names of the nodes that will run.

    Raises:
      OptionError: `feed_dict` has what is no tensor of the graph.
    """
    inputs = Inputs(config=_private_config(session))
    for key, value in (feed_dict or {}).items():
        inputs.feeds.update(_fed(session.graph, key, value))
    reads: dict[str, str] = {}
    for name in needed:
        node = graph.nodes[name]
        if node.op not in VARIABLES:
            continue
        read = _read_of(graph, node)
        if read is None:
            inputs.refused[name] = f"the graph has no node that reads variable {name!r} alone"
        else:
            reads[name] = read
    inputs.variables.update(_values(session, reads))
    return inputs


def function_inputs(function: Any, batch: Any) -> Inputs:
    """What a concrete function runs on.

    Args:
      function: the concrete function.
      batch: its arguments, in any structure.

    Raises:
      OptionError: the batch does not fit the function's arguments.
    """
    arguments = arguments_of(function)
    given = [each for each in tf.nest.flatten(batch, expand_composites=True) if each is not None]
    if len(given) != len(arguments):
        raise OptionError(
            f"the batch has {len(given)} tensors; expected {len(arguments)}, one for each argument "
            f"of function {function.graph.name!r}"
        )
    inputs = Inputs(config=v1.ConfigProto(allow_soft_placement=True))
    with tf.init_scope():
        for tensor, value in zip(arguments, given, strict=True):
            inputs.feeds[tensor.name] = _as_argument(tensor, value)
        for outer, own in function.graph.captures:
            _capture(inputs, outer, own)
    return inputs


def _as_argument(tensor: Any, value: Any) -> Any:
    """A value as the dtype of an argument."""
    array = _as_array(value)
    wanted = tensor.dtype.as_numpy_dtype
    same_kind = array.dtype == wanted or np.can_cast(array.dtype, wanted, casting="same_kind")
    if not same_kind or not tensor.shape.is_compatible_with(array.shape):
        raise OptionError(
            f"the batch has {array.dtype} {list(array.shape)}; expected {tensor.dtype.name} "
            f"{tensor.shape} for argument {tensor.op.name!r}"
        )
    return array.astype(wanted)


def _capture(inputs: Inputs, outer: Any, own: Any) -> None:
    """Adds what a function reads of outside."""
    name = own.op.name
    if not isinstance(outer, tf.__internal__.EagerTensor):
        inputs.refused[name] = f"{name!r} is a tensor of another function, which has no value yet"
        return
    if outer.dtype != tf.resource:
        inputs.feeds[own.name] = outer.numpy()
        return
    data = getattr(outer, "_handle_data", None)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        inputs.refused[name] = f"{name!r} is neither a variable nor a value, and is not copied"
        return
    inputs.handles[name] = data.shape_and_type[0]
    dtype = tf.as_dtype(inputs.handles[name].dtype)
    try:
        inputs.variables[name] = tf.raw_ops.ReadVariableOp(resource=outer, dtype=dtype).numpy()
    except tf.errors.OpError as error:
        inputs.refused[name] = f"variable {name!r} cannot be read: {first_line(error)}"


def _private_config(session: Any) -> Any:
    config = v1.ConfigProto()
    if getattr(session, "_config", None) is not None:
        config.CopyFrom(session._config)
    config.graph_options.rewrite_options.ClearField("custom_optimizers")
    return config


def _fed(graph: Any, key: Any, value: Any) -> Mapping[str, Any]:
    """A feed by the names of its tensors."""
    if isinstance(key, str):
        key = graph.as_graph_element(key)
    keys = tf.nest.flatten(key, expand_composites=True)
    values = [value]
    if len(keys) > 1:
        # Of a SparseTensorValue each field may be a list.
        fields = isinstance(value, tuple) and len(value) == len(keys)
        values = list(value) if fields else tf.nest.flatten(value, expand_composites=True)
    if len(keys) != len(values) or any(getattr(k, "graph", None) is not graph for k in keys):
        raise OptionError(f"feed_dict has {key!r}; expected a tensor of the session's graph")
    return {k.name: _as_array(v) for k, v in zip(keys, values, strict=True)}


def _as_array(value: Any) -> Any:
    return value.numpy() if isinstance(value, tf.__internal__.EagerTensor) else np.asarray(value)


def _read_of(graph: Definition, node: Any) -> str | None:
    """The tensor that has a variable's value, and for which nothing else runs."""
    if node.op in ("Variable", "VariableV2"):
        return f"{node.name}:0"
    if node.op != "VarHandleOp":
        return None
    for reader in graph.readers(f"{node.name}:0", _READS_ALONE):
        alone = len(reader.input) == 1 and graph.inputs(reader) == [f"{node.name}:0"]
        if alone and reader.name not in graph.conditional:
            return f"{reader.name}:0"
    return None


def _values(session: Any, reads: Mapping[str, str]) -> dict[str, Any]:
    """The values of variables, but for those that have none yet."""
    if not reads:
        return {}
    try:
        return dict(zip(reads, session.run(list(reads.values())), strict=True))
    except tf.errors.FailedPreconditionError:
        found = {}
    for name, read in reads.items():
        try:
            found[name] = session.run(read)
        except tf.errors.FailedPreconditionError:
            continue
    return found


def first_line(error: Exception) -> str:
    """The line of an error that says what is wrong, without where."""
    text = getattr(error, "message", None) or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith(_PLACES)]
    return (own or lines or [type(error).__name__])[0]
