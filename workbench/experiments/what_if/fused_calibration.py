"""What ops of a finished graph that is fused cost here: measured once, then kept."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import platform
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench._native import library_path
from workbench.atomic_file import make_directory, replacing
from workbench.core.options import AUTO, FUSIONS, Optimizations
from workbench.core.trace.trace import Trace
from workbench.core.what_if.costs.fused_costs import FusedCosts, LookupLoad, Sample, fitted
from workbench.core.what_if.costs.likened_costs import (
    DOTS,
    DOTS_GRADIENT,
    FM,
    FM_GRADIENT,
    MATMUL,
    NORM,
    NORM_GRADIENT,
)
from workbench.errors import OutputError
from workbench.experiments.comparison.environment import machine
from workbench.experiments.comparison.trace import trace
from workbench.experiments.program.program import Built, Program
from workbench.user_cache import user_cache

if TYPE_CHECKING:
    import tensorflow as tf

_FORMAT = 7
# Sizes of a lookup: ids in a batch and for each row of it, rows and width of the table, and the
# part of the table that the ids come from.
_SIZES = tuple(
    (ids, each, rows, dim, part)
    for ids, each in ((256, 1), (2048, 1), (4096, 8))
    for rows, dim in ((2_000, 8), (2_000, 64), (200_000, 16), (200_000, 64))
    for part in (1.0, 0.05)
)
# Matrices that are normalized: rows and columns.
_MATRICES = ((512, 64), (512, 512), (2048, 256))
# Vectors that interact: examples, vectors of each and their width.
_VECTORS = ((512, 27, 16), (512, 12, 64), (2048, 27, 32))
# Dense layers whose gradients are taken: rows, inputs and units.
_LAYERS = ((512, 429, 1024), (512, 1024, 256), (512, 367, 512), (512, 512, 256), (512, 256, 64))
_BATCHES = 16
_STEPS = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Case:
    """One program that is measured.

    Attributes:
      fused: how its lookups are.
      optimizer: of its tables: Adagrad "fused", or TensorFlow's "adagrad" or "adam".
      numbers: of its sizes.
    """

    fused: str
    optimizer: str
    numbers: tuple[int, ...] = tuple(range(len(_SIZES)))


# A grouped lookup has a gradient op of its own where the update is not fused. What is fused in a
# finished graph is the same ops, and Adam's update, which goes through all rows, whatever the ids.
_CASES = (
    *(_Case(fused=version, optimizer="fused") for version in FUSIONS if version != AUTO),
    _Case(fused="grouped", optimizer="adagrad"),
    _Case(
        fused=AUTO,
        optimizer="adam",
        numbers=tuple(i for i, (*_, part) in enumerate(_SIZES) if part == 1.0),
    ),
)


def fused_costs(*, again: bool = False) -> FusedCosts:
    """What ops of fused lookups, batch normalizations and interactions cost on this machine.

    Measured the first time, in about a minute, on an otherwise idle machine at best; then read
    from a file in the user's cache directory. Updates of rows are measured with Adagrad, those of
    whole tables with Adam.

    Args:
      again: measures once more.

    Raises:
      RunError: the measurement failed.
    """
    path = _path()
    known = None if again else _kept(path)
    if known is not None:
        return known
    measured = fitted([sample for case in _CASES for sample in _samples(case)])
    measured = dataclasses.replace(measured, times=_times_of_stock())
    # Where nothing can be kept, the next call measures again.
    with contextlib.suppress(OutputError):
        make_directory(path.parent)
        with replacing(path) as part:
            part.write_text(json.dumps({"format": _FORMAT, **measured.to_json()}), "utf-8")
    return measured


def costs_are_known() -> bool:
    """Whether `fused_costs` has been measured on this machine before."""
    return _kept(_path()) is not None


def _kept(path: Path) -> FusedCosts | None:
    """What the file says; None where there is none, or one that is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(path.read_text("utf-8"))
        if known["format"] == _FORMAT:
            return FusedCosts.from_json(known)
    return None


def _path() -> Path:
    """One file for each kind of machine, version of TensorFlow and build of this library."""
    facts = machine()
    build = hashlib.sha256(library_path().read_bytes()).hexdigest()[:8]
    known = "-".join([*(str(facts.get(key, "")) for key in ("cpu", "tensorflow")), build])
    name = "".join(c if c.isalnum() or c in "-." else "_" for c in known)
    return user_cache() / f"fused-costs-{name or platform.machine()}.json"


def _samples(case: _Case) -> Iterator[Sample]:
    found = _traced("lookups", functools.partial(_build, case), case.fused)
    for op, name, ns in _medians(found):
        number = _number(name, op, case)
        if op.startswith("Workbench") and number is not None:
            ids, _, rows, dim, part = _SIZES[number]
            yield Sample(op=op, load=_load_of(ids, rows, dim, part), ns=ns)


def _traced(name: str, build: Callable[[Optimizations], Built], fused: str | None) -> Trace:
    return trace(
        Program(name=name, build=build),
        Optimizations(fused_embeddings=fused),
        steps=_STEPS,
        warm_up_steps=_BATCHES,
        progress=False,
    )


def _medians(found: Trace) -> Iterator[tuple[str, str, float]]:
    """Type and name of each node, and the median of its times."""
    medians = found.events.groupby("node")["dur_ns"].median()
    nodes = found.nodes
    for node, ns in zip(medians.index.tolist(), medians.tolist(), strict=True):
        yield str(nodes["op"][node]), str(nodes["name"][node]), float(ns)


def _times_of_stock() -> dict[str, float]:
    """How many times as long as the stock op that gives the same result each other op takes."""
    stock, fused = (
        {name: ns for _, name, ns in _medians(_traced("layers", _build_layers, way))}
        for way in (None, AUTO)
    )
    norm = (len(_MATRICES), "matrix{}/batchnorm/add_1")
    dots, pairs = ((len(_VECTORS), name) for name in ("vectors{}/GatherV2", "vectors{}/sub"))
    ways = {
        NORM: ("matrix{}/fused_batch_norm", *norm),
        NORM_GRADIENT: ("gradients/matrix{}/fused_batch_norm_grad", *norm),
        DOTS: ("vectors{}/dot_interaction", *dots),
        DOTS_GRADIENT: ("gradients/vectors{}/dot_interaction_grad", *dots),
        FM: ("vectors{}/fm_interaction", *pairs),
        FM_GRADIENT: ("gradients/vectors{}/fm_interaction_grad", *pairs),
    }
    times = {
        op: statistics.geometric_mean(
            fused[name.format(i)] / stock[like.format(i)] for i in range(count)
        )
        for op, (name, count, like) in ways.items()
    }
    products = [name for name in stock if name.startswith("gradients/layer") and "MatMul" in name]
    times[MATMUL] = statistics.geometric_mean(fused[name] / stock[name] for name in products)
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
    config = v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    train_op = v1.train.GradientDescentOptimizer(0.01).minimize(tf.add_n(losses))
    return Built(train_op=train_op, config=config)


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


def _number(name: str, op: str, case: _Case) -> int | None:
    """Of which size a node is, by its name."""
    if case.fused == AUTO:
        # Ops of a plan are counted, in the order of the lookups; the others are of other cases.
        place = name.rpartition("_")[2]
        return case.numbers[int(place)] if op.endswith("ApplyAll") else None
    for part in name.replace("_table", "").replace("update_", "").split("/"):
        head, _, number = part.partition("size")
        if not head and number.isdigit():
            return int(number)
    return None


def _load_of(ids: int, rows: int, dim: int, part: float) -> LookupLoad:
    drawn = _ids(0, ids, rows, part)
    unique = float(np.mean([len(np.unique(batch)) for batch in drawn]))
    return LookupLoad(ids=float(ids), unique=unique, dim=dim, table_bytes=4.0 * rows * dim)


def _ids(number: int, ids: int, rows: int, part: float) -> np.ndarray:
    """int64 [batches, ids]."""
    drawn: np.ndarray = np.random.default_rng(number).integers(
        max(1, int(rows * part)), size=(_BATCHES, ids)
    )
    return drawn


def _build(case: _Case, _optimizations: Optimizations) -> Built:
    """One lookup of each size and its update, all in one step, one op after the other."""
    import tensorflow as tf

    from workbench.ops.embedding_variable.optimizers import AdagradOptimizer

    v1 = tf.compat.v1
    batches = {}
    for number in case.numbers:
        ids, _, rows, _, part = _SIZES[number]
        batches[f"{number}"] = _ids(number, ids, rows, part)
    dataset = tf.data.Dataset.from_tensor_slices(batches).repeat()
    drawn = v1.data.make_one_shot_iterator(dataset).get_next()
    losses: list[tf.Tensor] = []
    for number in case.numbers:
        # One behind the other, lest a plan do them in one op.
        with tf.control_dependencies(losses[-1:] if case.fused == AUTO else []):
            losses.append(_loss(number, tf.identity(drawn[f"{number}"])))
    optimizers = {
        "fused": AdagradOptimizer,
        "adagrad": v1.train.AdagradOptimizer,
        "adam": v1.train.AdamOptimizer,
    }
    train_op = optimizers[case.optimizer](0.01).minimize(tf.add_n(losses))
    config = v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    return Built(train_op=train_op, config=config)


def _loss(number: int, ids: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    from workbench.ops.lookup.fusion import safe_embedding_lookup_sparse

    count, each, rows, dim, _ = _SIZES[number]
    v1 = tf.compat.v1
    with v1.name_scope(f"size{number}"):
        table = v1.get_variable(
            f"size{number}_table", [rows, dim], initializer=v1.zeros_initializer()
        )
        places = np.stack([np.arange(count) // each, np.arange(count) % each], axis=1)
        sparse = tf.SparseTensor(tf.constant(places), ids, [count // each, each])
        # A loss whose gradient needs the vectors: else nothing would be looked up.
        return tf.nn.l2_loss(safe_embedding_lookup_sparse(table, sparse, combiner="mean"))
