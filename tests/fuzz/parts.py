"""How each kind of part is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tests.fuzz.data import IDS
from tests.fuzz.program import Part
from tests.fuzz.world import TableState, World

v1 = tf.compat.v1


def lookup(world: World, part: Part) -> None:
    """Rows of dense ids."""
    table, ids = world.table(part["table"]), world.dense_ids(part["ids"])

    def made() -> tf.Tensor:
        with world.reads(table) as reader:
            found = _gathered(table, ids, part["way"], reader)
        return _vector(found)

    _add_lookup(world, part, table, made)


def _gathered(
    table: TableState, ids: tf.Tensor, way: str, reader: Callable[[Any], None]
) -> tf.Tensor:
    if way in ("read_value", "identity"):
        read = table.variable.read_value() if way == "read_value" else tf.identity(table.variable)
        reader(read)
        return tf.gather(read, ids)
    found = (tf.gather if way == "gather" else tf.nn.embedding_lookup)(table.variable, ids)
    reader(found)
    return found


def _vector(found: tf.Tensor) -> tf.Tensor:
    """What was looked up, one float32 vector for each example."""
    found = tf.cast(found, tf.float32)
    return tf.reduce_sum(found, 1) if found.shape.rank == 3 else found


def sparse(world: World, part: Part) -> None:
    """Combined rows of sparse ids."""
    table, ids = world.table(part["table"]), world.sparse_ids(part["ids"])
    wishes: dict[str, Any] = {"combiner": part["combiner"], "max_norm": part["max_norm"]}

    def made() -> tf.Tensor:
        weights = None
        if part["weighted"]:
            values = tf.cast(ids.values % 3, tf.float32) * 0.25 + 0.5
            values = tf.cast(values, table.variable.dtype.base_dtype)
            weights = tf.SparseTensor(ids.indices, values, ids.dense_shape)
        with world.reads(table) as reader:
            if part["way"] == "plain":
                found = tf.nn.embedding_lookup_sparse(table.variable, ids, weights, **wishes)
            else:
                safe = v1.nn if part["way"] == "safe" else tf.nn
                found = safe.safe_embedding_lookup_sparse(
                    table.variable, ids, weights, default_id=part["default_id"], **wishes
                )
            reader(found)
        return _vector(found)

    _add_lookup(world, part, table, made)


def _add_lookup(world: World, part: Part, table: TableState, made: Callable[[], tf.Tensor]) -> None:
    world.lookups.append(made)
    found = made()
    if part["behind"]:
        found = tf.identity(found, name="behind")
    world.add(found, table.dim, part["trained"])


def again(world: World, part: Part) -> None:
    """An earlier lookup, for a metric."""
    if world.lookups:
        world.add_metric(tf.reduce_mean(world.lookups[part["of"] % len(world.lookups)]()))


def join(world: World, part: Part) -> None:
    """Vectors beside each other."""
    found = world.read_alike(part["first"], part["count"])
    dim, tensors = found[0].dim * len(found), [each.tensor for each in found]
    if part["how"] == "concat":
        joined = tf.concat(tensors, 1)
    else:
        joined = tf.reshape(tf.stack(tensors, 1), [-1, dim])
    world.add(joined * 2.0 if part["behind"] else joined, dim)


def dense(world: World, part: Part) -> None:
    """A dense layer."""
    found = world.read(part["first"], part["count"])
    dim, width = sum(each.dim for each in found), part["width"]
    w = world.weights(f"{part.name}/w", [dim, width], 1 / np.sqrt(dim))
    b = world.weights(f"{part.name}/b", [width]) if part["biased"] else None
    with world.before(part):
        x = tf.concat([each.tensor for each in found], 1) if len(found) > 1 else found[0].tensor
        w, b = tf.convert_to_tensor(w), None if b is None else tf.convert_to_tensor(b)
    y = tf.matmul(x, w)
    y = y if b is None else tf.nn.bias_add(y, b)
    then = {"relu": tf.nn.relu, "sigmoid": tf.sigmoid, "none": lambda value: value}
    world.add(then[part["then"]](y), width)


def norm(world: World, part: Part) -> None:
    """A batch normalization that trains."""
    (x,) = world.read(part["first"])
    names = (f"{part.name}/gamma", f"{part.name}/beta")
    gamma, beta = (world.weights(name, [x.dim]) for name in names)
    if part["before"]:
        with world.before(part):
            gamma, beta = tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta)
    mean, variance = tf.nn.moments(x.tensor, [0])
    y = tf.nn.batch_normalization(x.tensor, mean, variance, beta, gamma, 1e-2)
    if part["moving"]:
        moving = world.variable(f"{part.name}/moving", np.zeros(x.dim, np.float32), world.resource)
        world.effects.append(moving.assign_add(mean, read_value=False))
    world.add(tf.nn.relu(y) if part["relu"] else y, x.dim)


def _stacked(world: World, part: Part) -> tuple[tf.Tensor, int, int]:
    """Vectors of one length, [batch, count, dim], their count and their length."""
    found = world.read_alike(part["first"], part["count"])
    with world.before(part):
        x = tf.stack([each.tensor for each in found], 1)
    return x, len(found), found[0].dim


def dot(world: World, part: Part) -> None:
    """Dot products of all pairs of vectors."""
    x, count, _ = _stacked(world, part)
    products = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, count * count])
    pairs = [a * count + b for a in range(count) for b in range(a)]
    world.add(tf.gather(products, pairs, axis=1), len(pairs))


def fm(world: World, part: Part) -> None:
    """A factorization machine's sum of products of all pairs."""
    x, _, dim = _stacked(world, part)
    square = tf.square if part["square"] == "square" else lambda value: value * value
    world.add(square(tf.reduce_sum(x, 1)) - tf.reduce_sum(square(x), 1), dim)


def identity(world: World, part: Part) -> None:
    """A vector behind an Identity."""
    (x,) = world.read(part["first"])
    world.add(tf.identity(x.tensor), x.dim)


def around(world: World, part: Part) -> None:
    """What the next parts wait for."""
    what, table = part["what"], world.table(part["table"])
    if what == "assert":
        ops = [v1.assert_less(tf.constant(5, tf.int64), world.limit)]
    elif what == "check_ids":
        ids = world.dense_ids(part["table"])
        ops = [v1.assert_less(ids, tf.constant(500, ids.dtype))]
    elif what == "count":
        ops = [world.count(part.name)]
    elif what == "nothing":
        ops = [tf.no_op()]
    else:
        ops = [world.write(table, _change(world, part.name, table, what))]
    world.wrap([op for op in ops if op is not None], part["length"])


def change(world: World, part: Part) -> None:
    """A table changes behind what has read it."""
    table = world.table(part["table"])
    change = _change(world, part.name, table, part["how"])
    world.effects.append(world.write(table, change))


def _change(world: World, name: str, table: TableState, how: str) -> Callable[[Any], Any]:
    def changed(variable: Any) -> Any:
        shape, dtype = variable.shape.as_list(), variable.dtype.base_dtype
        shape = [3, shape[1]] if how == "scatter_update" else shape
        value = tf.constant(world.random(name).normal(size=shape), dtype)
        if how == "scatter_update":
            found = v1.scatter_update(variable, [1, 3, 5], value)
            return getattr(found, "op", found)
        return getattr(variable, how)(value, read_value=False)

    return changed


def cond(world: World, part: Part) -> None:
    """A lookup or a layer in a branch."""
    table, ids = world.table(part["table"]), world.dense_ids(part["ids"])
    x = world.read(part["ids"])[0]
    is_dense, width = part["inside"] == "dense", 32 if part["inside"] == "dense" else table.dim
    w = world.weights(f"{part.name}/w", [x.dim, 32]) if is_dense else None
    counter = world.variable(f"{part.name}/count", np.zeros([], np.int64), world.resource)

    def inside() -> tf.Tensor:
        if is_dense:
            return tf.nn.relu(tf.matmul(x.tensor, w))
        waits = []
        if part["inside"] == "lookup and count":
            waits = [counter.assign_add(tf.constant(1, tf.int64), read_value=False)]
        with tf.control_dependencies(waits):
            return _vector(tf.nn.embedding_lookup(table.variable, ids))

    def outside() -> tf.Tensor:
        return tf.zeros([tf.shape(x.tensor)[0], width])

    positive = tf.reduce_sum(world.features) > 0.0
    with world.reads(table) as reader:
        found = v1.cond(positive, inside, outside)
        reader(found)
    world.add(found, width)


def loop(world: World, part: Part) -> None:
    """Lookups in a loop, which nothing trains."""
    table, ids = world.table(part["table"]), world.dense_ids(part["ids"])

    def body(step: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        shifted = (ids + tf.cast(step, ids.dtype)) % IDS
        return step + 1, total + _vector(tf.gather(table.variable, shifted))

    with world.reads(table) as reader:
        start = tf.zeros([tf.shape(ids)[0], table.dim])
        if world.program.known_batch:
            start.set_shape([world.program.batch, table.dim])
        _, found = v1.while_loop(lambda step, _: step < 2, body, [tf.constant(0), start])
        reader(found)
    world.add(tf.stop_gradient(found), table.dim)


def loss(world: World, part: Part) -> None:
    """A loss of all open vectors."""
    found = [each for each in world.vectors if each.open] or world.read(0)
    for each in found:
        each.open = False
    x = tf.concat([each.tensor for each in found], 1)
    dim = sum(each.dim for each in found)
    target = world.random(part.name).normal(size=dim).astype(np.float32)
    if part["how"] == "distances":
        # Unlike squares they never make weights grow beyond all numbers.
        distances = tf.sqrt(1.0 + tf.square(x - target))
        world.losses.append(tf.reduce_mean(tf.reduce_sum(distances, 1)))
        return
    logits = tf.reduce_sum(x * target, 1)
    entropies = tf.nn.sigmoid_cross_entropy_with_logits(world.inputs["labels"], logits)
    world.losses.append(tf.reduce_mean(entropies))


def metric(world: World, part: Part) -> None:
    """A number that training does not need."""
    (x,) = world.read(part["first"])
    x.open = True
    world.add_metric((tf.reduce_mean if part["how"] == "mean" else tf.reduce_max)(x.tensor))


BUILDERS: Mapping[str, Callable[[World, Part], None]] = {
    "lookup": lookup,
    "sparse": sparse,
    "again": again,
    "join": join,
    "dense": dense,
    "norm": norm,
    "dot": dot,
    "fm": fm,
    "identity": identity,
    "around": around,
    "change": change,
    "cond": cond,
    "while": loop,
    "loss": loss,
    "metric": metric,
}


def build_parts(world: World) -> None:
    """Builds all parts, and a loss where none is among them."""
    for part in world.program.parts:
        with world.part(part):
            BUILDERS[part.kind](world, part)
    if not world.losses:
        end = Part("loss", 99, {"how": "distances"})
        with world.part(end):
            loss(world, end)
