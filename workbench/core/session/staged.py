"""staged(): the user names the boundary of the stage.

The tensors handed in are produced ahead of the step, on the threads of a prefetch runner; the
tensors handed back are what a step takes out of the buffer. Behavior follows DeepRec's
`tf.staged` (Pipeline-Stage), without its faults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from workbench.core.options import StageOptions
from workbench.core.session.imported_stages import describe_put
from workbench.core.session.prefetch_runner import build_runner
from workbench.core.session.runner_registry import register_runner
from workbench.core.session.stage_feeds import stage_feeds
from workbench.core.session.stage_sources import note_sources
from workbench.core.staging.buffer import Buffer
from workbench.errors import OptionError, UnsupportedError
from workbench.kept_apart import kept_apart

v1 = tf.compat.v1
_VARIABLES = frozenset({"Variable", "VariableV2", "TemporaryVariable"})
_SHARES_ITS_INPUT = frozenset(
    {"Bitcast", "ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient"}
)


def staged(
    features: Any,
    options: StageOptions | None = None,
    *,
    feed_dict: Mapping[Any, Any] | None = None,
    name: str | None = None,
) -> Any:
    """Runs `features` ahead of the step and returns the tensors that a step consumes.

    Args:
      features: any nest of tensors: tensor, list, tuple, dict, nested; SparseTensor, RaggedTensor
        and None leaves are allowed. What is not a tensor is converted to one.
      options: capacity, threads, timeouts, exceptions; None means the defaults.
      feed_dict: maps placeholders (or SparseTensor placeholders) upstream of `features` to
        tensors or variables; before each put the runner evaluates these and feeds the values.
      name: name of the stage, of its ops' scope and in messages; None makes "prefetch",
        "prefetch_1", …

    Returns:
      The same nest, dtypes and static shapes. No gradient flows through it.

    Raises:
      OptionError: an empty nest, or an unknown leaf. Or a feed_dict value that is no tensor, or not
        of its placeholder's dtype or shape. Or another stage reads an op, such as the get_next of
        an iterator, that `features` reads too.
      UnsupportedError: called eagerly, in a tf.function, or inside control flow.
    """
    return _join([features], options or StageOptions(), feed_dict, name)


def prefetch_join(
    thread_to_features: Sequence[Any],
    options: StageOptions | None = None,
    *,
    feed_dict: Mapping[Any, Any] | None = None,
    name: str | None = None,
) -> Any:
    """Like `staged`, with one nest of features for each thread: `num_threads` is their number.

    Args:
      thread_to_features: one nest per thread; all have the structure and dtypes of the first.
      options: as in `staged`; its num_threads must be 1 (unset) or the number of nests.
      feed_dict: as in `staged`, for all threads.
      name: as in `staged`.

    Returns:
      The nest of the first entry. Where static shapes differ the merged shape is unknown there.

    Raises:
      OptionError: an empty list, or nests that differ in structure or dtypes.
      UnsupportedError: as in `staged`.
    """
    nests = list(thread_to_features)
    if not nests:
        raise OptionError("prefetch_join was given no features; expected one nest for each thread")
    chosen = options or StageOptions()
    if chosen.num_threads not in (1, len(nests)):
        raise OptionError(
            f"prefetch_join has {len(nests)} nests of features but "
            f"num_threads={chosen.num_threads}; it runs one thread for each nest"
        )
    return _join(nests, chosen, feed_dict, name)


def _join(
    nests: list[Any],
    options: StageOptions,
    feed_dict: Mapping[Any, Any] | None,
    name: str | None,
) -> Any:
    graph = _graph_to_stage_in()
    feeds = stage_feeds(feed_dict or {})
    records = [_record(features) for features in nests]
    _require_equal_structure(nests, records)
    with v1.name_scope(name or "prefetch") as scope:
        stage = scope.rstrip("/")
        record = [tensor for each in records for tensor in each]
        note_sources(graph, stage, record, [value for _, value in feeds])
        at = Buffer(
            # A server's resource manager outlives sessions and graphs: the key keeps two apart.
            shared_name=f"{graph._graph_key}{stage}",
            capacity=options.capacity,
            stage=stage,
        )
        taken = at.take(
            [tensor.dtype for tensor in records[0]],
            shapes=[_common_shape(same) for same in zip(*records, strict=True)],
            num_clients=options.num_clients,
            name="take",
        )
        _pin(taken[0].op)
        with tf.control_dependencies(None), graph.colocate_with(taken[0].op):
            runner = build_runner(at, records, feeds, options)
    for number, put in enumerate(dict.fromkeys(runner.puts)):
        describe_put(graph.get_operation_by_name(put), runner, number)
    register_runner(graph, runner)
    return _with_tensors(nests[0], kept_apart(taken))


def _pin(take: tf.Operation) -> None:
    """Keeps the buffer on the CPU, unless the user put it elsewhere: a take may run on a GPU too,
    and would be placed with its consumer, away from the put."""
    asked = tf.DeviceSpec.from_string(take.device)
    if asked.device_type is None:
        take._set_device(asked.replace(device_type="CPU", device_index=0))


def _graph_to_stage_in() -> tf.Graph:
    if tf.executing_eagerly():
        raise UnsupportedError(
            "tf.staged builds a graph, but TensorFlow is executing eagerly; call it inside "
            "`with tf.Graph().as_default():`, or import workbench.compat.v1 before building"
        )
    graph = v1.get_default_graph()
    if getattr(graph, "building_function", False):
        raise UnsupportedError(
            f"tf.staged was called inside the function {graph.name!r}; a stage belongs to the graph"
            " of a session: call it outside tf.function and dataset functions"
        )
    if graph._get_control_flow_context() is not None:
        raise UnsupportedError(
            "tf.staged was called inside tf.cond or tf.while_loop; "
            "what is staged runs ahead of every step, so move the call out of the control flow"
        )
    return graph


def _record(features: Any) -> list[tf.Tensor]:
    """The tensors that travel through the buffer: components of composites, without None."""
    record = []
    for leaf in tf.nest.flatten(features, expand_composites=True):
        if leaf is None:
            continue
        try:
            tensor = tf.convert_to_tensor(leaf)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"tf.staged cannot carry {leaf!r} of type {type(leaf).__name__}; expected tensors, "
                "SparseTensor, RaggedTensor, None, or what converts to a tensor"
            ) from error
        record.append(tf.raw_ops.DeepCopy(x=tensor) if _shares_a_variable(tensor) else tensor)
    if not record:
        raise OptionError(f"tf.staged was given no tensor at all: {features!r}")
    return record


def _shares_a_variable(tensor: tf.Tensor) -> bool:
    """Whether the tensor is the memory of a v1 variable, which assignments change in place."""
    op = tensor.op
    while op.type in _SHARES_ITS_INPUT:
        op = op.inputs[0].op
    return op.type in _VARIABLES


def _with_tensors(structure: Any, tensors: Sequence[tf.Tensor]) -> Any:
    rest = iter(tensors)
    leaves = tf.nest.flatten(structure, expand_composites=True)
    packed = [None if leaf is None else next(rest) for leaf in leaves]
    return tf.nest.pack_sequence_as(structure, packed, expand_composites=True)


def _require_equal_structure(nests: list[Any], records: list[list[tf.Tensor]]) -> None:
    def holes(nest: Any) -> list[bool]:
        return [leaf is None for leaf in tf.nest.flatten(nest, expand_composites=True)]

    dtypes = [tensor.dtype for tensor in records[0]]
    for thread, (nest, record) in enumerate(zip(nests, records, strict=True)):
        try:
            tf.nest.assert_same_structure(nests[0], nest, expand_composites=True)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"prefetch_join: the features of thread {thread} have another structure than those "
                f"of thread 0: {error}"
            ) from error
        found = [tensor.dtype for tensor in record]
        if found != dtypes or holes(nest) != holes(nests[0]):
            raise OptionError(
                f"prefetch_join: thread {thread} has dtypes {[d.name for d in found]}, "
                f"thread 0 has {[d.name for d in dtypes]}; they must be equal"
            )


def _common_shape(tensors: Sequence[tf.Tensor]) -> tf.TensorShape:
    common = tensors[0].shape
    for tensor in tensors[1:]:
        common = common.most_specific_common_supertype([tensor.shape]) or tf.TensorShape(None)
    return common
