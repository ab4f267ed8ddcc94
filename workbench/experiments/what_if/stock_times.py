"""How many times as long as the stock op of the same result other ops take here."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from workbench.core.optimizations import AUTO, Optimizations
from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.trace import trace
from workbench.experiments.program.program import Built, Program

if TYPE_CHECKING:
    import tensorflow as tf

# Matrices that are normalized: rows and columns.
_MATRICES = ((512, 64), (512, 512), (2048, 256))
# Vectors that interact: examples, vectors of each and their width.
_VECTORS = ((512, 27, 16), (512, 12, 64), (2048, 27, 32))
# Dense layers whose gradients are taken: rows, inputs and units.
_LAYERS = ((512, 429, 1024), (512, 1024, 256), (512, 367, 512), (512, 512, 256), (512, 256, 64))
# Lines of text that become columns, of which words are hashed: rows and columns.
_TEXTS = ((512, 26), (2048, 26))
# Matrices of ids, a column of which each feature looks up: rows and columns.
_IDS = ((512, 26), (2048, 26))
# Values of variables that Adam updates.
_VARIABLES = (1_024, 8_192, 262_144)
_STEPS = 20
_WARM_UP_STEPS = 16


def traced(
    name: str,
    build: Callable[[Optimizations], Built],
    fused: str | None,
    *,
    warm_up_steps: int = _WARM_UP_STEPS,
) -> Trace:
    """A trace of a program with lookups and more fused in some way, or not at all."""
    return trace(
        Program(name=name, build=build),
        Optimizations(fused_embeddings=fused),
        steps=_STEPS,
        warm_up_steps=warm_up_steps,
        progress=False,
    )


def medians(found: Trace) -> Iterator[tuple[str, str, float]]:
    """Type and name of each node, and the median of its times."""
    medians = found.events.groupby("node")["dur_ns"].median()
    nodes = found.nodes
    for node, ns in zip(medians.index.tolist(), medians.tolist(), strict=True):
        yield str(nodes["op"][node]), str(nodes["name"][node]), float(ns)


def times_of_stock() -> dict[str, float]:
    """How many times as long as the stock op that gives the same result each other op takes."""
    stock, fused = (
        {name: ns for _, name, ns in medians(traced("layers", _build_layers, way))}
        for way in (None, AUTO)
    )
    norm = (len(_MATRICES), "matrix{}/batchnorm/add_1")
    dots, pairs = ((len(_VECTORS), name) for name in ("vectors{}/GatherV2", "vectors{}/sub"))
    ways = {
        "WorkbenchBatchNorm": ("matrix{}/fused_batch_norm", *norm),
        "WorkbenchBatchNormGrad": ("gradients/matrix{}/fused_batch_norm_grad", *norm),
        "WorkbenchDotInteraction": ("vectors{}/dot_interaction", *dots),
        "WorkbenchDotInteractionGrad": ("gradients/vectors{}/dot_interaction_grad", *dots),
        "WorkbenchFmInteraction": ("vectors{}/fm_interaction", *pairs),
        "WorkbenchFmInteractionGrad": ("gradients/vectors{}/fm_interaction_grad", *pairs),
    }
    times = {
        op: statistics.geometric_mean(
            fused[name.format(i)] / stock[like.format(i)] for i in range(count)
        )
        for op, (name, count, like) in ways.items()
    }
    # These have the stock op's name.
    products = [name for name in stock if name.startswith("gradients/layer") and "MatMul" in name]
    lines = [f"text{i}/DecodeCSV" for i in range(len(_TEXTS))]
    updates = [f"Adam/update_variable{i}/ApplyAdam" for i in range(len(_VARIABLES))]
    for op, names in (
        ("WorkbenchMatMul", products),
        ("WorkbenchDecodeCsv", lines),
        ("WorkbenchApplyAdam", updates),
        ("WorkbenchResourceApplyAdam", updates),
    ):
        times[op] = statistics.geometric_mean(fused[name] / stock[name] for name in names)
    # One op hashes the columns of a text; each of the stock ones hashes one.
    hashed = sorted(name for name in fused if name.startswith("hashed_columns/columns_"))
    times["WorkbenchHashColumns"] = statistics.geometric_mean(
        fused[name] / (columns * stock[f"text{i}/column0"])
        for i, (name, (_, columns)) in enumerate(zip(hashed, _TEXTS, strict=True))
    )
    prepared = sorted(name for name in fused if name.startswith("id_columns/columns_"))
    times["WorkbenchIdColumns"] = statistics.geometric_mean(
        fused[name] / (columns * stock[f"ids{i}/column0/SelectV2"])
        for i, (name, (_, columns)) in enumerate(zip(prepared, _IDS, strict=True))
    )
    return times


def _build_layers(_optimizations: Optimizations) -> Built:
    """Matrices are normalized, vectors multiplied, layers run, one by one, and trained on."""
    import tensorflow as tf

    v1 = tf.compat.v1
    losses: list[tf.Tensor] = []
    for number, matrix_shape in enumerate(_MATRICES):
        with v1.name_scope(f"matrix{number}"):
            names = (f"matrix{number}_{name}" for name in ("gamma", "beta"))
            gamma, beta = (_vector(name, matrix_shape) for name in names)
            matrix = _trained(f"matrix{number}_x", matrix_shape, losses)
            mean, variance = tf.nn.moments(matrix, axes=[0])
            normal = tf.nn.batch_normalization(matrix, mean, variance, beta, gamma, 1e-3)
            losses.append(tf.nn.l2_loss(normal - _drawn(-1, matrix_shape)))
    for number, shape in enumerate(_VECTORS):
        with v1.name_scope(f"vectors{number}"):
            _, count, _ = shape
            vectors = _trained(f"vectors{number}_x", shape, losses)
            products = tf.matmul(vectors, vectors, transpose_b=True)
            below = [row * count + column for row in range(count) for column in range(row)]
            flat = tf.reshape(products, [-1, count * count])
            losses.append(tf.nn.l2_loss(tf.gather(flat, below, axis=1)))
            vectors = _trained(f"factors{number}_x", shape, losses)
            total, squares = tf.reduce_sum(vectors, 1), tf.reduce_sum(tf.square(vectors), 1)
            losses.append(tf.nn.l2_loss(tf.square(total) - squares))
    for number, (rows, inputs, units) in enumerate(_LAYERS):
        with v1.name_scope(f"layer{number}"):
            x = _trained(f"layer{number}_x", (rows, inputs), losses)
            weights = v1.get_variable(f"layer{number}_weights", [inputs, units])
            losses.append(tf.nn.l2_loss(tf.matmul(x, weights)))
    for number, (rows, columns) in enumerate(_TEXTS):
        with v1.name_scope(f"text{number}"):
            # A loss whose gradient needs the ids: else nothing would be hashed.
            scale = _vector(f"text{number}_scale", (1,))
            losses.append(tf.reduce_sum(scale) * _mean_id(rows, columns, losses))
    for number, (rows, columns) in enumerate(_IDS):
        with v1.name_scope(f"ids{number}"):
            scale = _vector(f"ids{number}_scale", (1,))
            losses.append(tf.reduce_sum(scale) * _mean_from_end(rows, columns, losses))
    config = v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    trains = v1.train.GradientDescentOptimizer(0.01).minimize(tf.add_n(losses))
    return Built(train_op=tf.group(trains, _updates()), config=config)


def _updates() -> tf.Operation:
    """Updates of variables by Adam."""
    import tensorflow as tf

    v1 = tf.compat.v1
    pairs = []
    for number, size in enumerate(_VARIABLES):
        variable = v1.get_variable(f"variable{number}", [size], use_resource=False)
        pairs.append((tf.identity(_drawn(number, (size,))), variable))
    update: tf.Operation = v1.train.AdamOptimizer(0.01).apply_gradients(pairs)
    return update


def _mean_id(rows: int, columns: int, losses: list[tf.Tensor]) -> tf.Tensor:
    """The mean of the ids of all words of lines, which are other ones in each step."""
    import tensorflow as tf

    with tf.control_dependencies(losses[-1:]):
        drawn = tf.random.uniform([rows, columns], maxval=2**31 - 1, dtype=tf.int32, seed=1)
        words = tf.strings.as_string(drawn)
        lines = tf.strings.reduce_join(words, axis=1, separator=",")
    ids = []
    for number, texts in enumerate(tf.io.decode_csv(lines, [[""]] * columns, name="DecodeCSV")):
        there = tf.where(tf.not_equal(texts, ""))
        words = tf.gather_nd(texts, there)
        ids.append(tf.strings.to_hash_bucket_fast(words, 10_000, name=f"column{number}"))
    return tf.reduce_mean(tf.cast(tf.concat(ids, 0), tf.float32))


def _mean_from_end(rows: int, columns: int, losses: list[tf.Tensor]) -> tf.Tensor:
    """The mean of the ids of all columns of a matrix, as Keras prepares them."""
    import tensorflow as tf

    with tf.control_dependencies(losses[-1:]):
        matrix = tf.random.uniform([rows, columns], maxval=10_000, dtype=tf.int32, seed=1)
    prepared = []
    for number in range(columns):
        with tf.name_scope(f"column{number}"):
            ids = matrix[:, number]
            prepared.append(tf.where(ids < 0, ids + 10_000, ids))
    return tf.reduce_mean(tf.cast(tf.concat(prepared, 0), tf.float32))


def _trained(name: str, shape: tuple[int, ...], losses: list[tf.Tensor]) -> tf.Tensor:
    """Numbers that depend on a variable, behind the last loss, lest they share the caches."""
    import tensorflow as tf

    with tf.control_dependencies(losses[-1:]):
        return tf.identity(_drawn(0, shape)) * _vector(name, shape)


def _vector(name: str, shape: tuple[int, ...]) -> tf.Variable:
    """A variable as wide as this shape."""
    import tensorflow as tf

    return tf.compat.v1.get_variable(name, shape[-1:])


def _drawn(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    drawn: np.ndarray = np.random.default_rng(1 + seed).normal(size=shape).astype(np.float32)
    return drawn
