"""`get_embedding_variable`: a table of rows by key that grows with the keys it sees."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from workbench import _native
from workbench.errors import OptionError
from workbench.ignored import warn_ignored
from workbench.ops.embedding_variable.arguments import check, partitions_of, refuse
from workbench.ops.embedding_variable.filters import CBFFilter, CounterFilter
from workbench.ops.embedding_variable.keys import string_keys
from workbench.ops.embedding_variable.options import (
    EmbeddingVariableOption,
    GlobalStepEvict,
    InitializerOption,
    L2WeightEvict,
    StorageOption,
)
from workbench.ops.embedding_variable.partitioned import PartitionedEmbeddingVariable
from workbench.ops.embedding_variable.saving import EmbeddingSaveable
from workbench.ops.embedding_variable.slots import Slots
from workbench.ops.embedding_variable.table import EmbeddingVariable
from workbench.ops.embedding_variable.to_pandas import read_embedding_variable

__all__ = [
    "CBFFilter",
    "CounterFilter",
    "EmbeddingVariable",
    "EmbeddingVariableOption",
    "GlobalStepEvict",
    "InitializerOption",
    "L2WeightEvict",
    "PartitionedEmbeddingVariable",
    "StorageOption",
    "get_embedding_variable",
    "read_embedding_variable",
    "string_keys",
]

# Not a string, so that no meta graph tries to save it.
_VARIABLES = ("workbench", "embedding_variables")
_KEYS = tf.compat.v1.GraphKeys


def get_embedding_variable(
    name: str,
    embedding_dim: int,
    key_dtype: Any = tf.int64,
    value_dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Callable[..., Any] | None = None,
    validate_shape: bool = True,
    custom_getter: Any = None,
    constraint: Any = None,
    init_data_source: Any = None,
    ev_option: EmbeddingVariableOption | None = None,
) -> Any:
    """Makes an EmbeddingVariable, or gets it again under a variable scope's `reuse`.

    It lives in a session's graph, on the device where a variable of this scope would be, in the
    host's memory. Running `tf.compat.v1.global_variables_initializer()` empties it and makes the
    rows that new keys start with. A `tf.compat.v1.train.Saver()` saves and restores it with its
    slots. Train it with the optimizers of `workbench.ops`.

    Args:
      name: below the variable scope's.
      embedding_dim: values of a row.
      key_dtype: tf.int64 or tf.int32; lookups take both.
      value_dtype: only None or tf.float32.
      initializer: of the rows that new keys start with, see `InitializerOption`; None means
        `tf.truncated_normal_initializer()`.
      trainable: False keeps it out of the trainable variables, and lookups make no rows.
      collections: further collections to add it to. Of the global variables it is none: those get
        `<name>/default_rows`, [default_value_dim, embedding_dim].
      partitioner: e.g. `tf.fixed_size_partitioner(n)`; None means one table. A scope's own
        partitioner does not count.
      validate_shape: False warns; default rows have one shape.
      ev_option: what becomes of new, rare and old keys; None means `EmbeddingVariableOption()`.
      regularizer, caching_device, custom_getter, constraint, init_data_source: only None.

    Returns:
      An EmbeddingVariable, with a partitioner a PartitionedEmbeddingVariable.

    Raises:
      OptionError: an argument out of its range. Or a variable of the name is there already, is not
        there, or is another than the one to reuse.
      UnsupportedError: what this names is not implemented, or there is no session's graph.
    """
    if not validate_shape:
        warn_ignored(
            "get_embedding_variable(validate_shape)",
            validate_shape,
            "default rows have the shape that default_value_dim and embedding_dim say",
        )
    refuse(
        name,
        regularizer=regularizer,
        caching_device=caching_device,
        custom_getter=custom_getter,
        constraint=constraint,
        init_data_source=init_data_source,
    )
    option = EmbeddingVariableOption() if ev_option is None else ev_option
    check(name, embedding_dim, key_dtype, value_dtype, option)
    partitions = None if partitioner is None else partitions_of(name, embedding_dim, partitioner)
    scope = tf.compat.v1.get_variable_scope()
    full_name = f"{scope.name}/{name}" if scope.name else name
    existing = _variables().get(full_name)
    if existing is not None:
        return _reused(existing, full_name, embedding_dim, partitions, option, scope.reuse)
    if scope.reuse is True:
        raise OptionError(
            f"EmbeddingVariable {full_name!r} is not there to be reused; make it first, or open "
            "the variable scope with reuse=tf.AUTO_REUSE"
        )
    with tf.init_scope():
        default_rows = _default_rows(name, embedding_dim, initializer, option)
        variable, tables = _build_variable(
            full_name, embedding_dim, partitions, default_rows, trainable, option
        )
    _variables()[full_name] = variable
    named = set(collections or ()) - {_KEYS.GLOBAL_VARIABLES, _KEYS.TRAINABLE_VARIABLES}
    for key in sorted(named | ({_KEYS.TRAINABLE_VARIABLES} if trainable else set())):
        for table in tables:
            tf.compat.v1.add_to_collection(key, table)
    return variable


def _build_variable(
    name: str,
    dim: int,
    partitions: int | None,
    default_rows: Any,
    trainable: bool,
    option: EmbeddingVariableOption,
) -> tuple[Any, list[EmbeddingVariable]]:
    """The variable, and the tables it consists of."""
    slots = Slots()
    names = [name] if partitions is None else [f"{name}/part_{p}" for p in range(partitions)]
    tables = []
    for part, each in enumerate(names):
        device = default_rows.device if part == 0 else _device_of_next(each, default_rows.device)
        tables.append(
            EmbeddingVariable(
                name=each,
                dim=dim,
                handle=_handle(each, dim, device, option, len(names)),
                default_rows=default_rows,
                trainable=trainable,
                option=option,
                slots=slots,
            )
        )
    # To initialize is to begin anew, as of every variable; a server keeps tables between sessions.
    emptied = [_native.library().workbench_embedding_clear(table.handle) for table in tables]
    default_rows._initializer_op = tf.group(default_rows.initializer, *emptied)
    saveable = EmbeddingSaveable(name, tables, slots)
    tf.compat.v1.add_to_collection(_KEYS.SAVEABLE_OBJECTS, saveable)
    if partitions is None:
        return tables[0], tables
    return PartitionedEmbeddingVariable(name, tables), tables


def _handle(
    name: str, dim: int, device: str, option: EmbeddingVariableOption, partitions: int
) -> tf.Tensor:
    with _at(device):
        return _native.library().workbench_embedding_variable(
            shared_name=name,
            dim=dim,
            no_permission=option.init.default_value_no_permission,
            keep_versions=option.steps_to_live > 0,
            name=name,
            **option.filter_arguments(partitions),
        )


def _at(device: str) -> Any:
    """A root name scope on exactly this device."""
    stack = contextlib.ExitStack()
    stack.enter_context(tf.compat.v1.get_default_graph().colocate_with(None, ignore_existing=True))
    stack.enter_context(tf.compat.v1.device(None))
    stack.enter_context(tf.compat.v1.device(device or None))
    stack.enter_context(tf.compat.v1.name_scope(None))
    return stack


def _device_of_next(name: str, first: str) -> str:
    """Where the scope places one more variable: `tf.train.replica_device_setter` takes turns.

    Where the first partition has no job, all have the same device. Otherwise a handle that nothing
    reads is made, because device functions look at the type of an op.
    """
    if tf.DeviceSpec.from_string(first or "").job is None:
        return first
    with tf.device("/device:CPU:0"):
        return str(
            tf.raw_ops.VarHandleOp(
                dtype=tf.float32, shape=[], shared_name=f"{name}/place", name="embedding_place"
            ).device
        )


def _default_rows(
    name: str, dim: int, initializer: Any, option: EmbeddingVariableOption
) -> tf.Variable:
    """The matrix that new keys' rows are copies of."""
    initializer = option.init.initializer or initializer
    if initializer is None:
        initializer = tf.compat.v1.truncated_normal_initializer()
    if isinstance(initializer, (int, float)):
        initializer = tf.compat.v1.constant_initializer(initializer)
    if not callable(initializer):
        raise OptionError(
            f"EmbeddingVariable {name!r}: initializer is {initializer!r}; expected an initializer "
            "such as tf.ones_initializer(), or a number"
        )
    scope = tf.compat.v1.get_variable_scope()
    partitioner = scope.partitioner
    scope.set_partitioner(None)
    try:
        with tf.device("/device:CPU:0"):
            return tf.compat.v1.get_variable(
                f"{name}/default_rows",
                [option.init.default_value_dim, dim],
                tf.float32,
                initializer,
                trainable=False,
                use_resource=True,
            )
    finally:
        scope.set_partitioner(partitioner)


def _variables() -> dict[str, Any]:
    """The default graph's EmbeddingVariables by name."""
    with tf.init_scope():
        held = tf.compat.v1.get_collection_ref(_VARIABLES)
    if not held:
        held.append({})
    return held[0]


def _reused(
    existing: Any,
    name: str,
    dim: int,
    partitions: int | None,
    option: EmbeddingVariableOption,
    reuse: Any,
) -> Any:
    if not reuse:
        raise OptionError(
            f"EmbeddingVariable {name!r} is there already; give another name, or open the "
            "variable scope with reuse=True to get it again"
        )
    tables = getattr(existing, "partitions", None)
    was = (existing.shape[1], tables and len(tables), existing.option)
    if was != (dim, partitions, option):
        raise OptionError(
            f"EmbeddingVariable {name!r} was made with embedding_dim, partitions and ev_option "
            f"{was}; reuse it with the same, not with {(dim, partitions, option)}"
        )
    return existing
