"""`GroupedEmbedding`: the embeddings of all features of a Keras model as one layer and one op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from workbench.errors import OptionError
from workbench.keras_in_use import keras_in_use
from workbench.ops.lookup.grouped import grouped_embedding_lookup

keras = keras_in_use()
_Layer: Any = keras.layers.Layer


@keras.utils.register_keras_serializable("workbench")
class GroupedEmbedding(_Layer):
    """Tables of embeddings, and a lookup of all features at once.

    Each example's ids of a feature are combined; one without ids gets zeros, or the embedding
    of `default_id`. Ids below 0 are dropped, so that -1 pads dense ids. Tables stay float32 under
    mixed precision, and embeddings are of the compute dtype. A model with this layer is not
    compiled by XLA.

    Args:
      tables: of each table, by its name, how many rows and columns it has.
      features: of each feature, by its name, the name of its table; features may share one. None
        makes each table a feature.
      combiners: "mean", "sum" or "sqrtn"; one for all, or by feature, where "mean" is the default.
      default_id: the id that an example without ids gets; one for all, or by feature.
      concatenate: one tensor with the features beside each other, in their order, not one each.
      embeddings_initializer, embeddings_regularizer: of all tables, as Keras has them.
      **options: those of `tf.keras.layers.Layer`.

    Input: by feature int32 or int64 ids, a SparseTensor [batch, n], a RaggedTensor of rank 2, or a
    dense [batch] or [batch, n].

    Output: by feature [batch, columns], or with `concatenate` [batch, sum of columns].

    Raises:
      OptionError: a feature of no table, a size below 1, or no table at all; in a call other
        features than these.
    """

    def __init__(
        self,
        tables: Mapping[str, Sequence[int]],
        features: Mapping[str, str] | None = None,
        combiners: str | Mapping[str, str] = "mean",
        default_id: int | Mapping[str, int] | None = None,
        concatenate: bool = False,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        **options: Any,
    ):
        super().__init__(**options)
        self.tables = {name: _size(name, size) for name, size in tables.items()}
        self.features = {name: name for name in tables} if features is None else dict(features)
        self.combiners = _given(combiners)
        self.default_id = _given(default_id)
        self.concatenate = concatenate
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.embeddings_regularizer = keras.regularizers.get(embeddings_regularizer)
        self.supports_jit = False
        self._check()

    def build(self, _input_shape: Any = None) -> None:
        """Makes the tables; their sizes are known without any input."""
        self.embeddings = {
            name: self.add_weight(
                shape=size,
                initializer=self.embeddings_initializer,
                regularizer=self.embeddings_regularizer,
                name=name,
                # Casting a table would copy all of it.
                autocast=False,
            )
            for name, size in self.tables.items()
        }
        self.built = True

    def call(self, inputs: Mapping[str, Any]) -> Any:
        """Looks up ids by feature."""
        if set(inputs) != set(self.features):
            raise OptionError(
                f"{self.name} is given features {sorted(inputs)}; expected {sorted(self.features)}"
            )
        vectors = grouped_embedding_lookup(
            [self.embeddings[table].value for table in self.features.values()],
            [_ids(name, inputs[name]) for name in self.features],
            combiners=[_of(self.combiners, name, "mean") for name in self.features],
            default_id=[_of(self.default_id, name, None) for name in self.features],
            concatenate=self.concatenate,
            names=list(self.features),
        )
        if self.concatenate:
            return tf.cast(vectors, self.compute_dtype)
        cast = (tf.cast(each, self.compute_dtype) for each in vectors)
        return dict(zip(self.features, cast, strict=True))

    def get_config(self) -> dict[str, Any]:
        """Arguments that make another one like it."""
        return {
            **super().get_config(),
            "tables": {name: list(size) for name, size in self.tables.items()},
            "features": dict(self.features),
            "combiners": _given(self.combiners),
            "default_id": _given(self.default_id),
            "concatenate": self.concatenate,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "embeddings_regularizer": keras.regularizers.serialize(self.embeddings_regularizer),
        }

    def _check(self) -> None:
        if not self.features:
            raise OptionError("GroupedEmbedding has no feature; expected tables of at least one")
        for feature, table in self.features.items():
            if table not in self.tables:
                raise OptionError(
                    f"feature {feature!r} is of table {table!r}; expected one of "
                    f"{', '.join(self.tables)}"
                )
        for what, given in (("combiners", self.combiners), ("default_id", self.default_id)):
            others = set(given) - set(self.features) if isinstance(given, Mapping) else ()
            if others:
                raise OptionError(f"{what} has {sorted(others)}, which are no features")


def _given(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _of(given: Any, feature: str, missing: Any) -> Any:
    return given.get(feature, missing) if isinstance(given, Mapping) else given


def _size(table: str, size: Sequence[int]) -> tuple[int, int]:
    known = tuple(int(each) for each in size)
    if len(known) != 2 or min(known) < 1:
        raise OptionError(f"table {table!r} has size {tuple(size)}; expected rows and columns")
    return known[0], known[1]


def _ids(feature: str, ids: Any) -> tf.SparseTensor | tf.RaggedTensor | tf.Tensor:
    """Ids as the lookup takes them; dense ones of rank 1 as they are."""
    if isinstance(ids, (tf.SparseTensor, tf.RaggedTensor)):
        return ids
    dense = tf.convert_to_tensor(ids)
    if dense.shape.rank == 1:
        return dense
    if dense.shape.rank != 2:
        raise OptionError(f"ids of {feature!r} have shape {dense.shape}; expected [batch, n]")
    return tf.RaggedTensor.from_tensor(dense)
