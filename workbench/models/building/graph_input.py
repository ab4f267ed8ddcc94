"""The input of a model's graph: the next batch of rows, the stage behind it, what tells batches
apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing as data_testing

from workbench.core.optimizations import Optimizations
from workbench.models.data.dataset import row_dataset
from workbench.models.data.table_format import CheckedTable

v1 = tf.compat.v1

_HELD_BATCHES = 64


def next_lines(
    data: CheckedTable,
    *,
    batch_size: int,
    input_latency_ms: float = 0.0,
    endless: bool = True,
    held: bool = False,
    overlap: Callable[[Any], Any] = lambda dataset: dataset,
) -> Any:
    """The next batch of rows of a checked file, string [batch]: lines, or records of a TFRecord.

    Args:
      data: what is read; its first `rows` rows.
      batch_size: rows in a batch.
      input_latency_ms: how long a batch waits, without using a CPU, before it is delivered.
      endless: repeat the file and make only full batches; else once through it.
      held: read a few batches ahead into memory and repeat those, without waiting.
      overlap: added to the end of the pipeline, such as a prefetch; where it makes other elements
        of the rows, those are returned.
    """
    dataset = row_dataset(data)
    if endless:
        dataset = dataset.repeat()
    dataset = dataset.batch(batch_size, drop_remainder=endless)
    if held:
        dataset = dataset.take(_HELD_BATCHES).cache().repeat()
    elif input_latency_ms:
        dataset = dataset.apply(data_testing.sleep(round(input_latency_ms * 1000)))
    # TensorFlow would add a prefetch by itself and hide what is to be measured.
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    plain.autotune.enabled = False
    iterator = v1.data.make_initializable_iterator(overlap(dataset).with_options(plain))
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def stage(batch: dict[str, Any], optimizations: Optimizations) -> dict[str, Any]:
    """The batch, produced ahead of the step when the stage is switched on."""
    if optimizations.stage is None:
        return batch
    from workbench.core.session.staged import staged

    ahead: dict[str, Any] = staged(batch, optimizations.stage)
    return ahead


def fingerprint(batch: dict[str, Any]) -> tf.Tensor:
    """A number that tells a batch from any other, scalar int64: a hash of all values as text."""
    values = [tf.reshape(t, [-1]) for t in tf.nest.flatten(batch, expand_composites=True)]
    texts = [t if t.dtype == tf.string else tf.strings.as_string(t) for t in values]
    joined = tf.strings.reduce_join(tf.concat(texts, axis=0), separator="\t")
    return tf.strings.to_hash_bucket_fast(joined, 2**62)
