"""Which stock ops stand for each of Workbench's: the one table of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from workbench.exporting.lowering import grouped, keyed_rows, layers, lookups
from workbench.exporting.lowering.call import Call

_Shape = list[int | None]
_VECTOR: _Shape = [None]
_MATRIX: _Shape = [None, None]
_IDS: dict[str, _Shape] = {
    "ids": _VECTOR,
    "indices": _MATRIX,
    "dense_shape": _VECTOR,
    "weights": _VECTOR,
}
_ROWS: dict[str, _Shape] = {
    "shards": _MATRIX,
    "permutation": [None, 2],
    "unique_index": _VECTOR,
    "row_splits": _VECTOR,
    "values": _VECTOR,
    "dense_shape": _VECTOR,
    "weights": _VECTOR,
}
_NORM: dict[str, _Shape] = {
    "gradient": _MATRIX,
    "x": _MATRIX,
    "gamma": _VECTOR,
    "beta": _VECTOR,
    "mean": _VECTOR,
    "variance": _VECTOR,
}
_INTERACTION: dict[str, _Shape] = {"x": [None, None, None]}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Template:
    """The stock ops for an op of Workbench's.

    Attributes:
      build: builds them; gives the op's outputs, one after the other.
      shapes: static shapes of inputs by name, as far as the op implies them.
      keyed: the input with handles of EmbeddingVariables; "" where there is none.
      reads: inputs that a keyed op keeps; others are for training.
    """

    build: Callable[[Call], list[Any]]
    shapes: Mapping[str, _Shape] = dataclasses.field(default_factory=dict)
    keyed: str = ""
    reads: tuple[str, ...] = ()


TEMPLATES: Mapping[str, Template] = {
    "WorkbenchPreLookUp": Template(
        build=lookups.pre_look_up, shapes={**_IDS, "table_rows": _VECTOR}
    ),
    "WorkbenchPruneInvalidAndFillEmptyRows": Template(build=lookups.prune_and_fill, shapes=_IDS),
    "WorkbenchUniqueWithCounts": Template(build=lookups.unique_with_counts, shapes=_ROWS),
    "WorkbenchPartitionWithPermutation": Template(
        build=lookups.partition, shapes={**_ROWS, "table_rows": _VECTOR}
    ),
    "WorkbenchPostLookUp": Template(build=lookups.post_look_up, shapes=_ROWS),
    "WorkbenchPostLookUpV2": Template(build=lookups.post_look_up, shapes=_ROWS),
    "WorkbenchLocalLookUp": Template(
        build=lookups.local_look_up, shapes={**_ROWS, "table": _MATRIX}
    ),
    "WorkbenchResourceLocalLookUp": Template(build=lookups.local_look_up, shapes=_ROWS),
    "WorkbenchGroupedLookUp": Template(build=grouped.grouped_look_up),
    "WorkbenchResourceGroupedLookUp": Template(build=grouped.grouped_look_up),
    "WorkbenchEmbeddingGroupedLookUp": Template(
        build=grouped.embedding_grouped_look_up,
        keyed="tables",
        reads=("ids", "rows", "dense_shapes", "weights"),
    ),
    "WorkbenchEmbeddingGather": Template(
        build=keyed_rows.embedding_gather, keyed="handle", reads=("keys",)
    ),
    "WorkbenchBatchNorm": Template(build=layers.batch_norm, shapes=_NORM),
    "WorkbenchBatchNormGrad": Template(build=layers.batch_norm_gradient, shapes=_NORM),
    "WorkbenchDotInteraction": Template(build=layers.dot_interaction, shapes=_INTERACTION),
    "WorkbenchDotInteractionGrad": Template(
        build=layers.dot_interaction_gradient, shapes={**_INTERACTION, "gradient": _MATRIX}
    ),
    "WorkbenchFmInteraction": Template(build=layers.fm_interaction, shapes=_INTERACTION),
    "WorkbenchFmInteractionGrad": Template(
        build=layers.fm_interaction_gradient, shapes=_INTERACTION
    ),
    "WorkbenchMatMul": Template(
        build=layers.matmul, shapes={"a": _MATRIX, "b": _MATRIX, "bias": _VECTOR}
    ),
    "WorkbenchHashColumns": Template(build=layers.hash_columns),
    "WorkbenchIdColumns": Template(build=lookups.id_columns),
    "WorkbenchDecodeCsv": Template(build=layers.decode_csv),
}
# Of ops that a stock op replaces as they are: its type, and which share of the inputs it reads.
RENAMED: Mapping[str, tuple[str, float]] = {
    "WorkbenchHandOn": ("Identity", 1),
    "WorkbenchBranch": ("IdentityN", 1),
    "WorkbenchChoice": ("IdentityN", 0.5),
    "WorkbenchApplyAdam": ("ApplyAdam", 1),
    "WorkbenchResourceApplyAdam": ("ResourceApplyAdam", 1),
}
# Begins of the types of ops that read what an earlier step put into a stage.
STAGES = ("WorkbenchBuffer", "WorkbenchInput", "WorkbenchSource")
