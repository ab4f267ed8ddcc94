"""Models as others write them, of which Workbench knows nothing: stock TensorFlow on drawn data.

Each is written from the description of a well-known architecture, in the style of its usual
programs. None calls an op of Workbench, but for the one line that a user adds for a stage.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import workbench as wb
from workbench.core.optimizations import Optimizations

v1 = tf.compat.v1
_BATCHES = 32


def _batches(draw: Callable[[np.random.Generator], Any], seed: int = 0) -> Any:
    """A few batches, over and over, in an iterator of a session's graph."""
    rng = np.random.default_rng(seed)
    drawn = [draw(rng) for _ in range(_BATCHES)]
    parts = tuple(np.stack(part) for part in zip(*drawn, strict=True))
    data = tf.data.Dataset.from_tensor_slices(parts).repeat()
    return v1.data.make_initializable_iterator(data)


def _next(iterator: Any, on: Optimizations) -> list[Any]:
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    batch = list(iterator.get_next())
    return list(wb.staged(batch, on.stage)) if on.stage else batch


def _log_loss(labels: Any, logits: Any) -> Any:
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(losses)


def _trained(loss: Any, optimizer: Any) -> wb.Built:
    step = v1.train.get_or_create_global_step()
    return wb.Built(train_op=optimizer.minimize(loss, global_step=step), loss=loss)


def _dense(x: Any, units: int, name: str, activation: Any = tf.nn.relu, **more: Any) -> Any:
    with v1.variable_scope(name):
        weight = v1.get_variable("kernel", [x.shape[-1], units], **more)
        bias = v1.get_variable("bias", [units], initializer=v1.zeros_initializer(), **more)
    found = tf.tensordot(x, weight, 1) if len(x.shape) > 2 else tf.matmul(x, weight)
    found = found + bias
    return activation(found) if activation else found


def _tower(x: Any, units: Sequence[int], name: str, **more: Any) -> Any:
    for number, width in enumerate(units):
        x = _dense(x, width, f"{name}_{number}", **more)
    return x


def _labels(rng: np.random.Generator, rows: int) -> np.ndarray:
    return (rng.random((rows, 1)) < 0.3).astype(np.float32)


def hashed_ftrl(on: Optimizations) -> wb.Built:
    """Hashed crosses in many small lookups of resource variables, trained by Ftrl."""
    rows, fields, size = 256, 16, 40_000

    def line(i: Any) -> Any:
        seed = tf.stack([i, i])
        ids = tf.random.stateless_uniform([fields, rows], seed, 0, size, tf.int64)
        words = tf.strings.join([tf.strings.as_string(ids), tf.strings.as_string(ids % 7)], "_x_")
        label = tf.cast(tf.random.stateless_uniform([rows, 1], seed) < 0.3, tf.float32)
        return tf.strings.to_hash_bucket_fast(words, size), label

    data = tf.data.Dataset.range(10**9).map(line)
    ids, label = _next(v1.data.make_initializable_iterator(data), on)
    ids.set_shape([fields, rows])
    at = tf.range(rows, dtype=tf.int64)
    places = tf.stack([at, tf.zeros_like(at)], 1)
    vectors = []
    for field in range(fields):
        table = v1.get_variable(f"cross_{field}", [size, 16], use_resource=True)
        sparse = tf.SparseTensor(places, ids[field], [rows, 1])
        vectors.append(v1.nn.safe_embedding_lookup_sparse(table, sparse, combiner="sum"))
    x = _tower(tf.concat(vectors, 1), (128, 64), "deep", use_resource=True)
    logits = _dense(x, 1, "logits", None, use_resource=True)
    return _trained(_log_loss(tf.reshape(label, [rows, 1]), logits), v1.train.FtrlOptimizer(0.05))


def wide_deep(on: Optimizations) -> wb.Built:
    """Wide & deep by feature columns, on serialized examples that the step parses."""
    rows, words = 512, 12
    names = [f"c{number}" for number in range(words)]
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(2 * rows):
        features = {
            name: tf.train.Feature(
                bytes_list=tf.train.BytesList(value=[b"w%d" % rng.integers(5000)])
            )
            for name in names
        }
        numbers = tf.train.FloatList(value=rng.random(8).tolist())
        features["x"] = tf.train.Feature(float_list=numbers)
        features["y"] = tf.train.Feature(
            float_list=tf.train.FloatList(value=[float(rng.random() < 0.3)])
        )
        example = tf.train.Example(features=tf.train.Features(feature=features))
        lines.append(example.SerializeToString())
    data = tf.data.Dataset.from_tensor_slices(lines).repeat().shuffle(256, seed=1).batch(rows)
    (serialized,) = _next(v1.data.make_initializable_iterator(data.map(lambda x: (x,))), on)
    column = tf.feature_column
    hashed = [column.categorical_column_with_hash_bucket(name, 5000) for name in names]
    numeric = column.numeric_column("x", (8,))
    deep_columns = [numeric, *(column.embedding_column(each, 16) for each in hashed)]
    spec = column.make_parse_example_spec([*hashed, numeric])
    spec["y"] = tf.io.FixedLenFeature([1], tf.float32)
    parsed = v1.io.parse_example(serialized, spec)
    label = parsed.pop("y")
    with v1.variable_scope("deep"):
        x = _tower(v1.feature_column.input_layer(parsed, deep_columns), (256, 128), "hidden")
        deep = _dense(x, 1, "logits", None)
    with v1.variable_scope("linear"):
        wide = v1.feature_column.linear_model(parsed, hashed)
    loss = _log_loss(label, deep + wide)
    variables = {
        name: v1.get_collection(v1.GraphKeys.TRAINABLE_VARIABLES, name)
        for name in ("deep", "linear")
    }
    step = v1.train.get_or_create_global_step()
    train = tf.group(
        v1.train.AdagradOptimizer(0.05).minimize(loss, var_list=variables["deep"]),
        v1.train.FtrlOptimizer(0.05).minimize(loss, var_list=variables["linear"], global_step=step),
    )
    return wb.Built(train_op=train, loss=loss)


def xdeepfm(on: Optimizations) -> wb.Built:
    """Compressed interactions of all pairs of vectors, beside a deep part, by Adam."""
    rows, fields, size, dim = 256, 20, 2_000, 8

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return rng.integers(0, size, (rows, fields)), _labels(rng, rows)

    ids, label = _next(_batches(draw), on)
    vectors = []
    for field in range(fields):
        table = v1.get_variable(f"field_{field}/embeddings", [size, dim])
        vectors.append(tf.nn.embedding_lookup(table, ids[:, field]))
    first = hidden = tf.stack(vectors, 1)
    pooled = []
    for layer, width in enumerate((32, 32)):
        outer = tf.einsum("bhd,bmd->bhmd", hidden, first)
        flat = tf.reshape(outer, [rows, int(hidden.shape[1]) * fields, dim])
        weight = v1.get_variable(f"cin_{layer}", [flat.shape[1], width])
        hidden = tf.nn.relu(tf.einsum("bfd,fk->bkd", flat, weight))
        pooled.append(tf.reduce_sum(hidden, 2))
    deep = _tower(tf.reshape(first, [rows, fields * dim]), (128, 64), "dnn")
    logits = _dense(tf.concat([*pooled, deep], 1), 1, "logits", None)
    return _trained(_log_loss(label, logits), v1.train.AdamOptimizer(1e-3))


def autoint(on: Optimizations) -> wb.Built:
    """Self-attention over the fields of an example, two layers of heads, by Adagrad."""
    rows, fields, size, dim, heads = 512, 24, 20_000, 16, 2

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return (rng.zipf(1.3, (fields, rows)) - 1) % size, _labels(rng, rows)

    ids, label = _next(_batches(draw), on)
    tables = [v1.get_variable(f"emb_{field}", [size, dim]) for field in range(fields)]
    x = tf.stack([tf.nn.embedding_lookup(t, ids[k]) for k, t in enumerate(tables)], 1)
    for layer in range(2):
        with v1.variable_scope(f"attention_{layer}"):
            q, k, v = (_dense(x, dim * heads, name, None) for name in "qkv")
            q, k, v = (tf.concat(tf.split(each, heads, 2), 0) for each in (q, k, v))
            scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
            mixed = tf.concat(tf.split(tf.matmul(scores, v), heads, 0), 2)
            x = tf.nn.relu(mixed + _dense(x, dim * heads, "residual", None))
    logits = _dense(tf.reshape(x, [rows, fields * dim * heads]), 1, "logits", None)
    return _trained(_log_loss(label, logits), v1.train.AdagradOptimizer(0.05))


def two_tower(on: Optimizations) -> wb.Built:
    """Retrieval: words of queries and items in two towers, all items of a batch as candidates."""
    rows, words, size = 512, 8, 30_000

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        texts = rng.integers(0, 200_000, (2, rows, words)).astype("U6").astype("S6")
        return texts[0], texts[1]

    query, item = _next(_batches(draw), on)
    towers = []
    for name, texts in (("query", query), ("item", item)):
        with v1.variable_scope(name):
            table = v1.get_variable("embedding", [size, 32])
            ids = tf.strings.to_hash_bucket_fast(texts, size)
            x = tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1)
            x = _dense(_tower(x, (128,), "dense"), 32, "out", None)
            towers.append(tf.nn.l2_normalize(x, 1))
    scores = tf.matmul(*towers, transpose_b=True) / 0.1
    own = tf.range(rows)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=own, logits=scores)
    return _trained(tf.reduce_mean(losses), v1.train.AdagradOptimizer(0.1))


def sasrec(on: Optimizations) -> wb.Built:
    """A sequence of items under masked self-attention; the next item against a drawn one."""
    rows, length, size, dim = 64, 30, 20_000, 32

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return tuple(rng.integers(1, size, (3, rows, length)))

    seen, after, other = _next(_batches(draw), on)
    items = v1.get_variable("item_emb", [size, dim])
    x = tf.nn.embedding_lookup(items, seen) * dim**0.5
    x += v1.get_variable("position_emb", [length, dim])
    later = tf.constant(np.triu(np.full((length, length), -1e9, np.float32), 1))
    for block in range(2):
        with v1.variable_scope(f"block_{block}"):
            normal = _layer_norm(x, "norm_q")
            q, k, v = _dense(normal, dim, "q", None), _dense(x, dim, "k", None), x
            scores = tf.matmul(q, k, transpose_b=True) / dim**0.5 + later
            x = normal + tf.matmul(tf.nn.softmax(scores), v)
            normal = _layer_norm(x, "norm_ff")
            x = normal + _dense(_dense(normal, dim, "ff_0"), dim, "ff_1", None)
    x = _layer_norm(x, "norm")
    right, wrong = (
        tf.reduce_sum(x * tf.nn.embedding_lookup(items, each), 2) for each in (after, other)
    )
    loss = -tf.reduce_mean(tf.math.log_sigmoid(right) + tf.math.log_sigmoid(-wrong))
    return _trained(loss, v1.train.AdamOptimizer(1e-3))


def _layer_norm(x: Any, name: str) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    with v1.variable_scope(name):
        gamma = v1.get_variable("gamma", [x.shape[-1]], initializer=v1.ones_initializer())
        beta = v1.get_variable("beta", [x.shape[-1]], initializer=v1.zeros_initializer())
    return (x - mean) * tf.math.rsqrt(variance + 1e-6) * gamma + beta


def mmoe(on: Optimizations) -> wb.Built:
    """Two tasks over a mixture of experts, a gate for each; lines of numbers and words."""
    rows, fields, size, experts = 512, 10, 10_000, 4

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        numbers = rng.integers(0, size, (rows, fields)).astype(str).tolist()
        tasks = (rng.random((rows, 2)) < 0.3).astype(int).astype(str).tolist()
        lines = [",".join([*a, *b]) for a, b in zip(tasks, numbers, strict=True)]
        return (np.array(lines, "S"),)

    (lines,) = _next(_batches(draw), on)
    columns = tf.io.decode_csv(lines, [[0.0]] * 2 + [["0"]] * fields)
    vectors = []
    for field, words in enumerate(columns[2:]):
        words.set_shape([rows])
        ids = tf.strings.to_hash_bucket_fast(words, size)
        table = v1.get_variable(f"table_{field}", [size, 16], use_resource=True)
        vectors.append(tf.nn.embedding_lookup(table, ids))
    x = tf.concat(vectors, 1)
    mixed = tf.stack([_tower(x, (128, 64), f"expert_{number}") for number in range(experts)], 1)
    losses = []
    for task in range(2):
        gate = tf.nn.softmax(_dense(x, experts, f"gate_{task}", None))
        shared = tf.reduce_sum(mixed * gate[:, :, None], 1)
        logits = _dense(_tower(shared, (32,), f"tower_{task}"), 1, f"logits_{task}", None)
        losses.append(_log_loss(tf.reshape(columns[task], [rows, 1]), logits))
    return _trained(tf.add_n(losses), v1.train.AdamOptimizer(1e-3))


def ncf(on: Optimizations) -> wb.Built:
    """Users and items, factorized and in a tower, with drawn negatives, by SGD with momentum."""
    users, items, rows, dim = 60_000, 30_000, 1024, 32

    def pairs(i: Any) -> Any:
        seed = tf.stack([i, i + 1])
        user = tf.random.stateless_uniform([rows], seed, 0, users, tf.int64)
        item = tf.random.stateless_uniform([5, rows], seed, 0, items, tf.int64)
        label = tf.concat([tf.ones([rows]), tf.zeros([4 * rows])], 0)
        return tf.tile(user, [5]), tf.reshape(item, [-1]), label

    data = tf.data.Dataset.range(10**9).map(pairs)
    user, item, label = _next(v1.data.make_initializable_iterator(data), on)
    for each in (user, item, label):
        each.set_shape([5 * rows])
    found = {
        (side, part): tf.nn.embedding_lookup(v1.get_variable(f"{part}/{side}", [count, dim]), ids)
        for side, count, ids in (("user", users, user), ("item", items, item))
        for part in ("gmf", "mlp")
    }
    product = found["user", "gmf"] * found["item", "gmf"]
    x = _tower(tf.concat([found["user", "mlp"], found["item", "mlp"]], 1), (64, 32, 16), "mlp")
    logits = _dense(tf.concat([product, x], 1), 1, "logits", None)
    loss = _log_loss(label[:, None], logits)
    return _trained(loss, v1.train.MomentumOptimizer(0.01, 0.9))


def text_cnn(on: Optimizations) -> wb.Built:
    """Sentences, split and hashed in the step, under convolutions of three widths."""
    rows, length, size, dim = 128, 40, 20_000, 64

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        words = rng.integers(0, 50_000, (rows, length)).astype(str).tolist()
        return np.array([" ".join(each) for each in words], "S"), rng.integers(0, 4, rows)

    text, label = _next(_batches(draw), on)
    words = tf.strings.split(tf.strings.regex_replace(tf.strings.lower(text), "[^a-z0-9 ]", ""))
    ids = tf.strings.to_hash_bucket_fast(words.to_tensor("", shape=[rows, length]), size)
    x = tf.nn.embedding_lookup(v1.get_variable("words", [size, dim]), ids)
    pooled = []
    for width in (3, 4, 5):
        kernel = v1.get_variable(f"conv_{width}", [width, dim, 32])
        pooled.append(tf.reduce_max(tf.nn.relu(tf.nn.conv1d(x, kernel, 1, "VALID")), 1))
    logits = _dense(tf.concat(pooled, 1), 4, "logits", None)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
    return _trained(tf.reduce_mean(losses), v1.train.AdamOptimizer(1e-3))


def loaded_fm(_: Optimizations) -> wb.Built:
    """A factorization machine out of a file: a MetaGraph that somebody else has written."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.meta")
        with tf.Graph().as_default():
            built = _fm()
            v1.add_to_collection("train", built.train_op)
            v1.add_to_collection("loss", built.loss)
            v1.train.export_meta_graph(path)
        v1.train.import_meta_graph(path)
    (train,), (loss,) = (v1.get_collection(name) for name in ("train", "loss"))
    return wb.Built(train_op=train, loss=loss)


def _fm() -> wb.Built:
    rows, fields, size, dim = 1024, 18, 8_000, 16

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return rng.integers(0, size, (rows, fields)), _labels(rng, rows)

    ids, label = _next(_batches(draw), Optimizations())
    vectors, weights = [], []
    for field in range(fields):
        with v1.variable_scope(f"field_{field}"):
            vector = v1.get_variable("v", [size, dim], use_resource=True)
            weight = v1.get_variable("w", [size, 1], use_resource=True)
        vectors.append(tf.nn.embedding_lookup(vector, ids[:, field]))
        weights.append(tf.nn.embedding_lookup(weight, ids[:, field]))
    stacked = tf.stack(vectors, 1)
    square_of_sum = tf.square(tf.reduce_sum(stacked, 1))
    sum_of_squares = tf.reduce_sum(tf.square(stacked), 1)
    pairs = 0.5 * tf.reduce_sum(square_of_sum - sum_of_squares, 1, keepdims=True)
    return _trained(_log_loss(label, tf.add_n(weights) + pairs), v1.train.AdagradOptimizer(0.05))


def dcn() -> tuple[Any, Any]:
    """Crosses of all features in a tf.function over variables of its own, by gradient descent."""
    rows, fields, size, dim = 512, 20, 20_000, 16
    width = fields * dim
    rng = np.random.default_rng(0)

    def variable(*shape: int) -> tf.Variable:
        return tf.Variable(rng.normal(0, 0.05, shape).astype(np.float32))

    tables = [variable(size, dim) for _ in range(fields)]
    crosses = [(variable(width, width), variable(width)) for _ in range(2)]
    layers = [(variable(a, b), variable(b)) for a, b in ((width, 128), (128, 1))]
    dense = [each for pair in (*crosses, *layers) for each in pair]

    @tf.function
    def train_step(ids: Any, label: Any) -> Any:
        with tf.GradientTape() as tape:
            x = first = tf.concat(
                [tf.nn.embedding_lookup(t, ids[:, k]) for k, t in enumerate(tables)], 1
            )
            for weight, bias in crosses:
                x = first * (tf.matmul(x, weight) + bias) + x
            x = tf.nn.relu(tf.matmul(x, layers[0][0]) + layers[0][1])
            loss = _log_loss(label, tf.matmul(x, layers[1][0]) + layers[1][1])
        variables = [*tables, *dense]
        for gradient, each in zip(tape.gradient(loss, variables), variables, strict=True):
            if isinstance(gradient, tf.IndexedSlices):
                each.scatter_sub(tf.IndexedSlices(0.05 * gradient.values, gradient.indices))
            else:
                each.assign_sub(0.05 * gradient)
        return loss

    ids = rng.integers(0, size, (_BATCHES, rows, fields))
    labels = np.stack([_labels(rng, rows) for _ in range(_BATCHES)])
    return train_step, tf.data.Dataset.from_tensor_slices((ids, labels)).repeat()


def structured_keras() -> tuple[Any, Any]:
    """Structured data in Keras: words looked up in vocabularies, numbers normalized, by Adam."""
    import keras

    rows, words, vocabulary = 256, 8, [f"w{number}" for number in range(1000)]
    rng = np.random.default_rng(0)
    count = rows * _BATCHES
    texts = {f"c{k}": rng.choice(vocabulary, count) for k in range(words)}
    numbers = rng.random((count, 6)).astype(np.float32)
    inputs = {name: keras.Input((1,), name=name, dtype="int64") for name in texts}
    inputs["numbers"] = keras.Input((6,), name="numbers")
    parts = [
        keras.layers.Flatten()(keras.layers.Embedding(len(vocabulary) + 1, 16)(inputs[name]))
        for name in texts
    ]
    x = keras.layers.Concatenate()([*parts, keras.layers.BatchNormalization()(inputs["numbers"])])
    for units in (128, 64):
        x = keras.layers.Dropout(0.1)(keras.layers.Dense(units, activation="relu")(x))
    model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(x))
    model.compile(optimizer=keras.optimizers.Adam(), loss="binary_crossentropy")
    lookup = keras.layers.StringLookup(vocabulary=vocabulary)

    def encoded(batch: dict[str, Any], label: Any) -> Any:
        found = {name: lookup(batch[name][:, None]) for name in texts}
        return found | {"numbers": batch["numbers"]}, label

    columns = texts | {"numbers": numbers}
    data = tf.data.Dataset.from_tensor_slices((columns, _labels(rng, count)))
    return model, data.batch(rows, drop_remainder=True).cache().repeat().map(encoded)


def deepfm_keras() -> tuple[Any, Any]:
    """DeepFM of Keras layers, one embedding for each feature of integers, by Adagrad."""
    import keras

    rows, fields, size, dim = 512, 16, 10_000, 8
    layers = keras.layers
    inputs = [keras.Input((1,), dtype="int64", name=f"f{k}") for k in range(fields)]
    vectors = layers.Concatenate(axis=1)([layers.Embedding(size, dim)(x) for x in inputs])
    linear = layers.Add()([layers.Flatten()(layers.Embedding(size, 1)(x)) for x in inputs])
    summed = layers.Lambda(lambda x: keras.ops.sum(x, 1) ** 2 - keras.ops.sum(x**2, 1))(vectors)
    pairs = layers.Lambda(lambda x: 0.5 * keras.ops.sum(x, 1, keepdims=True))(summed)
    deep = layers.Flatten()(vectors)
    for units in (128, 64):
        deep = layers.Dense(units, activation="relu")(deep)
    logits = layers.Add()([linear, pairs, layers.Dense(1, use_bias=False)(deep)])
    model = keras.Model(inputs, layers.Activation("sigmoid")(logits))
    model.compile(optimizer=keras.optimizers.Adagrad(0.05), loss="binary_crossentropy")
    rng = np.random.default_rng(0)
    ids = tuple(rng.integers(0, size, (_BATCHES * rows, 1)) for _ in range(fields))
    data = tf.data.Dataset.from_tensor_slices((ids, _labels(rng, _BATCHES * rows)))
    return model, data.batch(rows, drop_remainder=True).repeat()


_SESSIONS = (
    *(hashed_ftrl, wide_deep, xdeepfm, autoint, two_tower, sasrec, mmoe, ncf, text_cnn),
    loaded_fm,
)
_FUNCTIONS = (dcn, structured_keras, deepfm_keras)
PROGRAMS: dict[str, Callable[[], wb.Program | wb.FunctionProgram]] = {
    **{
        each.__name__: functools.partial(wb.Program, name=each.__name__, build=each)
        for each in _SESSIONS
    },
    **{
        each.__name__: functools.partial(wb.FunctionProgram, name=each.__name__, make=each)
        for each in _FUNCTIONS
    },
}
# The file of a MetaGraph has no place for a stage of the user's own.
WITHOUT_A_STAGE = ("loaded_fm",)
