"""Transformation: one dataset of a tf.data pipeline, with those that it reads."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_KIND = re.compile(r"_*(?:Experimental)?(\w+?)Dataset(?:V\d+)?(?:_\d+)?$")
# Order or values that differ from one reading to the next, without a function of the program.
_RANDOM = {"Shuffle", "ShuffleAndRepeat", "Random", "Sampling"}
# Their bodies tell whether they have state.
_CALLS = {"StatefulPartitionedCall", "If", "While", "Case"}
# It stops a program, and changes no element.
_HARMLESS = {"Assert"}


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Transformation:
    """One dataset of a pipeline.

    Attributes:
      kind: what it does, such as "Map" or "ParallelMap", whatever its version.
      has_state: whether it may deliver something else when the same data is read again.
      inputs: the datasets that it reads.
      source: what it was read from: a NodeDef, or a tf.data.Dataset.
    """

    kind: str
    has_state: bool
    inputs: tuple[Transformation, ...]
    source: Any

    def all(self) -> Iterator[Transformation]:
        """Those that it reads, directly or not, then itself."""
        for each in self.inputs:
            yield from each.all()
        yield self

    @property
    def repeats(self) -> bool:
        """Whether no reading of the data is like another."""
        return not any(each.has_state for each in self.all())


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Pipeline:
    """A dataset that an iterator reads.

    Attributes:
      last: its outermost transformation.
      options: its `dataset_options_pb2.Options`, those of all its datasets merged.
    """

    last: Transformation
    options: Any

    @property
    def outermost(self) -> Transformation:
        """The last transformation that is more than options."""
        here = self.last
        while here.kind == "Options" and here.inputs:
            here = here.inputs[0]
        return here


def kind_of(name: str) -> str:
    """What a dataset does, by the name of its op or class: "Map" of "MapDataset"."""
    matched = _KIND.match(name)
    return matched[1] if matched else name


def from_nodes(
    root: str, nodes: Mapping[str, Any], library: Mapping[str, Any]
) -> Transformation | None:
    """Reads the pipeline that ends in a node.

    Args:
      root: the name of the node.
      nodes: NodeDefs of the graph or function, by name.
      library: FunctionDefs, by name.

    Returns:
      None where the node is no dataset.
    """
    node = nodes.get(root)
    if node is None or "Dataset" not in node.op:
        return None
    named = (name.lstrip("^").split(":")[0] for name in node.input)
    inputs = (from_nodes(name, nodes, library) for name in named)
    kind = kind_of(node.op)
    return Transformation(
        kind=kind,
        has_state=kind in _RANDOM or _calls_state(node, library),
        inputs=tuple(each for each in inputs if each is not None),
        source=node,
    )


def merged_options(serialized: Iterable[bytes]) -> Any:
    """Options of several datasets as one `dataset_options_pb2.Options`.

    Args:
      serialized: those of each, the outermost last: it decides.
    """
    from tensorflow.core.framework import dataset_options_pb2

    merged = dataset_options_pb2.Options()
    for text in serialized:
        merged.MergeFrom(dataset_options_pb2.Options.FromString(text))
    return merged


def from_dataset(dataset: Any) -> Transformation:
    """Reads the pipeline of an eager tf.data.Dataset."""
    kind = kind_of(type(dataset).__name__)
    bodies = [each.function.graph.as_graph_def() for each in dataset._functions()]
    return Transformation(
        kind=kind,
        has_state=kind in _RANDOM or any(map(_body_has_state, bodies)),
        inputs=tuple(map(from_dataset, dataset._inputs())),
        source=dataset,
    )


def _body_has_state(body: Any) -> bool:
    library = {each.signature.name: each for each in body.library.function}
    return _have_state(body.node, library)


def _have_state(nodes: Sequence[Any], library: Mapping[str, Any]) -> bool:
    return any(_is_stateful(node) or _calls_state(node, library) for node in nodes)


def _is_stateful(node: Any) -> bool:
    """Whether an op of a function has state, as tf.data itself asks."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(node.op)
    if definition is None or not definition.is_stateful or node.op in _HARMLESS | _CALLS:
        return False
    # Datasets are called stateful only so that they are not computed ahead of time.
    return "Dataset" not in node.op or kind_of(node.op) in _RANDOM


def _calls_state(node: Any, library: Mapping[str, Any]) -> bool:
    called = {each.func.name for each in node.attr.values() if each.HasField("func")}
    for each in node.attr.values():
        called |= {function.name for function in each.list.func}
    # A call of a function by its name is a node of that op.
    called |= {node.op} & library.keys()
    return any(_have_state(library[name].node_def, library) for name in called & library.keys())
