"""Served models: features that are fed apart, and one signature."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
ROWS, DIM = 50, 8
COMBINERS = ("sum", "mean", "sqrtn")
# Sums of these numbers are exact, in any order.
TABLE = (np.random.RandomState(3).randint(-64, 64, (ROWS, DIM)) / 8).astype(np.float32)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Served:
    """A graph with a signature.

    Attributes:
      inputs: of each feature what is fed, by name.
      embeddings: of each feature what is looked up.
      hidden, scores: what is computed of all embeddings.
    """

    inputs: Mapping[str, Any]
    embeddings: tuple[tf.Tensor, ...]
    hidden: tf.Tensor
    scores: tf.Tensor

    def feeds(self, *features: int) -> dict[Any, Any]:
        """What some features are fed, all without any given."""
        chosen = features or range(len(self.inputs))
        return {self.inputs[f"c{k}"]: fed(self.inputs[f"c{k}"], k) for k in chosen}


def fed(given: Any, seed: int, counts: Sequence[int] | None = None) -> Any:
    """Ids of a feature for three examples.

    Args:
      given: its placeholder, or those of a SparseTensor.
      seed: draws them.
      counts: how many ids each example has where they are sparse.
    """
    random = np.random.RandomState(seed)
    counts = [seed % 3, 1, 2] if counts is None else counts
    if isinstance(given, tf.Tensor):
        return random.randint(0, ROWS, len(counts))
    at = [[row, column] for row, count in enumerate(counts) for column in range(count)]
    values = random.randint(0, ROWS, len(at))
    return v1.SparseTensorValue(np.reshape(np.int64(at), [-1, 2]), values, [len(counts), 2])


def build(kind: str, features: int, *, resource: bool = True, joined: bool = True) -> Served:
    """A model in the default graph.

    Args:
      kind: "safe", "safe_v2", "plain", "weighted", "dense" or "gather"; or "mixed", those in turn.
      features: how many there are.
      resource: of which kind the tables are.
      joined: whether all embeddings are put beside each other, and nothing else reads them.
    """
    kinds = ("safe", "dense", "plain", "safe_v2", "gather")
    inputs, found = {}, []
    for k in range(features):
        own = kinds[k % len(kinds)] if kind == "mixed" else kind
        table = v1.get_variable(f"t{k}", initializer=TABLE + k, use_resource=resource)
        inputs[f"c{k}"], rows = _feature(own, k, table)
        found.append(rows if own != "plain" else tf.reshape(rows, [-1, DIM]))
    if joined:
        hidden = tf.concat(found, 1)
    else:
        hidden = tf.add_n([tf.square(each) * (k + 1) for k, each in enumerate(found)])
    scores = tf.reduce_sum(hidden, 1, name="scores")
    return Served(inputs=inputs, embeddings=tuple(found), hidden=hidden, scores=scores)


def _feature(kind: str, k: int, table: Any) -> tuple[Any, tf.Tensor]:
    """What a feature is fed, and its embeddings."""
    combiner = COMBINERS[k % 3]
    if kind in ("dense", "gather"):
        ids = v1.placeholder(tf.int64, [None], name=f"c{k}")
        rows = tf.nn.embedding_lookup(table, ids) if kind == "dense" else tf.gather(table, ids)
        return ids, rows
    ids = v1.sparse_placeholder(tf.int64, [None, None], name=f"c{k}")
    if kind == "plain":
        return ids, v1.nn.embedding_lookup_sparse(table, ids, None, combiner=combiner)
    if kind == "safe_v2":
        return ids, tf.nn.safe_embedding_lookup_sparse(table, ids, combiner=combiner)
    weights = None
    if kind == "weighted":
        weights = ids.with_values(tf.cast(ids.values % 4 + 1, tf.float32))
    return ids, v1.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner=combiner)


def save(folder: Path, kind: str, features: int, *, resource: bool = True) -> None:
    """Exports a model as TensorFlow 1 does."""
    with tf.Graph().as_default(), v1.Session() as session:
        served = build(kind, features, resource=resource)
        session.run(v1.global_variables_initializer())
        outputs = {"scores": served.scores, "hidden": served.hidden}
        v1.saved_model.simple_save(session, str(folder), dict(served.inputs), outputs)


@contextlib.contextmanager
def loaded(folder: Path, config: Any = None) -> Iterator[tuple[Any, Any]]:
    """A session with a model that was exported, and its MetaGraphDef."""
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        yield session, v1.saved_model.load(session, ["serve"], str(folder))


def ran(session: Any, fetches: Any, feeds: Any) -> tuple[Any, list[str]]:
    """What a run gives, and the types of the ops that it had."""
    options, metadata = v1.RunOptions(output_partition_graphs=True), v1.RunMetadata()
    found = session.run(fetches, feeds, options=options, run_metadata=metadata)
    return found, [node.op for part in metadata.partition_graphs for node in part.node]


def grouped(ops: list[str]) -> int:
    """How many ops of a run look features up together."""
    return sum("GroupedLookUp" in op for op in ops)
