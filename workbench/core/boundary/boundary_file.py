"""A boundary as bytes: JSON, deflated, for a file or for another process.

Holds what explains and draws a boundary: about ten bytes a node. What only planning reads is left
out (devices, shapes, resources, bodies of functions): a plan is made from the graph itself.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from workbench.core.boundary.blockers import Blocker, Reason, mask_of
from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.boundary.inputs import Start
from workbench.core.graph.graph_view import Bools, GraphView, SeenStage, edges
from workbench.core.options import StageOptions
from workbench.errors import DataError, OptionError

_FORMAT_VERSION = 1


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
        document = json.loads(gzip.decompress(content))
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"is not a saved boundary: {error}") from error
    version = document.get("format_version") if isinstance(document, dict) else None
    if version != _FORMAT_VERSION:
        raise DataError(
            f"the boundary has format version {version!r}; this Workbench reads {_FORMAT_VERSION}"
        )
    try:
        return _boundary_from(document)
    except (KeyError, TypeError, ValueError, IndexError, OptionError) as error:
        raise DataError(f"the boundary is damaged: {type(error).__name__}: {error}") from error


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


def _boundary_from(document: dict[str, Any]) -> Boundary:
    view = _graph_from(document)
    # Absent from files of before lookups could be stale.
    reads = tuple(document.get("stale_reads", ()))
    blockers = {
        node: Blocker(node=view.names[node], reason=Reason[reason], detail=detail)
        for node, reason, detail in document["blockers"]
    }
    sides = (
        Side(
            number=number,
            start=Start(nodes=tuple(side["start"]), puts=tuple(side["puts"])),
            legal=_mask(side["legal"], len(view)),
            widest=_mask(side["widest"], len(view)),
            stale=_mask(side.get("stale") or "0" * len(view), len(view)),
        )
        for number, side in enumerate(document["sides"])
    )
    return Boundary(
        view=view,
        targets=tuple(document["targets"]),
        sides=tuple(sides),
        step=_mask(document["step"], len(view)),
        blockers=blockers,
        next_hop=view.without_data(reads).nearest(mask_of(view, blockers)),
        stale_lookups=document.get("stale_lookups", 0),
        stale_reads=reads,
    )


def _graph_from(document: dict[str, Any]) -> GraphView:
    names, ops, outputs = document["names"], document["ops"], document["outputs"]
    return GraphView(
        names=tuple(names),
        ops=tuple(ops[at] for at in document["op_of"]),
        devices=("",) * len(names),
        outputs=tuple(tuple(outputs[at]) for at in document["outputs_of"]),
        data=edges(list(zip(*document["data"], strict=True)), 4),
        control=edges(list(zip(*document["control"], strict=True)), 2),
        stages={
            put: SeenStage(
                name=name, options=StageOptions(capacity=capacity, num_threads=num_threads)
            )
            for put, name, capacity, num_threads in document["stages"]
        },
        # Absent from files of before predictions read it.
        shared_names=dict(document.get("shared_names", ())),
    )


def _table(values: Sequence[Hashable]) -> tuple[list[Hashable], list[int]]:
    """The different values, and for each value its place among them."""
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return list(places), [places[value] for value in values]


def _bits(nodes: Bools) -> str:
    """A set of nodes as a character for each node of the graph."""
    return "".join("1" if chosen else "0" for chosen in nodes.tolist())


def _mask(bits: Iterable[str], count: int) -> Bools:
    mask = np.asarray([bit == "1" for bit in bits], bool)
    if len(mask) != count:
        raise ValueError(f"a set of nodes has {len(mask)} entries; expected {count}")
    return mask
