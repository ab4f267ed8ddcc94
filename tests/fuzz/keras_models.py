"""Programs as a Keras model that is fitted as it is, and fused by `wb.fuse_model`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import workbench as wb
from tests.fuzz.compare import differences
from tests.fuzz.draw import Draw
from tests.fuzz.result import Result
from tests.fuzz.sessions import Outcome, failure

_OPTIMIZERS = {
    "descent": lambda: keras.optimizers.SGD(0.1),
    "adagrad": lambda: keras.optimizers.Adagrad(0.1),
    "adam": lambda: keras.optimizers.Adam(0.01),
    "momentum": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
    "clipped": lambda: keras.optimizers.SGD(0.1, clipnorm=1.0),
    "ftrl": lambda: keras.optimizers.Ftrl(0.1),
}
_ROWS = 12
# Of weights, about two of float32's last digits: one of several shows what rounding decides.
_NUDGES = (0.0, 2e-7, -2e-7, 4e-7, -4e-7)


@dataclasses.dataclass(frozen=True)
class Feature:
    """An input of ids, and how its rows become one vector.

    Attributes:
      table: the number of its table.
      form: "dense" or "sparse".
      length: ids of an example.
      way: "embedding" (Keras's layer), or of a layer of the user's own: "gather", "checked" (behind
        an assertion), "counted", "assigned" (behind an assignment of its table), "value" (of the
        value of the table, which is changed behind it).
      combiner: how the rows of an example are combined.
      shares: the number of the feature whose ids it reads; its own number without one.
    """

    table: int
    form: str = "dense"
    length: int = 2
    way: str = "embedding"
    combiner: str = "sum"
    shares: int = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class KerasProgram:
    """A model and its training.

    Attributes:
      seed: of all values.
      batch: examples of a batch; `steps`, batches.
      dims: the width of each table.
      features: its inputs.
      cross: "", "dot" or "fm": the interaction of the vectors, if there is one.
      widths: of the dense layers; `norm`, whether the first is normalized.
      untrained: the number of a feature that is looked up once more for an output without a loss;
        -1 without one.
      optimizer: one of Keras's.
      way: "fit", "batches" (`train_on_batch`) or "several" (steps in one execution).
      asks: whether it evaluates and predicts as well.
      grappler: whether TensorFlow optimizes the graph.
    """

    seed: int = 0
    batch: int = 4
    steps: int = 3
    dims: tuple[int, ...] = (8,)
    features: tuple[Feature, ...] = (Feature(0),)
    cross: str = ""
    widths: tuple[int, ...] = ()
    norm: bool = False
    untrained: int = -1
    optimizer: str = "descent"
    way: str = "batches"
    asks: bool = False
    grappler: bool = True

    def lines(self) -> Iterator[str]:
        """What differs from the simplest program."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default or field.name == "seed":
                yield f"{field.name}={value!r}"


def draw(seed: int) -> KerasProgram:
    """The program of a seed."""
    a = Draw(seed)
    tables, count = a.between(1, 3), a.between(1, 4)
    features = tuple(_feature(a, number, tables) for number in range(count))
    return KerasProgram(
        seed=seed,
        batch=a.one_of((3, 4, 8, 32)),
        dims=tuple(a.one_of((8, 8, 4, 16)) for _ in range(tables)),
        features=features,
        cross=a.one_of(("", "", "dot", "fm")),
        widths=a.one_of(((), (32,), (32, 32), (48, 8))),
        norm=a.chance(0.3),
        untrained=a.between(0, count - 1) if a.chance(0.4) else -1,
        optimizer=a.one_of(("descent", "adagrad", "adam", "momentum", "clipped", "ftrl")),
        way=a.one_of(("batches", "fit", "several")),
        asks=a.chance(0.2),
    )


def _feature(a: Draw, number: int, tables: int) -> Feature:
    ways = ("embedding", "embedding", "gather", "checked", "counted", "assigned", "value")
    return Feature(
        table=a.between(0, tables - 1),
        form=a.one_of(("dense", "dense", "sparse")),
        length=a.between(1, 3),
        way=a.one_of(ways),
        combiner=a.one_of(("sum", "mean", "sqrtn")),
        shares=a.between(0, number) if a.chance(0.3) else number,
    )


class Lookup(keras.layers.Layer):
    """A user's layer: rows of a table, behind whatever the feature says."""

    def __init__(self, table: keras.Variable, feature: Feature) -> None:
        super().__init__()
        self.table, self._feature = table, feature
        self.count = self.add_weight(shape=(), dtype="int64", trainable=False, name="count")

    def call(self, ids: Any) -> tf.Tensor:
        """Vectors of [batch, dim]."""
        table, feature = self.table.value, self._feature
        waits: list[Any] = []
        values = ids.values if isinstance(ids, tf.SparseTensor) else ids
        if feature.way == "checked":
            waits = [tf.debugging.assert_less(values, tf.constant(_ROWS, values.dtype))]
        if feature.way == "counted":
            waits = [self.count.value.assign_add(1)]
        if feature.way == "assigned":
            waits = [table.assign(table * 0.5 + 0.125)]
        with tf.control_dependencies([op for op in waits if op is not None]):
            read = table.read_value() if feature.way == "value" else table
            if isinstance(ids, tf.SparseTensor):
                found = tf.nn.safe_embedding_lookup_sparse(read, ids, combiner=feature.combiner)
            else:
                found = tf.reduce_sum(tf.gather(read, ids), 1)
        if feature.way == "value":
            table.assign_add(tf.ones_like(table) * 0.25)
        return found

    def compute_output_shape(self, shape: Any) -> Any:
        """Of its vectors."""
        return (shape[0], self.table.shape[1])


class Cross(keras.layers.Layer):
    """An interaction of vectors."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """[batch, count, dim] → what they have in common."""
        count = x.shape[1]
        if self._kind == "fm":
            return tf.square(tf.reduce_sum(x, 1)) - tf.reduce_sum(tf.square(x), 1)
        products = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, count * count])
        pairs = [a * count + b for a in range(count) for b in range(a)]
        return tf.gather(products, pairs, axis=1)


def model_of(program: KerasProgram, nudge: float = 0.0) -> Any:
    """The compiled model of a program; all its weights depend on its seed alone."""
    keras.backend.clear_session()
    random = np.random.RandomState(program.seed)
    tables = [
        keras.Variable(np.zeros([_ROWS, dim], np.float32), name=f"table_{number}")
        for number, dim in enumerate(program.dims)
    ]
    embeddings = [keras.layers.Embedding(_ROWS, dim) for dim in program.dims]
    inputs: list[Any] = []
    for number, feature in enumerate(program.features):
        is_sparse = feature.form == "sparse" and feature.way != "embedding"
        inputs.append(
            keras.Input((feature.length,), dtype="int64", sparse=is_sparse, name=f"ids_{number}")
        )
    vectors = [
        _vector(program, number, inputs, tables, embeddings)
        for number in range(len(program.features))
    ]
    x = vectors[0] if len(vectors) == 1 else keras.layers.Concatenate()(vectors)
    alike = [each for each in vectors if each.shape[-1] == vectors[0].shape[-1]]
    if program.cross and len(alike) > 1:
        stacked = keras.layers.Reshape((len(alike), vectors[0].shape[-1]))(
            keras.layers.Concatenate()(alike)
        )
        x = keras.layers.Concatenate()([x, Cross(program.cross)(stacked)])
    for number, width in enumerate(program.widths):
        x = keras.layers.Dense(width, activation="relu")(x)
        if program.norm and not number:
            x = keras.layers.BatchNormalization(epsilon=0.01)(x)
    outputs, losses = {"y": keras.layers.Dense(1, name="y")(x)}, {"y": "mse"}
    if program.untrained >= 0:
        again = _vector(program, program.untrained, inputs, tables, embeddings)
        outputs["again"] = keras.layers.Identity(name="again")(again)
    model = keras.Model(inputs, outputs)
    for weight in model.weights:
        value = random.normal(size=weight.shape) * 0.4
        factor = 1 + nudge * random.uniform(-1, 1, weight.shape)
        if "variance" in weight.path:
            value = np.abs(value) + 1
        if weight.dtype == "float32":
            weight.assign((value * factor).astype(weight.dtype))
    model.compile(
        _OPTIMIZERS[program.optimizer](),
        losses,
        jit_compile=False,
        steps_per_execution=2 if program.way == "several" else 1,
    )
    return model


def _vector(program: KerasProgram, number: int, inputs: Any, tables: Any, embeddings: Any) -> Any:
    feature = program.features[number]
    shared = feature.shares if feature.shares in range(number) else number
    ids = inputs[shared]
    is_sparse = program.features[shared].form == "sparse" and (
        program.features[shared].way != "embedding"
    )
    if feature.way == "embedding" and not is_sparse:
        found = embeddings[feature.table](ids)
        return keras.layers.Flatten()(found)
    return Lookup(tables[feature.table], feature)(ids)


def data_of(program: KerasProgram) -> list[tuple[Any, Any]]:
    """Batches of inputs and labels."""
    found = []
    for step in range(program.steps):
        random = np.random.RandomState([program.seed, step])
        inputs = {}
        for number, feature in enumerate(program.features):
            ids = random.randint(0, _ROWS, (program.batch, feature.length))
            value: Any = tf.constant(ids, tf.int64)
            if feature.form == "sparse" and feature.way != "embedding":
                value = tf.sparse.from_dense(value * (random.rand(*ids.shape) < 0.7))
            inputs[f"ids_{number}"] = value
        labels = {"y": tf.constant(random.normal(size=(program.batch, 1)), tf.float32)}
        found.append((inputs, labels))
    return found


def check(program: KerasProgram) -> Result:
    """Fits a model as it is, then fused."""
    result = Result(program=program, steps=program.steps)
    try:
        labels, stock = fitted(program)
    except (TypeError, ValueError, LookupError) as error:
        result.skipped = f"{type(error).__name__}: {error}"[:200]
        return result
    try:
        _, found = fitted(program, result)
    except wb.WorkbenchError as error:
        result.add("plan", "planning", f"{type(error).__name__}: {error}")
        return result
    labels = labels[: min(len(stock), len(found))]
    seen = list(differences(stock[: len(labels)], found[: len(labels)], labels))
    if not seen:
        return result
    if program.grappler and _grappler_changes(program, labels, stock):
        return check(dataclasses.replace(program, grappler=False))
    kept = seen
    for nudge in _NUDGES:
        _, other = fitted(program, nudge=nudge)
        varying = {
            (each.where, each.kind, each.name)
            for each in differences(stock[: len(labels)], other[: len(labels)], labels, 1e-5)
        }
        kept = [each for each in kept if (each.where, each.kind, each.name) not in varying]
        if not kept:
            break
    result.differences, result.varied = kept, len(seen) - len(kept)
    return result


def _grappler_changes(
    program: KerasProgram, labels: Sequence[str], stock: Sequence[Outcome]
) -> bool:
    """Whether stock gives something else without TensorFlow's optimizer, which drops waits."""
    _, other = fitted(dataclasses.replace(program, grappler=False))
    return any(differences(stock[: len(labels)], other[: len(labels)], labels))


def fitted(
    program: KerasProgram, result: Result | None = None, nudge: float = 0.0
) -> tuple[list[str], list[Outcome]]:
    """What a model gives and has after each call; with a result, fused, which it counts."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not program.grappler})
    model, batches = model_of(program, nudge), data_of(program)
    fusion = wb.fuse_model(model) if result is not None else None
    labels, found = [], []
    for name, call in _calls(program, model, batches):
        labels.append(name)
        try:
            values = call()
        except wb.WorkbenchError:
            raise
        except Exception as error:
            found.append(failure(error))
            break
        state = {f"{number} {each.path}": np.asarray(each) for number, each in _variables(model)}
        found.append(Outcome(values=values, state=state))
    if result is not None and fusion is not None and fusion.plan is not None:
        result.fused = fusion.plan.count
    return labels, found


def _variables(model: Any) -> Iterator[tuple[int, Any]]:
    return enumerate([*model.variables, *model.optimizer.variables])


def _calls(program: KerasProgram, model: Any, batches: Any) -> Iterator[tuple[str, Any]]:
    """What is called, and its name."""
    if program.way == "batches":
        for number, (inputs, labels) in enumerate(batches):
            yield f"batch {number}", functools.partial(_train, model, inputs, labels)
    else:
        yield "fit", lambda: _fit(model, batches)
    if program.asks:
        inputs, labels = batches[0]
        yield "evaluate", lambda: {"loss": np.float32(model.test_on_batch(inputs, labels))}
        yield "predict", lambda: model.predict_on_batch(inputs)


def _train(model: Any, inputs: Any, labels: Any) -> dict[str, Any]:
    return {"loss": np.float32(model.train_on_batch(inputs, labels))}


def _fit(model: Any, batches: Any) -> dict[str, Any]:
    each = [tf.data.Dataset.from_tensors(batch) for batch in batches]
    data = functools.reduce(lambda one, other: one.concatenate(other), each)
    return {"losses": np.float32(model.fit(data, epochs=2, verbose=0).history["loss"])}
