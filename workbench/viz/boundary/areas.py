"""Which nodes stand where: a chain of areas for each input, and what travels out of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.boundary.candidates import before_put, own_stage
from workbench.core.graph.graph_view import Bools, GraphView, Ints
from workbench.core.planning.stage_plan import PlannedStage
from workbench.number_words import steps_stale
from workbench.viz.style import format

Kind = Literal["own", "stage", "may"]


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One tensor in a buffer.

    Attributes:
      node: who makes it.
      dtype: its dtype name.
      seen: (node, output) by which those behind the buffer read it.
    """

    node: int
    dtype: str
    seen: tuple[int, int]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Area:
    """Nodes that run together ahead of the step, or could.

    Attributes:
      kind: "own" for the user's own stage, "stage" for one that the plan makes or widens, "may"
        for what may run ahead while no plan moves it.
      name: of the stage.
      title, about: heading, and a line below it.
      chain: which input it belongs to.
      nodes: their numbers; none stands in two areas of a chain.
      tensors: what travels out of it.
      stale_lookups: how many steps stale its lookups are, or would be.
    """

    kind: Kind
    name: str
    title: str
    about: str
    chain: int
    nodes: Ints
    tensors: tuple[Tensor, ...]
    stale_lookups: int = 0


def areas_of(boundary: Boundary, stages: Sequence[PlannedStage]) -> list[Area]:
    """The areas ahead of the compute side, chain by chain, in the order of the data.

    Args:
      boundary: what was found.
      stages: those of the plan; none shows what may run ahead.
    """
    areas: list[Area] = []
    view = boundary.view
    for chain, side in enumerate(boundary.sides):
        start = tuple(view.names[node] for node in side.start.nodes)
        planned = [stage for stage in stages if stage.start == start]
        seen = view.mask(side.start.nodes if side.start.is_stage else ())
        if side.start.is_stage and not any(stage.widens for stage in planned):
            areas.append(_user_stage(boundary, side, chain))
        for stage in planned:
            moved = view.mask(map(view.number, stage.moved))
            if stage.widens:
                moved |= before_put(boundary, side)
            areas.append(_planned(view, stage, chain, np.flatnonzero(moved & ~seen)))
            seen |= moved
        if not planned and side.widest.any():
            areas += _may(boundary, side, chain, seen)
    return [area for area in areas if len(area.nodes)]


def readers(view: GraphView, area: Area, within: Bools) -> Ints:
    """Edges by which nodes of `within` read what travels out of an area, as rows of the data."""
    read = np.zeros(len(view.data), bool)
    makers = view.mask(tensor.seen[0] for tensor in area.tensors)
    some = makers[view.data[:, 0]] & within[view.data[:, 2]]
    known = {tensor.seen for tensor in area.tensors}
    for row in np.flatnonzero(some).tolist():
        read[row] = (int(view.data[row, 0]), int(view.data[row, 1])) in known
    return view.data[read]


def behind(view: GraphView, areas: Sequence[Area], place: int, compute: Bools) -> Bools:
    """The nodes that take what travels out of an area: the next one of its chain, or the step."""
    after = areas[place + 1] if place + 1 < len(areas) else None
    return view.mask(after.nodes) if after and after.chain == areas[place].chain else compute


def unread(area: Area, read: Ints) -> dict[Tensor, str]:
    """Why tensors travel that no node behind the buffer reads.

    Args:
      area: where they come from.
      read: the edges by which what travels is read, as `readers` gives them.
    """
    known = {(source, output) for source, output, _, _ in read.tolist()}
    makers = {source for source, _ in known}
    why = {}
    for tensor in area.tensors:
        if tensor.seen in known:
            continue
        if area.kind == "own":
            why[tensor] = "Your stage puts it into the buffer; nothing in the step reads it."
        elif tensor.node in makers:
            why[tensor] = "All outputs of a node travel together."
        else:
            why[tensor] = (
                "Nothing in the step reads the batch itself; it travels so that whatever else is "
                "fetched is computed from the step's own batch."
            )
    return why


def dtype_words(dtypes: Sequence[str]) -> str:
    """How many tensors of each dtype: "52 int64, 26 int32"; one alone without its number."""
    counts = {dtype: dtypes.count(dtype) for dtype in dict.fromkeys(dtypes)}
    if len(counts) == 1:
        return next(iter(counts))
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{format.integer(count)} {dtype}" for dtype, count in ordered)


def _user_stage(boundary: Boundary, side: Side, chain: int) -> Area:
    view = boundary.view
    put = side.start.puts[0]
    (take,) = side.start.nodes
    # The first input of a put is its owner, not a part of the record.
    record = view.inputs(put)[1:]
    owners = [view.inputs(each)[0][0] for each in side.start.puts]
    buffer_ops = view.mask([take, *side.start.puts, *owners])
    stage = own_stage(boundary, side)
    name = view.stages[put].name
    return Area(
        kind="own",
        name=name,
        title=f"Your stage “{name}”",
        about=running(stage.num_threads, stage.capacity),
        chain=chain,
        nodes=np.flatnonzero(stage.moved & ~buffer_ops),
        tensors=tuple(
            Tensor(node, view.outputs[node][output], (take, place))
            for place, (node, output) in enumerate(record)
        ),
    )


def _planned(view: GraphView, stage: PlannedStage, chain: int, nodes: Ints) -> Area:
    title = f"Your stage “{stage.own_name}”, widened" if stage.widens else f"Stage “{stage.name}”"
    return Area(
        kind="stage",
        name=stage.name,
        title=title,
        about=about_stage(stage),
        chain=chain,
        nodes=nodes,
        tensors=all_outputs(view, [view.number(name) for name in stage.carried]),
        stale_lookups=stage.stale_lookups,
    )


def _may(boundary: Boundary, side: Side, chain: int, seen: Bools) -> list[Area]:
    """What may run ahead, and behind it what may on stale rows."""
    exact = boundary.exact_part(side, side.widest)
    parts = [(exact, exact & ~seen, 0)]
    if (side.widest & side.stale).any():
        parts.append((side.widest, side.widest & ~exact & ~seen, boundary.stale_lookups))
    return [
        Area(
            kind="may",
            name="",
            title=f"May run ahead, {steps_stale(stale)}" if stale else "May run ahead",
            about="the widest legal cut; no plan moves it",
            chain=chain,
            nodes=np.flatnonzero(nodes),
            tensors=all_outputs(boundary.view, boundary.carried(side, moved)),
            stale_lookups=stale,
        )
        for moved, nodes, stale in parts
    ]


def all_outputs(view: GraphView, nodes: Sequence[int]) -> tuple[Tensor, ...]:
    """Every output of these nodes, as tensors that are read under their own names."""
    return tuple(
        Tensor(node, dtype, (node, output))
        for node in nodes
        for output, dtype in enumerate(view.outputs[node])
    )


def about_stage(stage: PlannedStage) -> str:
    """How a planned stage runs, in words, and how stale its lookups are."""
    words = running(stage.options.num_threads, stage.options.capacity)
    return f"{words}, lookups {stage.staleness}" if stage.stale_lookups else words


def running(threads: int, capacity: int) -> str:
    """How a stage runs, in words."""
    items = "item" if capacity == 1 else "items"
    return (
        f"{format.integer(threads)} {'thread' if threads == 1 else 'threads'}, "
        f"buffer of {format.integer(capacity)} {items}"
    )
