"""Gradients of the fused lookups' ops; importing this module registers them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import resource_variable_ops

from workbench import _native
from workbench.errors import UnsupportedError
from workbench.ops.embedding_variable.table import is_plain

# Attributes that a grouped lookup and its gradient share.
_GROUPED = (
    *("table_of", "combiners", "prune_invalid_ids", "fill_empty_rows", "default_ids"),
    *("ends_with_ids", "max_norms", "weights_of", "dims", "features", "concatenated"),
)


@ops.RegisterGradient("WorkbenchPostLookUp")
def _post_look_up_grad(op: tf.Operation, gradient: tf.Tensor) -> list[Any]:
    return _combined(op, gradient, unique=False)


@ops.RegisterGradient("WorkbenchPostLookUpV2")
def _post_look_up_v2_grad(op: tf.Operation, gradient: tf.Tensor) -> list[Any]:
    return _combined(op, gradient, unique=True)


@ops.RegisterGradient("WorkbenchLocalLookUp")
@ops.RegisterGradient("WorkbenchResourceLocalLookUp")
def _local_look_up_grad(op: tf.Operation, gradient: tf.Tensor) -> list[Any]:
    table, _dense_shape, values, index, row_splits = op.inputs
    outputs = _native.library().workbench_local_look_up_grad(
        gradient,
        values,
        index,
        row_splits,
        combiner=op.get_attr("combiner"),
        use_index=op.get_attr("use_index"),
    )
    slices = tf.IndexedSlices(outputs.row_gradients, outputs.table_rows, _shape_of(table))
    return [slices, None, None, None, None]


@ops.RegisterGradient("WorkbenchGroupedLookUp")
@ops.RegisterGradient("WorkbenchResourceGroupedLookUp")
def _grouped_look_up_grad(op: tf.Operation, *gradients: Any) -> list[Any]:
    count, features = op.get_attr("N"), op.get_attr("F")
    tables, given = op.inputs[:count], _grouped_arguments(op, gradients)
    library = _native.library()
    made = library.workbench_grouped_look_up_grad(N=count, **given)
    shapes = [_shape_of(table) for table in tables]
    norms = dict(zip(op.get_attr("table_of"), op.get_attr("max_norms"), strict=False))
    slices = [
        tf.IndexedSlices(_through_norm(gradient, table, rows, norms.get(i, -1.0)), rows, shape)
        for i, (gradient, table, rows, shape) in enumerate(
            zip(made.row_gradients, tables, made.table_rows, shapes, strict=True)
        )
    ]
    of_weights: Any = []
    if given["weights"]:
        grad = (
            library.workbench_grouped_look_up_weight_grad
            if op.type == "WorkbenchGroupedLookUp"
            else library.workbench_resource_grouped_look_up_weight_grad
        )
        of_weights = grad(tables=tables, **given)
    return [*slices, *[None] * (3 * features), *of_weights]


@ops.RegisterGradient("WorkbenchEmbeddingGroupedLookUp")
def _embedding_grouped_look_up_grad(op: tf.Operation, *gradients: Any) -> list[Any]:
    count = op.get_attr("N")
    given = _grouped_arguments(op, gradients[: op.get_attr("M")])
    # The rows must be there before they are trained; an update finds the lookup that has them here.
    with tf.control_dependencies([op] if is_plain(op) else []):
        made = _native.library().workbench_grouped_look_up_grad(N=count, **given)
    slices = [
        tf.IndexedSlices(*each) for each in zip(made.row_gradients, made.table_rows, strict=True)
    ]
    return [*slices, *[None] * (len(op.inputs) - count)]


def _grouped_arguments(op: tf.Operation, gradients: tuple[Any, ...]) -> dict[str, Any]:
    """What the gradient of a grouped lookup is given of it; gradients are those of its vectors."""
    count, features, weights = (op.get_attr(name) for name in ("N", "F", "W"))
    ids = op.inputs[count : count + 3 * features + weights]
    return {
        "gradients": [
            tf.zeros_like(output) if gradient is None else tf.convert_to_tensor(gradient)
            for gradient, output in zip(gradients, op.outputs, strict=False)
        ],
        "ids": ids[:features],
        "rows": ids[features : 2 * features],
        "dense_shapes": ids[2 * features : 3 * features],
        "weights": ids[3 * features :],
        **{name: op.get_attr(name) for name in _GROUPED},
    }


def _through_norm(gradient: tf.Tensor, table: Any, rows: tf.Tensor, max_norm: float) -> tf.Tensor:
    """The gradient of rows of a table, from that of the same rows shortened to `max_norm`."""
    if max_norm < 0:
        return gradient
    if table.dtype == tf.resource:
        table = tf.raw_ops.ResourceGather(resource=table, indices=rows, dtype=gradient.dtype)
    else:
        table = tf.gather(table, rows)
    with tf.GradientTape() as tape:
        tape.watch(table)
        shortened = tf.clip_by_norm(table, max_norm, axes=1)
    return tape.gradient(shortened, table, gradient)


@ops.RegisterGradient("WorkbenchPreLookUp")
def _pre_look_up_grad(op: tf.Operation, *gradients: Any) -> list[Any]:
    return _of_weights(op, gradients)


@ops.RegisterGradient("WorkbenchPruneInvalidAndFillEmptyRows")
def _prune_grad(op: tf.Operation, *gradients: Any) -> list[Any]:
    return _of_weights(op, gradients)


@ops.RegisterGradient("WorkbenchGather")
def _gather_grad(op: tf.Operation, gradient: tf.Tensor) -> list[Any]:
    """Of a gather of rows of a table, by ids of rank 1: as the stock ones, without any reshape."""
    table, ids = op.inputs
    return [tf.IndexedSlices(gradient, ids, _shape_of(table)), None]


def _shape_of(table: tf.Tensor) -> tf.Tensor:
    if table.dtype != tf.resource:
        return tf.shape(table, out_type=tf.int64)
    held = resource_variable_ops.get_eager_safe_handle_data(table)
    shape = tf.TensorShape(held.shape_and_type[0].shape if held.is_set else None)
    if shape.is_fully_defined():
        return tf.constant(shape.as_list(), tf.int64)
    return tf.raw_ops.VariableShape(input=table, out_type=tf.int64)


@ops.RegisterGradient("WorkbenchGroupedLookUpGrad")
@ops.RegisterGradient("WorkbenchGroupedLookUpWeightGrad")
@ops.RegisterGradient("WorkbenchResourceGroupedLookUpWeightGrad")
@ops.RegisterGradient("WorkbenchLocalLookUpGrad")
@ops.RegisterGradient("WorkbenchPostLookUpGrad")
@ops.RegisterGradient("WorkbenchPostLookUpV2Grad")
def _second_order(op: tf.Operation, *gradients: Any) -> list[Any]:
    del gradients
    raise UnsupportedError(
        f"second derivatives of the fused embedding lookup {op.name!r} are not implemented; build "
        "this lookup with tf.nn.safe_embedding_lookup_sparse"
    )


ops.NotDifferentiable("WorkbenchUniqueWithCounts")
ops.NotDifferentiable("WorkbenchPartitionWithPermutation")


def _combined(op: tf.Operation, gradient: tf.Tensor, *, unique: bool) -> list[Any]:
    """Gradients of shards and weights, in the order of the op's inputs."""
    count = op.get_attr("num_partitions")
    shards, values = list(op.inputs[:count]), list(op.inputs[count : 2 * count])
    _dense_shape, *index, permutation, row_splits, weights = op.inputs[2 * count :]
    weighted, max_norm = op.get_attr("use_weights"), op.get_attr("max_norm")
    library = _native.library()
    build = (
        library.workbench_post_look_up_v2_grad if unique else library.workbench_post_look_up_grad
    )
    outputs = build(
        gradient,
        values,
        *index,
        permutation,
        row_splits,
        weights,
        shards if weighted or max_norm >= 0 else [],
        combiner=op.get_attr("combiner"),
        use_weights=weighted,
        max_norm=max_norm,
    )
    none_of = [None] * (count + 1 + len(index) + 2)
    return [*outputs.shard_gradients, *none_of, outputs.weights_gradient if weighted else None]


def _of_weights(op: tf.Operation, gradients: tuple[Any, ...]) -> list[Any]:
    """Gradient of the weights that went in, from that of the kept ones; filled ones drop out."""
    of_kept, sources, weights = gradients[-2], op.outputs[-1], op.inputs[3]
    if of_kept is None or not op.get_attr("use_weights"):
        return [None] * len(op.inputs)
    # Sources below 0 belong to no segment.
    of_given = tf.math.unsorted_segment_sum(of_kept, sources, tf.size(weights))
    return [None, None, None, of_given, None]
