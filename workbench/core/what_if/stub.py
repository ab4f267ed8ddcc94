"""Stub: the step of a graph without one kind of work, whose results lie ready instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from workbench.core.graph.graph_view import Bools, GraphView, Ints, edges
from workbench.core.graph.op_types import (
    INPUT_HANDLES,
    INPUTS,
    LOOPS_BACK,
    PLACEHOLDERS,
    VARIABLES,
    cannot_travel,
)
from workbench.core.what_if.faster import INPUT_WORK, KINDS, selected
from workbench.errors import UnsupportedError

# The step with all its work, on one batch that is repeated.
ONE_BATCH = "one batch"
# Hold a value, and hand on what holds one; they do no work.
_HOLDS = VARIABLES | PLACEHOLDERS | {"Const"}
_HANDS_ON = frozenset({"Identity", "ReadVariableOp"})
_BEGINS_FRAME = frozenset({"Enter", "RefEnter", "Switch", "RefSwitch", "_SwitchN"})
_ENDS_FRAME = frozenset({"Exit", "RefExit", "Merge", "RefMerge"})


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Stub:
    """What is changed in a graph so that a step runs without some of its work.

    A tensor is a (node, output) pair. After the changes nothing that is left out is an ancestor of
    `targets` or of what is kept, and every other node of the step that works still is one.

    Attributes:
      work: what is left out, one of KINDS; ONE_BATCH for nothing.
      left_out: bool [nodes], the nodes of that work in the step.
      kept: bool [nodes], the other nodes of the step that do work.
      batch: tensors that bring the batch. They are still made; what reads them reads one batch.
      border: tensors of the work whose values lie ready instead.
      reads: int32 [edges, 4], the data edges that read `batch` or `border`, as in `GraphView.data`.
      waits: int32 [edges, 2], the control edges that go.
      unread: tensors that only the work read and that the step must still make.
      unawaited: nodes that only the work waited for and that the step must still run.
      targets: nodes of the step's targets that stay.
    """

    work: str
    left_out: Bools
    kept: Bools
    batch: tuple[tuple[int, int], ...]
    border: tuple[tuple[int, int], ...]
    reads: Ints
    waits: Ints
    unread: tuple[tuple[int, int], ...]
    unawaited: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def values(self) -> tuple[tuple[int, int], ...]:
        """The tensors of which a value is needed."""
        return (*self.batch, *self.border)


def stub_of(view: GraphView, work: str, targets: Iterable[int]) -> Stub:
    """How a step runs without some work.

    Legal only where all of this holds:
      1. The step has such work.
      2. A value can be held of all that the rest reads of it: no handle, no reference.
      3. Nothing at the border stands in a loop or in a branch: the rest stands in another frame.
      4. Of a step that goes on reading its input, the input's tensors can be held, so that what
         lies ready belongs to the batch that the rest works on.

    Args:
      view: the graph.
      work: what to leave out, one of KINDS; ONE_BATCH leaves nothing out.
      targets: the nodes that a step runs.

    Raises:
      UnsupportedError: one of the rules is broken; the message says by which node.
    """
    targets = tuple(dict.fromkeys(targets))
    step = view.ancestors(view.mask(targets))
    idle = _idle(view)
    chosen = selected(view, work) if work in KINDS else np.zeros(len(view), bool)
    left_out = chosen & step & ~idle
    if work in KINDS and not left_out.any():
        # 1.
        raise UnsupportedError(f"the step has no work of the kind {work!r}")
    rest, kept = step & ~left_out, step & ~left_out & ~idle
    out = _between(view.data, left_out, rest)
    into = _between(view.data, kept, left_out)
    awaited = _between(view.control, kept, left_out)
    border = _tensors(out)
    _require_values(view, border)
    _require_outside_frames(view, out[:, 2], np.concatenate([into[:, 0], awaited[:, 0]]))
    batch = () if work == INPUT_WORK else _batch(view, step)
    unread = _tensors(into)
    held = tuple(pair for pair in unread if _can_travel(view, *pair))
    unheld = [node for node, output in unread if not _can_travel(view, node, output)]
    return Stub(
        work=work,
        left_out=left_out,
        kept=kept,
        batch=batch,
        border=border,
        reads=edges(np.concatenate([out, _reads_of(view, batch, rest)]), 4),
        waits=edges(_between(view.control, left_out, rest), 2),
        unread=held,
        unawaited=tuple(dict.fromkeys([*awaited[:, 0].tolist(), *unheld])),
        targets=tuple(target for target in targets if not left_out[target]),
    )


def _idle(view: GraphView) -> Bools:
    """Nodes that hold a value, or a handle, or hand one on, without waiting for another node."""
    takes = np.zeros(len(view), bool)
    takes[view.data[:, 2]] = True
    waits = np.zeros(len(view), bool)
    waits[view.control[:, 1]] = True
    handles = (all(map(cannot_travel, dtypes)) and dtypes for dtypes in view.outputs)
    holds = np.fromiter(
        (bool(handle) or op in _HOLDS for op, handle in zip(view.ops, handles, strict=True)),
        bool,
        len(view),
    )
    hands_on = np.fromiter((op in _HANDS_ON for op in view.ops), bool, len(view))
    holds &= ~takes & ~waits
    return view.reached(holds, within=holds | (hands_on & ~waits))


def _batch(view: GraphView, step: Bools) -> tuple[tuple[int, int], ...]:
    """The tensors that the input's nodes in the step deliver."""
    inputs = selected(view, INPUT_WORK) & step
    delivered: list[tuple[int, int]] = []
    for node in np.flatnonzero(inputs).tolist():
        op = view.ops[node]
        if op in INPUT_HANDLES or not (op in INPUTS or op in view.stateful_ops):
            continue
        # 4.
        for output, dtype in enumerate(view.outputs[node]):
            if cannot_travel(dtype):
                raise UnsupportedError(
                    f"the input {view.names[node]!r} ({op}) delivers a {dtype}, whose value "
                    "cannot be held, so a step cannot be given the same batch again"
                )
            delivered.append((node, output))
    read = {(int(row[0]), int(row[1])) for row in view.data[step[view.data[:, 2]]]}
    return tuple(pair for pair in delivered if pair in read)


def _between(rows: Ints, sources: Bools, targets: Bools) -> Ints:
    """The edges from some nodes to some others; data edges, or control edges."""
    target = 2 if rows.shape[1] > 2 else 1
    return rows[sources[rows[:, 0]] & targets[rows[:, target]]]


def _reads_of(view: GraphView, batch: Sequence[tuple[int, int]], readers: Bools) -> Ints:
    """Data edges from the batch to these nodes."""
    wanted = set(batch)
    rows = view.data[readers[view.data[:, 2]]]
    chosen = [(int(row[0]), int(row[1])) in wanted for row in rows]
    return rows[np.array(chosen, bool)] if len(rows) else rows


def _tensors(rows: Ints) -> tuple[tuple[int, int], ...]:
    """The tensors that these data edges carry."""
    return tuple(dict.fromkeys((int(row[0]), int(row[1])) for row in rows))


def _can_travel(view: GraphView, node: int, output: int) -> bool:
    dtypes = view.outputs[node]
    return output < len(dtypes) and not cannot_travel(dtypes[output])


def _require_values(view: GraphView, border: Iterable[tuple[int, int]]) -> None:
    # 2.
    for node, output in border:
        if not _can_travel(view, node, output):
            dtypes = view.outputs[node]
            what = dtypes[output] if output < len(dtypes) else "tensor of an unknown type"
            raise UnsupportedError(
                f"the rest of the step reads a {what} of {view.names[node]!r} "
                f"({view.ops[node]}), whose value cannot be held"
            )


def _require_outside_frames(view: GraphView, readers: Ints, producers: Ints) -> None:
    """Requires that these nodes stand in no loop and in no branch; a reader may begin one."""
    # 3.
    begins = np.fromiter((op in _BEGINS_FRAME for op in view.ops), bool, len(view))
    if not begins.any():
        return
    ends = np.fromiter((op in _ENDS_FRAME for op in view.ops), bool, len(view))
    back = np.fromiter((op in LOOPS_BACK for op in view.ops), bool, len(view))
    # Where a loop starts again, values merge inside of it.
    ends[view.data[back[view.data[:, 0]], 2]] = False
    inside = view.reached(begins, within=~ends)
    wrong = [node for node in readers.tolist() if inside[node] and not begins[node]]
    wrong += [node for node in producers.tolist() if inside[node]]
    if wrong:
        raise UnsupportedError(
            f"{view.names[wrong[0]]!r} ({view.ops[wrong[0]]}) stands in a loop or a branch, at "
            "the border of the work to leave out, where no value that lies ready can be read"
        )
