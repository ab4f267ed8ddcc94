"""The graph of DLRM on a Criteo click log: parse, (stage,) hash, look up, train.

Sizes and order follow DeepRec's modelzoo (batch 512, 26 tables of 16, bottom 512-256-64-16, dot
interaction, top 512-256). There each layer of the top network reads the interaction itself, so that
only the last one feeds the logit; here they are stacked, as the model was published.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing as data_testing

from workbench.core.options import Optimizations
from workbench.experiments.program import Built
from workbench.models.criteo import CATEGORIES, CRITEO, NUMBERS
from workbench.models.dlrm import DlrmOptions
from workbench.ops.embedding_optimizers import AdagradOptimizer
from workbench.ops.fusion import safe_embedding_lookup_sparse

v1 = tf.compat.v1

_BUCKETS = 10_000
_DIMENSION = 16
_BOTTOM = (512, 256, 64, 16)
_TOP = (512, 256)
_HELD_BATCHES = 64


def build(options: DlrmOptions, optimizations: Optimizations) -> Built:
    """Builds training on the endless, repeated log in the current graph."""
    return train(options, stage(parse(next_lines(options)), optimizations))


def build_epoch(options: DlrmOptions, optimizations: Optimizations) -> Built:
    """Builds what only reads, once through the log, and tells batches apart by a fingerprint."""
    lines = next_lines(dataclasses.replace(options, input_latency_ms=0.0), endless=False)
    batch = stage(parse(lines), optimizations)
    texts = [
        batch["label"],
        *(batch[name] for name in NUMBERS),
        *(batch[name] for name in CATEGORIES),
    ]
    joined = tf.strings.reduce_join(
        tf.stack([t if t.dtype == tf.string else tf.strings.as_string(t) for t in texts]),
        separator="\t",
    )
    fingerprint = tf.strings.to_hash_bucket_fast(joined, 2**62)
    return Built(train_op=fingerprint.op, fingerprint=fingerprint)


def build_input(options: DlrmOptions, optimizations: Optimizations) -> Built:
    """Builds a step that only waits for a batch of lines: its time is T_input.

    The prefetch hides what a session run costs, which is no part of the input.
    """
    del optimizations
    return Built(train_op=next_lines(options, overlap=lambda lines: lines.prefetch(1)).op)


def build_compute(options: DlrmOptions, optimizations: Optimizations) -> Built:
    """Builds un-staged training on lines that lie ready in memory: its time is T_compute."""
    del optimizations
    return train(options, parse(next_lines(options, held=True)))


def next_lines(
    options: DlrmOptions,
    *,
    endless: bool = True,
    held: bool = False,
    overlap: Callable[[Any], Any] = lambda dataset: dataset,
) -> tf.Tensor:
    """The next batch of lines, string [batch].

    Args:
      options: what is read, and how long a batch waits.
      endless: repeat the log and make only full batches; else once through it.
      held: read a few batches ahead into memory and repeat those, without waiting.
      overlap: added to the end of the pipeline, such as a prefetch.
    """
    dataset = tf.data.TextLineDataset(str(options.data.path)).take(options.data.rows)
    if endless:
        dataset = dataset.repeat()
    dataset = dataset.batch(options.batch_size, drop_remainder=endless)
    if held:
        dataset = dataset.take(_HELD_BATCHES).cache().repeat()
    elif options.input_latency_ms:
        dataset = dataset.apply(data_testing.sleep(round(options.input_latency_ms * 1000)))
    # TensorFlow would add a prefetch by itself and hide what is to be measured.
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    plain.autotune.enabled = False
    iterator = v1.data.make_initializable_iterator(overlap(dataset).with_options(plain))
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def parse(lines: tf.Tensor) -> dict[str, tf.Tensor]:
    """The 40 columns of a batch of lines, by name: label and numbers float32, else string."""
    defaults = [
        tf.constant([""] if column.kind == "category" else [0.0]) for column in CRITEO.columns
    ]
    fields = tf.io.decode_csv(lines, defaults, field_delim="\t", use_quote_delim=False)
    return {column.name: field for column, field in zip(CRITEO.columns, fields, strict=True)}


def stage(batch: dict[str, tf.Tensor], optimizations: Optimizations) -> dict[str, tf.Tensor]:
    """The batch, produced ahead of the step when the stage is switched on."""
    if optimizations.stage is None:
        return batch
    from workbench.core.stage import staged

    return staged(batch, optimizations.stage)


def train(options: DlrmOptions, batch: dict[str, tf.Tensor]) -> Built:
    """Builds model, loss and update on a parsed batch."""
    with v1.variable_scope("dlrm", use_resource=False, initializer=_initializer(options.seed)):
        logits = _logits(batch)
    label = tf.expand_dims(batch["label"], 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    step = v1.train.get_or_create_global_step()
    optimizer = AdagradOptimizer(options.learning_rate)
    return Built(train_op=optimizer.minimize(loss, global_step=step), loss=loss)


def _logits(batch: dict[str, tf.Tensor]) -> tf.Tensor:
    numbers = tf.stack([batch[name] for name in NUMBERS], axis=1)
    # Counts reach from -3 to millions.
    dense = tf.math.log1p(tf.maximum(numbers, 0.0))
    for i, units in enumerate(_BOTTOM):
        dense = _normal(_dense(dense, units, f"bottom_{i}"), f"bottom_{i}")
    vectors = tf.stack([dense, *(_looked_up(batch[name], name) for name in CATEGORIES)], axis=1)
    top = tf.concat([dense, _pairs(vectors)], axis=1)
    for i, units in enumerate(_TOP):
        top = _normal(_dense(top, units, f"top_{i}"), f"top_{i}")
    return _dense(top, 1, "logit", activation=None)


def _looked_up(values: tf.Tensor, name: str) -> tf.Tensor:
    """Mean of the vectors of the ids of one column, float32 [batch, 16]; empty fields have none."""
    with v1.name_scope(name):
        present = tf.where(tf.not_equal(values, ""))
        ids = tf.strings.to_hash_bucket_fast(tf.gather_nd(values, present), _BUCKETS)
        rows = tf.shape(values, out_type=tf.int64)
        positions = tf.concat([present, tf.zeros_like(present)], axis=1)
        sparse = tf.SparseTensor(positions, ids, tf.concat([rows, [1]], axis=0))
        # A reference variable: a resource variable would be copied whole at every step, because
        # the safe lookup reads it while the sparse update writes it.
        table = v1.get_variable(f"{name}_table", [_BUCKETS, _DIMENSION])
        vectors = safe_embedding_lookup_sparse(table, sparse, combiner="mean")
        return tf.ensure_shape(vectors, [None, _DIMENSION])


def _pairs(vectors: tf.Tensor) -> tf.Tensor:
    """Dot products of all pairs of [batch, n, d], float32 [batch, n (n - 1) / 2]."""
    count = vectors.shape[1]
    gram = tf.reshape(tf.matmul(vectors, vectors, transpose_b=True), [-1, count * count])
    below = [row * count + column for row in range(count) for column in range(row)]
    return tf.gather(gram, below, axis=1)


def _dense(inputs: tf.Tensor, units: int, name: str, activation: Any = tf.nn.relu) -> tf.Tensor:
    with v1.variable_scope(name):
        kernel = v1.get_variable("kernel", [inputs.shape[1], units])
        bias = v1.get_variable("bias", [units], initializer=v1.zeros_initializer())
        outputs = tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
        return outputs if activation is None else activation(outputs)


def _normal(inputs: tf.Tensor, name: str) -> tf.Tensor:
    """Batch normalisation over axis 0 by the batch's own moments, as in training."""
    with v1.variable_scope(f"{name}_norm"):
        width = [inputs.shape[1]]
        gamma = v1.get_variable("gamma", width, initializer=v1.ones_initializer())
        beta = v1.get_variable("beta", width, initializer=v1.zeros_initializer())
        mean, variance = tf.nn.moments(inputs, axes=[0])
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-3)


def _initializer(seed: int) -> Callable[..., tf.Tensor]:
    """Glorot-normal weights that depend on the variable's name and the seed, on nothing else."""

    def initial(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> tf.Tensor:
        del partition_info
        name = v1.get_default_graph().get_name_scope()
        drawn = (zlib.crc32(name.encode()), seed)
        fan = sum(int(size) for size in shape)
        return tf.random.stateless_normal(shape, drawn, 0.0, (2.0 / fan) ** 0.5, dtype)

    return initial
