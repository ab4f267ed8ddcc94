"""A boundary as bytes: JSON, deflated, for a file or for another process.

Holds what explains and draws a boundary: about ten bytes a node. What only planning reads is left
out (devices, shapes, resources, bodies of functions): a plan is made from the graph itself.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from workbench.core.boundary.blockers import Blocker, Reason, mask_of
from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.boundary.inputs import Start
from workbench.core.graph.graph_view import Bools, GraphView, Ints, SeenStage, edges
from workbench.core.options import StageOptions
from workbench.errors import DataError, OptionError, PlanError
from workbench.files.saved_values import json_of, shown, unpacked, value_of

_FORMAT_VERSION = 1
# No node has more inputs or outputs.
_MOST_PLACES = 1 << 24


def boundary_to_bytes(boundary: Boundary) -> bytes:
    """A boundary as gzipped JSON; equal boundaries give equal bytes."""
    document = {
        "format_version": _FORMAT_VERSION,
        **_graph_document(boundary.view),
        "targets": boundary.targets,
        "step": _bits(boundary.step),
        "stale_lookups": boundary.stale_lookups,
        "stale_reads": boundary.stale_reads,
        "sides": [
            {
                "start": side.start.nodes,
                "puts": side.start.puts,
                "legal": _bits(side.legal),
                "widest": _bits(side.widest),
                "stale": _bits(side.stale),
            }
            for side in boundary.sides
        ],
        "blockers": [
            [node, blocker.reason.name, blocker.detail]
            for node, blocker in boundary.blockers.items()
        ],
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8"), mtime=0)


def boundary_from_bytes(content: bytes) -> Boundary:
    """The boundary that `boundary_to_bytes` wrote, as far as it is kept.

    Raises:
      DataError: not a boundary, damaged, or of another format version.
    """
    try:
        document = json_of(unpacked(content), len(content))
    except DataError as error:
        raise DataError(f"is not a saved boundary: {error}") from error
    version = document.pop("format_version", None) if isinstance(document, dict) else None
    if version != _FORMAT_VERSION:
        raise DataError(
            f"the boundary has format version {shown(version)}; this Workbench reads "
            f"{_FORMAT_VERSION}"
        )
    try:
        return _boundary_from(value_of(_Document, document, "the boundary"))
    except (DataError, PlanError, OptionError) as error:
        raise DataError(f"the boundary is damaged: {error}") from error


def _graph_document(view: GraphView) -> dict[str, Any]:
    ops, op_of = _table(view.ops)
    outputs, outputs_of = _table(view.outputs)
    return {
        "names": view.names,
        "ops": ops,
        "op_of": op_of,
        "outputs": outputs,
        "outputs_of": outputs_of,
        # By column: sources rise with their targets, so columns deflate to less than rows.
        "data": view.data.T.tolist(),
        "control": view.control.T.tolist(),
        "stages": [
            [put, stage.name, stage.options.capacity, stage.options.num_threads]
            for put, stage in view.stages.items()
        ],
        "shared_names": list(view.shared_names.items()),
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SideDocument:
    """One side; a set of nodes is a text with "0" or "1" for each of the graph."""

    start: tuple[int, ...]
    puts: tuple[int, ...]
    legal: str
    widest: str
    # Absent from files of before lookups could be stale.
    stale: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Document:
    """What `boundary_to_bytes` writes, but for the version."""

    names: tuple[str, ...]
    ops: tuple[str, ...]
    op_of: tuple[int, ...]
    outputs: tuple[tuple[str, ...], ...]
    outputs_of: tuple[int, ...]
    data: tuple[tuple[int, ...], ...]
    control: tuple[tuple[int, ...], ...]
    stages: tuple[tuple[int, str, int, int], ...]
    targets: tuple[str, ...]
    step: str
    sides: tuple[_SideDocument, ...]
    blockers: tuple[tuple[int, str, str], ...]
    # Absent from files of before predictions read them, or lookups could be stale.
    shared_names: tuple[tuple[int, str], ...] = ()
    stale_lookups: int = 0
    stale_reads: tuple[int, ...] = ()


def _boundary_from(document: _Document) -> Boundary:
    view = _graph_from(document)
    reads = _rows(document.stale_reads, len(view.data), "stale_reads")
    _rows([node for node, _, _ in document.blockers], len(view), "blockers")
    blockers = {
        node: Blocker(node=view.names[node], reason=_reason(reason), detail=detail)
        for node, reason, detail in document.blockers
    }
    for name in document.targets:
        view.number(name)
    held = view.without_data(reads)
    return Boundary(
        view=view,
        targets=document.targets,
        sides=tuple(
            _side_from(number, side, held, mask_of(held, blockers))
            for number, side in enumerate(document.sides)
        ),
        step=_mask(document.step, len(view)),
        blockers=blockers,
        next_hop=held.nearest(mask_of(held, blockers)),
        stale_lookups=document.stale_lookups,
        stale_reads=reads,
    )


def _side_from(number: int, side: _SideDocument, view: GraphView, blocked: Bools) -> Side:
    start = Start(
        nodes=_rows(side.start, len(view), "start"), puts=_rows(side.puts, len(view), "puts")
    )
    if not start.nodes or not set(start.puts) <= view.stages.keys():
        raise DataError(f"side {number} has no start, or starts at a stage that is not there")
    legal, widest, stale = (
        _mask(bits or "0" * len(view), len(view)) for bits in (side.legal, side.widest, side.stale)
    )
    if (legal & view.reached(blocked)).any() or ((widest | stale) & ~legal).any():
        raise DataError(f"nodes of side {number} may run ahead and may not")
    view.ordered(legal)
    return Side(number=number, start=start, legal=legal, widest=widest, stale=stale)


def _graph_from(document: _Document) -> GraphView:
    names, count = document.names, len(document.names)
    op_of = _rows(document.op_of, len(document.ops), "op_of")
    outputs_of = _rows(document.outputs_of, len(document.outputs), "outputs_of")
    if {len(op_of), len(outputs_of), len(set(names))} != {count}:
        raise DataError(f"it names {count} nodes, some of them twice, or has other numbers of ops")
    outputs = tuple(document.outputs[at] for at in outputs_of)
    data = _edges(document.data, 4, (0, 2), count, "data")
    given = np.asarray([len(each) for each in outputs], np.int64)
    if (data[:, 1] >= given[data[:, 0]]).any():
        raise DataError("an edge comes from an output that its node does not have")
    _rows([put for put, *_ in document.stages], count, "stages")
    _rows([node for node, _ in document.shared_names], count, "shared_names")
    return GraphView(
        names=names,
        ops=tuple(document.ops[at] for at in op_of),
        devices=("",) * count,
        outputs=outputs,
        data=data,
        control=_edges(document.control, 2, (0, 1), count, "control"),
        stages={
            put: SeenStage(
                name=name, options=StageOptions(capacity=capacity, num_threads=num_threads)
            )
            for put, name, capacity, num_threads in document.stages
        },
        shared_names=dict(document.shared_names),
    )


def _edges(
    columns: tuple[tuple[int, ...], ...], width: int, ends: Sequence[int], count: int, what: str
) -> Ints:
    """Rows of an edge array, whose columns of `ends` are nodes."""
    if len(columns) != width or len(set(map(len, columns))) != 1:
        raise DataError(f"{what} has no {width} columns of one length")
    for column, numbers in enumerate(columns):
        _rows(numbers, count if column in ends else _MOST_PLACES, what)
    return edges(list(zip(*columns, strict=True)), width)


def _rows(numbers: Sequence[int], count: int, what: str) -> tuple[int, ...]:
    """Numbers that have to be below a count."""
    if numbers and not (min(numbers) >= 0 and max(numbers) < count):
        wrong = next(number for number in numbers if not 0 <= number < count)
        raise DataError(f"{what} has the number {wrong}; expected 0 to {count - 1}")
    return tuple(numbers)


def _reason(name: str) -> Reason:
    if name not in Reason.__members__:
        raise DataError(f"a node stays for the reason {shown(name)}, which is none")
    return Reason[name]


def _table(values: Sequence[Hashable]) -> tuple[list[Hashable], list[int]]:
    """The different values, and for each value its place among them."""
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return list(places), [places[value] for value in values]


def _bits(nodes: Bools) -> str:
    """A set of nodes as a character for each node of the graph."""
    return "".join("1" if chosen else "0" for chosen in nodes.tolist())


def _mask(bits: str, count: int) -> Bools:
    if len(bits) != count or bits.strip("01"):
        raise DataError(
            f"a set of nodes is {shown(bits)} of {len(bits)}; expected {count} times 0 or 1"
        )
    return np.frombuffer(bits.encode("ascii"), np.uint8) == ord("1")
