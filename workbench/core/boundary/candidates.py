"""Candidate: one legal way to stage a graph, before one is chosen: which nodes, how many threads.

`candidates_of` lists those worth a prediction; nothing is decided here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.graph.graph_view import Bools
from workbench.core.options import SmartStageOptions

# Into how many parts the staged side is divided when narrower cuts are tried.
_PARTS = 4


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class CandidateStage:
    """One buffer and what runs ahead of it.

    Attributes:
      side: where it belongs.
      moved: the nodes that run before its put, as bools; has the start.
      num_threads: producers.
      capacity: items in its buffer.
      is_users: it is the user's own stage, at the place that the user chose: nothing is rewritten,
        and `moved` is what stands before its put.
      stale_lookups: how many steps ahead of the step its items are begun, at most: it holds lookups
        of what the steps train. 0: whenever there is room.
    """

    side: Side
    moved: Bools
    num_threads: int
    capacity: int
    is_users: bool = False
    stale_lookups: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A chain of stages: each takes from the one before it, the step from the last.

    Attributes:
      label: what it is called in tables.
      stages: in the order of the data; none means un-staged.
      removes_own: the user's own stage is gone, which only a prediction can show.
    """

    label: str
    stages: tuple[CandidateStage, ...]
    removes_own: bool = False

    @property
    def new_stages(self) -> tuple[CandidateStage, ...]:
        """The stages to make: the user's own, where it stays as it is, is none of them."""
        return tuple(stage for stage in self.stages if not stage.is_users)

    @property
    def widens(self) -> bool:
        """Whether its one new stage is the user's own, widened."""
        return len(self.stages) == 1 == len(self.new_stages) and self.stages[0].side.start.is_stage


UNSTAGED, OWN_STAGE, WIDEST = "un-staged", "your stage", "widest"
# A cut that was chosen by name, not weighed.
CHOSEN = "the chosen cut"


def before_put(boundary: Boundary, side: Side) -> Bools:
    """The nodes that run before the puts of the user's own stage, its take among them."""
    view = boundary.view
    if not side.start.is_stage:
        return view.mask(side.start.nodes)
    return view.ancestors(view.mask(side.start.puts)) | view.mask(side.start.nodes)


def own_stage(boundary: Boundary, side: Side) -> CandidateStage:
    """The user's own stage as it stands."""
    puts = side.start.puts
    options = boundary.view.stages[puts[0]].options
    return CandidateStage(
        side=side,
        moved=before_put(boundary, side),
        num_threads=max(len(puts), options.num_threads),
        capacity=options.capacity,
        is_users=True,
    )


def candidates_of(
    boundary: Boundary, side: Side, options: SmartStageOptions, *, cores: int
) -> list[Candidate]:
    """The candidates for one side that are worth a prediction.

    Un-staged and the user's own stage; then, for cuts from the input alone to the widest, one
    stage with one and more threads, and two chained stages.
    """
    capacity = options.capacity or 1
    threads = _thread_counts(options, cores)
    worth = [Candidate(label=UNSTAGED, stages=(), removes_own=True)]
    user_stage = own_stage(boundary, side) if side.start.is_stage else None
    if user_stage:
        worth.append(Candidate(label=OWN_STAGE, stages=(user_stage,)))
    if not side.widest.any():
        return worth
    start = boundary.view.mask(side.start.nodes)
    # What travels to another device must not go through the user's buffer, which is on its own.
    widens = not (user_stage and options.on_cpu)
    for name, moved in _cuts(boundary, side):
        # A wide stage on the user's own holds what was before its put as well.
        ahead = moved | user_stage.moved if user_stage else moved
        room = user_stage.capacity if user_stage else capacity
        for count in threads if widens else ():
            wide = CandidateStage(side=side, moved=ahead, num_threads=count, capacity=room)
            if user_stage and (moved == start).all() and count == user_stage.num_threads:
                continue
            worth.append(Candidate(label=f"{name}, {_threads(count)}", stages=(wide,)))
        if (moved == start).all():
            continue
        first = user_stage or CandidateStage(
            side=side, moved=start, num_threads=1, capacity=capacity
        )
        for count in threads:
            second = CandidateStage(side=side, moved=moved, num_threads=count, capacity=capacity)
            worth.append(
                Candidate(
                    label=f"{name} in two chained stages, {_threads(count)}",
                    stages=(first, second),
                )
            )
    return worth


def cut_candidate(
    boundary: Boundary, side: Side, moved: Bools, options: SmartStageOptions
) -> Candidate | None:
    """One stage of exactly these nodes, the user's own stage widened where there is one.

    Args:
      boundary, side: what may run ahead.
      moved: a legal part of `side.widest`.
      options: its threads and capacity, where they are said.

    Returns:
      None where nothing moves beyond what stands before the user's own stage.
    """
    start = boundary.view.mask(side.start.nodes)
    user_stage = own_stage(boundary, side) if side.start.is_stage else None
    if not moved.any() or (user_stage and not (moved & ~start).any()):
        return None
    stage = CandidateStage(
        side=side,
        moved=moved,
        num_threads=options.num_threads or 1,
        capacity=options.capacity or 1,
    )
    if user_stage is None:
        return Candidate(label=CHOSEN, stages=(stage,))
    if options.on_cpu:
        return Candidate(label=CHOSEN, stages=(user_stage, stage))
    wide = dataclasses.replace(
        stage,
        moved=moved | user_stage.moved,
        num_threads=options.num_threads or user_stage.num_threads,
        capacity=user_stage.capacity,
    )
    return Candidate(label=CHOSEN, stages=(wide,))


def cut_of(boundary: Boundary, moved: Sequence[Bools], options: SmartStageOptions) -> Candidate:
    """The stages of all sides of a cut together; `moved` has one set of nodes for each."""
    made = [
        cut_candidate(boundary, side, nodes, options)
        for side, nodes in zip(boundary.sides, moved, strict=True)
    ]
    stages = tuple(stage for each in made if each for stage in each.stages)
    return Candidate(label=CHOSEN, stages=stages)


def widest_chained(boundary: Boundary, side: Side, options: SmartStageOptions) -> Candidate | None:
    """What is taken without a trace: the widest cut, the input in a stage before it.

    Returns:
      None where nothing beyond the start may move and the user has a stage already, or where the
      compute side does not need the input at all.
    """
    if not side.widest.any():
        return None
    start = boundary.view.mask(side.start.nodes)
    own = own_stage(boundary, side) if side.start.is_stage else None
    only_start = bool((side.widest == start).all())
    capacity, threads = options.capacity or 1, options.num_threads or 1
    first = own or CandidateStage(
        side=side, moved=start, num_threads=threads if only_start else 1, capacity=capacity
    )
    if only_start:
        return None if own else Candidate(label="the input alone", stages=(first,))
    second = CandidateStage(side=side, moved=side.widest, num_threads=threads, capacity=capacity)
    return Candidate(label=f"{WIDEST} in two chained stages", stages=(first, second))


def with_stale(
    boundary: Boundary, side: Side, exact: Candidate | None, moved: Bools
) -> Candidate | None:
    """An exact candidate with a further stage behind it: that of the lookups that may be stale.

    Args:
      boundary, side: what may run ahead.
      exact: what moves the rest ahead; None for nothing.
      moved: the nodes to move, those of `exact` among them.

    Returns:
      The exact candidate itself, where no lookup is moved.
    """
    if not (moved & side.stale).any():
        return exact
    before = exact.stages if exact else ()
    if side.start.is_stage and (exact is None or exact.widens):
        # The user's own stage stays as it is, and this one behind it moves the rest as well.
        before = (own_stage(boundary, side),)
    ahead = CandidateStage(
        side=side,
        moved=moved,
        num_threads=1,
        capacity=boundary.stale_lookups,
        stale_lookups=boundary.stale_lookups,
    )
    label = exact.label if exact else UNSTAGED
    return Candidate(label=label, stages=(*before, ahead))


def _thread_counts(options: SmartStageOptions, cores: int) -> tuple[int, ...]:
    if options.num_threads:
        return (options.num_threads,)
    if not options.reorder:
        return (1,)
    return tuple(count for count in (1, 2, 4) if count <= max(2, cores))


def _cuts(boundary: Boundary, side: Side) -> list[tuple[str, Bools]]:
    """Cuts of rising width: in topological order every prefix is one that lacks no ancestor."""
    view = boundary.view
    start = view.mask(side.start.nodes)
    order = [node for node in view.ordered(side.widest) if not start[node]]
    cuts = [("the input alone", start)]
    for part in range(1, _PARTS):
        count = len(order) * part // _PARTS
        if 0 < count < len(order):
            part_of = start | view.mask(order[:count])
            cuts.append((f"{part}/{_PARTS} of the widest", boundary.fit_to_travel(side, part_of)))
    if order:
        cuts.append((WIDEST, side.widest))
    return [
        cut for i, cut in enumerate(cuts) if not i or not np.array_equal(cut[1], cuts[i - 1][1])
    ]


def _threads(count: int) -> str:
    return f"{count} thread" if count == 1 else f"{count} threads"
