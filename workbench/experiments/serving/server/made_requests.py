"""Requests that are made from a signature, where nobody gives any.

Ids of an integer input are drawn below the number of rows of the smallest table that they may be
looked up in, as the graph has it. Nothing is known of how often each occurs in truth, so all are
as likely.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.core.tf_graph.inlined_calls import inlined
from workbench.errors import DataError
from workbench.experiments.serving.server.signature import Input, Signature

_IDS = 1000
_SEED = 20
# Ops that look rows up, with the number of the input that is the table.
_LOOKUPS = {
    "Gather": 0,
    "GatherV2": 0,
    "ResourceGather": 0,
    "SparseSegmentSum": 0,
    "SparseSegmentMean": 0,
    "SparseSegmentSqrtN": 0,
}
_PARSERS = ("ParseExample", "ParseExampleV2", "ParseSingleExample", "DecodeJSONExample")
_PASSED_ON = ("Identity", "ReadVariableOp", "Enter", "Switch", "ConcatV2")


def made_request(
    signature: Signature, limits: dict[str, int], rows: int, number: int
) -> dict[str, Any]:
    """A request of so many rows.

    Args:
      signature: what is called.
      limits: of the ids of each input, see `id_limits`.
      rows: how many.
      number: of the request; the same number gives the same request.
    """
    draw = np.random.default_rng((_SEED, rows, number))
    return {spec.name: _value(spec, limits[spec.name], rows, draw) for spec in signature.inputs}


def id_limits(meta_graph: Any, signature: Signature) -> dict[str, int]:
    """For each input, the number that its integers stay below.

    Raises:
      DataError: an input takes serialized examples, which nothing here can make.
    """
    graph = meta_graph.graph_def
    # A TensorFlow 2 model looks rows up in functions that its graph calls.
    called = inlined(graph)
    nodes = {node.name: node for node in (called.definition if called else graph).node}
    readers: dict[str, list[Any]] = {}
    for node in nodes.values():
        for text in node.input:
            readers.setdefault(_node(text), []).append(node)
    limits = {}
    for spec in signature.inputs:
        # A sparse input has its ids among its values.
        start = _node(spec.tensors[1] if spec.is_sparse else spec.tensors[0])
        after = list(_after(start, readers))
        parser = next((node for node in after if node.op in _PARSERS), None)
        if parser is not None and spec.dtype.name == "string":
            raise DataError(
                f"the input {spec.words}, takes serialized tf.train.Example records, as "
                f"{parser.name!r} parses them, and those cannot be made from a signature; give "
                "requests: a TFRecord file of such records, or a function"
            )
        tables = [size for node in after for size in _table_rows(node, nodes)]
        limits[spec.name] = min(tables, default=_IDS)
    return limits


def _after(start: str, readers: dict[str, list[Any]]) -> Iterator[Any]:
    """The nodes that depend on a node, nearest first."""
    seen, waiting = {start}, [start]
    while waiting:
        for node in readers.get(waiting.pop(0), ()):
            if node.name not in seen:
                seen.add(node.name)
                waiting.append(node.name)
                yield node


def _table_rows(node: Any, nodes: dict[str, Any]) -> Iterator[int]:
    """Rows of the table that a lookup reads, where that is a variable with a known shape."""
    if node.op not in _LOOKUPS:
        return
    source = nodes.get(_node(node.input[_LOOKUPS[node.op]]))
    while source is not None and source.op in _PASSED_ON and source.input:
        source = nodes.get(_node(source.input[0]))
    if source is not None and "shape" in source.attr:
        dims = source.attr["shape"].shape.dim
        # A vector is something else than a table.
        if len(dims) > 1 and dims[0].size > 0:
            yield int(dims[0].size)


def _value(spec: Input, limit: int, rows: int, draw: np.random.Generator) -> Any:
    if spec.is_sparse:
        shape: tuple[int, ...] = (rows, 1)
    elif spec.shape is None:
        shape = (rows,)
    else:
        unknown = [rows, *[1] * len(spec.shape)]
        sizes = iter(unknown)
        shape = tuple(next(sizes) if size is None else size for size in spec.shape)
    name = spec.dtype.base_dtype.name
    if name == "string":
        words = draw.integers(0, _IDS, shape)
        return np.array([f"word {word}" for word in words.ravel()], object).reshape(shape)
    if name == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    if spec.dtype.is_integer:
        most = min(limit, int(spec.dtype.max))
        return draw.integers(0, max(1, most), shape).astype(spec.dtype.as_numpy_dtype)
    if spec.dtype.is_floating:
        return draw.random(shape).astype(spec.dtype.as_numpy_dtype)
    raise DataError(f"nothing is made for the input {spec.words}; give requests")


def _node(text: str) -> str:
    return text.removeprefix("^").partition(":")[0]
