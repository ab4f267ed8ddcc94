"""The models of the bench of limits in stock TensorFlow: DLRM and DeepFM on ids that lie ready.

Sizes, layers and optimizers are those of `wb.models`; text, hashing and a file are not part of it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tests.bench.limit_file import (
    BATCHES,
    BUCKETS,
    DIMENSION,
    NUMBERS,
    RATES,
    TABLES,
    WIDTHS,
    Start,
)
from workbench.core.optimizations import Optimizations
from workbench.experiments.program.program import Built, Program
from workbench.models.data.criteo import CARDINALITIES
from workbench.models.data.synthetic import mixed, power_law


def program(model: str, batch: int) -> Program:
    """One of them as a program."""
    return Program(name=f"{model} {batch}", build=functools.partial(build, model, batch))


def batches(batch: int) -> dict[str, np.ndarray]:
    """Numbers, labels and ids of all batches: ids follow the power laws of Criteo's columns."""
    random = np.random.default_rng(0)
    columns = [
        mixed(power_law(random.random((BATCHES, batch)), cardinality), column) % BUCKETS
        for column, cardinality in enumerate(CARDINALITIES)
    ]
    counts = np.floor(np.expm1(np.clip(random.normal(2.2, 1.4, (BATCHES, batch, NUMBERS)), 0, 14)))
    return {
        "numbers": counts.astype(np.float32),
        "label": (random.random((BATCHES, batch)) < 0.25).astype(np.float32),
        "ids": np.stack(columns, axis=-1).astype(np.int32),
    }


def build(model: str, batch: int, _: Optimizations = Optimizations()) -> Built:  # noqa: B008
    """The training step in the default graph."""
    import tensorflow as tf

    from workbench.models.building.layers import model_scope

    v1 = tf.compat.v1
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    dataset = tf.data.Dataset.from_tensor_slices(batches(batch)).repeat().with_options(options)
    iterator = v1.data.make_initializable_iterator(dataset)
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    data = iterator.get_next()
    with model_scope(model, seed=1):
        logits = _dlrm(data) if model == "dlrm" else _deepfm(data)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.expand_dims(data["label"], 1), logits=logits
    )
    loss = tf.reduce_mean(losses)
    return Built(train_op=_minimize(model, loss), loss=loss)


def start_of(model: str, batch: int, session: Any) -> Start:
    """Where a session of the graph starts, before its first step."""
    import tensorflow as tf

    held = {variable.op.name: variable for variable in tf.compat.v1.trainable_variables()}

    def values(*names: str) -> list[np.ndarray]:
        return list(session.run([held[f"{model}/{name}"] for name in names]))

    names = [f"{stack}_{i}" for stack, i in _layers(model)]
    layers = [
        values(f"{n}/kernel", f"{n}/bias", f"{n}_norm/gamma", f"{n}_norm/beta") for n in names
    ]
    weights = [f"weight_{i}" for i in range(TABLES)] if model == "deepfm" else []
    made = batches(batch)
    return Start(
        model=model,
        layers=layers,
        logit=values("logit/kernel", "logit/bias"),
        linear=values("linear/kernel", "linear/bias") if weights else [],
        tables=values(*(f"table_{i}" for i in range(TABLES)), *weights),
        numbers=made["numbers"],
        labels=made["label"],
        ids=made["ids"],
    )


def _layers(model: str) -> list[tuple[str, int]]:
    first, second = WIDTHS[model]
    return [("first", i) for i in range(len(first) - 1)] + [
        ("second", i) for i in range(len(second) - 1)
    ]


def _stacked(hidden: Any, model: str, stack: int) -> Any:
    from workbench.models.building.layers import dense, normal

    for i, units in enumerate(WIDTHS[model][stack][1:]):
        name = f"{('first', 'second')[stack]}_{i}"
        hidden = normal(dense(hidden, units, name), name)
    return hidden


def _looked_up(data: Any, name: str, width: int) -> list[Any]:
    """Vectors of all ids; weights are 0 at first."""
    import tensorflow as tf

    v1 = tf.compat.v1
    zeros = v1.zeros_initializer() if width == 1 else None
    return [
        tf.nn.embedding_lookup(
            v1.get_variable(f"{name}_{i}", [BUCKETS, width], initializer=zeros), data["ids"][:, i]
        )
        for i in range(TABLES)
    ]


def _logarithms(data: Any) -> Any:
    import tensorflow as tf

    return tf.math.log1p(tf.maximum(data["numbers"], 0.0))


def _dlrm(data: Any) -> Any:
    import tensorflow as tf

    from workbench.models.building.layers import dense
    from workbench.models.zoo.dlrm import pairs

    bottom = _stacked(_logarithms(data), "dlrm", 0)
    vectors = tf.stack([bottom, *_looked_up(data, "table", DIMENSION)], axis=1)
    top = _stacked(tf.concat([bottom, pairs(vectors)], axis=1), "dlrm", 1)
    return dense(top, 1, "logit", activation=None)


def _deepfm(data: Any) -> Any:
    import tensorflow as tf

    from workbench.models.building.criteo_features import total
    from workbench.models.building.layers import dense
    from workbench.models.zoo.deepfm import pairwise

    numbers = _logarithms(data)
    vectors = tf.stack(_looked_up(data, "table", DIMENSION), axis=1)
    weights = _looked_up(data, "weight", 1)
    linear = total([*weights, dense(numbers, 1, "linear", activation=None)])
    flat = tf.reshape(vectors, [-1, TABLES * DIMENSION])
    deep = _stacked(tf.concat([numbers, flat], axis=1), "deepfm", 0)
    last = _stacked(tf.concat([linear, pairwise(vectors), deep], axis=1), "deepfm", 1)
    return dense(last, 1, "logit", activation=None)


def _minimize(model: str, loss: Any) -> Any:
    import tensorflow as tf

    v1 = tf.compat.v1
    rate, table_rate = RATES[model]
    if model == "dlrm":
        return v1.train.AdagradOptimizer(rate).minimize(loss)
    adam, adagrad = v1.train.AdamOptimizer(rate), v1.train.AdagradOptimizer(table_rate)
    pairs = [pair for pair in adam.compute_gradients(loss) if pair[0] is not None]
    tables = [pair for pair in pairs if isinstance(pair[0], tf.IndexedSlices)]
    others = [pair for pair in pairs if not isinstance(pair[0], tf.IndexedSlices)]
    return tf.group(adagrad.apply_gradients(tables), adam.apply_gradients(others))
