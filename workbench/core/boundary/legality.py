"""GraphView → Boundary: finds what of a step may run ahead of it.

A node may run ahead of its step when it depends on the step's batch and on nothing that a step
changes, is fed, or runs for its effect. Where lookups may be stale, what they read of variables
does not count. Legal cases are numbered in `_legal`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.core.boundary.blockers import Blocker, Reason, find_blockers, mask_of
from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.boundary.inputs import Start, find_starts
from workbench.core.boundary.server_nodes import server_nodes
from workbench.core.boundary.stale_reads import stale_reads
from workbench.core.graph import op_types
from workbench.core.graph.graph_view import Bools, GraphView, Ints
from workbench.core.graph.tasks import task_of


def boundary_of(
    view: GraphView,
    *,
    targets: Sequence[str] = (),
    marked: Sequence[str] = (),
    runs: Sequence[str] = (),
    starts: Sequence[str] = (),
    keep: Sequence[str] = (),
    move: Sequence[str] = (),
    fed: Sequence[str] = (),
    stale_lookups: int = 0,
) -> Boundary:
    """Finds what may run ahead of a step.

    Args:
      view: the graph.
      targets: names of nodes or tensors that a step runs; they stay on the compute side. Without
        them everything in the graph counts as part of the step.
      marked: names of targets that say nothing about what else a step runs.
      runs: names of nodes that a step runs as well, for their effect, and that stay or move like
        any other; a widest stage has those that may move.
      starts: names of the nodes that deliver the input; none: the user's own stages are taken or,
        without one, the one input that the step has.
      keep: names that must stay.
      move: names of stateful nodes that may run ahead all the same, once for each batch.
      fed: names that are fed although they are no placeholders.
      stale_lookups: how many steps stale lookups may be; 0 keeps them on the compute side.

    Returns:
      The boundary; where nothing may move it says why.

    Raises:
      PlanError: an unknown name, no input or stage at all, or several inputs and no `starts`.
    """
    wanted = [view.number(target) for target in targets]
    stay = [*wanted, *(view.number(name) for name in marked)]
    also = view.mask(map(view.number, runs))
    bounded = bool(wanted or runs)
    step = view.ancestors(view.mask(wanted) | also) if bounded else np.ones(len(view), bool)
    chosen = find_starts(view, step=step, bounded=bounded, named=starts)
    nodes = [node for start in chosen for node in start.nodes]
    reads = stale_reads(view) if stale_lookups else ()
    lookups = view.mask(view.data[list(reads), 2])
    held = view.without_data(reads)
    blockers = find_blockers(
        held,
        starts=nodes,
        targets=stay,
        step=step,
        bounded=bounded,
        keep=keep,
        move=move,
        fed=fed,
        stale=np.flatnonzero(lookups).tolist(),
    )
    legal = _legal(held, chosen, blockers, step)
    return Boundary(
        view=view,
        targets=tuple(view.names[node] for node in stay),
        sides=tuple(
            Side(
                number=i,
                start=start,
                legal=side,
                widest=_needed(held, start, side, step, also),
                stale=held.reached(lookups & side, within=side),
            )
            for i, (start, side) in enumerate(zip(chosen, legal, strict=True))
        ),
        step=step,
        blockers=blockers,
        next_hop=held.nearest(mask_of(held, blockers)),
        stale_lookups=stale_lookups,
        stale_reads=reads,
    )


def _legal(
    view: GraphView, starts: Sequence[Start], blockers: dict[int, Blocker], step: Bools
) -> list[Bools]:
    """The legal nodes of each start; adds what (3), (4) and (5) refuse to `blockers`.

    Legal is a node that (1) depends on the start, by data or control edges; (2) is no blocker and
    depends on none; (3) depends on no second start; (4) gives plain tensors wherever the compute
    side reads it, and as a start anyway; (5) is not on a parameter server whose ops alone read it.
    What it depends on besides, constants and handles, stays where it is and runs on both sides.
    """
    begins = [view.mask(start.nodes) for start in starts]
    stays = view.reached(mask_of(view, blockers))
    free = ~stays
    # (3) a node below two starts would have to run in both stages.
    count = np.zeros(len(view), int)
    for begin in begins:
        count += view.reached(begin, within=free)
    for node in np.flatnonzero(count > 1):
        blockers[int(node)] = Blocker(
            node=view.names[node],
            reason=Reason.SECOND_INPUT,
            detail="joins two inputs, each with a stage of its own",
        )
    while True:
        stays = view.reached(mask_of(view, blockers))
        # (1), (2)
        legal = [view.reached(begin, within=~stays) for begin in begins]
        stuck = {
            *_cannot_travel(view, np.any(legal, axis=0), step).tolist(),
            *_starts_that_stay(view, starts, legal),
        }
        # (5)
        far = [server_nodes(view, *each, step) for each in zip(starts, legal, strict=True)]
        for node in np.concatenate(far).tolist():
            blockers[node] = _only_its_server(view, node)
        # (4) as the node stays, those that it depends on may become cut edges in turn.
        if not stuck and not sum(map(len, far)):
            return legal
        for node in sorted(stuck):
            blockers[node] = _stuck(view, node, any(node in start.nodes for start in starts))


def _stuck(view: GraphView, node: int, delivers: bool) -> Blocker:
    kinds = "/".join(sorted(set(view.outputs[node])))
    detail = f"gives the compute side {kinds}, which cannot go through a buffer"
    if delivers and "variant" in view.outputs[node]:
        detail = (
            f"delivers {kinds}, and a variant, as SparseTensors of a dataset come, cannot go "
            "through a buffer; stage its SparseTensors with wb.staged, which takes them apart"
        )
    return Blocker(node=view.names[node], reason=Reason.OUTPUT, detail=detail)


def _only_its_server(view: GraphView, node: int) -> Blocker:
    server = task_of(view.devices[node])
    return Blocker(
        node=view.names[node],
        reason=Reason.SERVER,
        detail=f"runs on {server!r}, and no other task reads what it gives: ahead of the step that "
        "would travel to the worker's buffer, and in the step back",
    )


def _cannot_travel(view: GraphView, legal: Bools, step: Bools) -> Ints:
    """Legal nodes that the rest of the step reads and whose outputs cannot go through a buffer."""
    data = view.data
    ends = np.unique(data[legal[data[:, 0]] & ~legal[data[:, 2]] & step[data[:, 2]], 0])
    return np.asarray(
        [n for n in ends.tolist() if any(map(op_types.cannot_travel, view.outputs[n]))], int
    )


def _starts_that_stay(
    view: GraphView, starts: Sequence[Start], legal: Sequence[Bools]
) -> list[int]:
    """Legal nodes that deliver a batch which cannot go through a buffer, whoever reads it.

    What delivers a batch always travels: in the step it would deliver another one. The arguments
    of a function deliver nothing by themselves.
    """
    return [
        node
        for start, mine in zip(starts, legal, strict=True)
        for node in start.nodes
        if mine[node]
        and view.ops[node] not in op_types.PLACEHOLDERS
        and any(map(op_types.cannot_travel, view.outputs[node]))
    ]


def _needed(view: GraphView, start: Start, legal: Bools, step: Bools, also: Bools) -> Bools:
    """The legal nodes that the rest of the step reads, directly or not, or that `also` has."""
    data = view.data
    begin = view.mask(start.nodes) & legal
    ends = view.mask(data[legal[data[:, 0]] & ~legal[data[:, 2]] & step[data[:, 2]], 0])
    needed = view.ancestors(ends | (also & legal & ~begin), within=legal)
    return needed | begin if ends.any() else needed
