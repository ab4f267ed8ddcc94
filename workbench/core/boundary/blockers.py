"""Blockers: the nodes that keep a step's graph from running ahead, each with its own reason.

All that depends on a blocker stays on the compute side too; that is `boundary`'s part.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping

import numpy as np

from workbench.core.graph import op_types
from workbench.core.graph.graph_view import (
    CAPTURED_TABLE,
    CAPTURED_VALUE,
    CAPTURED_VARIABLE,
    Bools,
    GraphView,
)
from workbench.errors import PlanError


class Reason(enum.Enum):
    """Why a node stays on the compute side."""

    VARIABLE = "reads a variable"
    PLACEHOLDER = "fed placeholder"
    CONTROL_FLOW = "inside control flow"
    TARGET = "target"
    STATEFUL = "stateful op"
    SHARED = "resource touched by both sides"
    FUNCTION = "function with state"
    SECOND_INPUT = "another input"
    OUTPUT = "output cannot travel"
    SERVER = "read on its server alone"
    KEPT = "kept by the user"


_CHANGE = {
    Reason.VARIABLE: "read a table or a constant instead of the variable {node!r}; "
    "what the model trains cannot run ahead",
    Reason.PLACEHOLDER: "read {node!r} from the input pipeline instead of feeding it",
    Reason.CONTROL_FLOW: "write {node!r} without v1 control flow: with tf.where, or as a function "
    "(tf.function, v2 control flow)",
    Reason.TARGET: "take {node!r} off the targets",
    Reason.STATEFUL: "if {node!r} may run once for each batch, ahead of its step, name it in "
    "SmartStageOptions(move=[{node!r}])",
    Reason.SHARED: "change the resource of {node!r} outside the step",
    Reason.FUNCTION: "take what has state out of the function that {node!r} calls",
    Reason.SECOND_INPUT: "zip both inputs into one dataset, or stage {node!r} by itself",
    Reason.OUTPUT: "let {node!r} give plain tensors",
    Reason.SERVER: "place {node!r} on the worker",
    Reason.KEPT: "take {node!r} out of SmartStageOptions(keep=…)",
}
# Reasons that need no mention where a node stays for another one.
_WEAK = frozenset({Reason.STATEFUL, Reason.FUNCTION, Reason.TARGET})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Blocker:
    """One node that stays for a reason of its own.

    Attributes:
      node: its name.
      reason: the kind of reason.
      detail: the reason in words, about this node.
    """

    node: str
    reason: Reason
    detail: str

    def change(self) -> str:
        """The smallest change that would lift this blocker."""
        return _CHANGE[self.reason].format(node=self.node)


def find_blockers(
    view: GraphView,
    *,
    starts: Iterable[int],
    targets: Iterable[int],
    step: Bools,
    bounded: bool,
    keep: Iterable[str] = (),
    move: Iterable[str] = (),
    fed: Iterable[str] = (),
    stale: Iterable[int] = (),
) -> dict[int, Blocker]:
    """The nodes that must stay, by number.

    Args:
      view: the graph.
      starts: the nodes where staging begins; they may move although they have state.
      targets: nodes that the user wants on the compute side.
      step: the nodes that a step may run: ancestors of the targets, or all.
      bounded: whether the user said what a step runs.
      keep, move, fed: names: must stay; may move although stateful; are fed.
      stale: lookups that may read their tables ahead of the step.

    Raises:
      PlanError: an unknown name; or `move` names a node that has another reason to stay.
    """
    begin, ahead = set(starts), set(stale)
    blockers: dict[int, Blocker] = {}
    judge = _Judge(view, step, bounded)
    for node in judge.suspects():
        if node not in begin and node not in ahead:
            blocker = judge.own_reason(node)
            if blocker:
                blockers[node] = blocker
    for name in move:
        node = view.number(name)
        if node in blockers and blockers[node].reason not in (Reason.STATEFUL, Reason.FUNCTION):
            raise PlanError(
                f"move names {view.names[node]!r}, which stays because it {blockers[node].detail}; "
                "only an op with state of its own can be moved by name"
            )
        blockers.pop(node, None)
    for node in begin:
        shared = judge.shared_input(node, begin)
        if shared:
            blockers[node] = shared
    wishes = (
        (fed, Reason.PLACEHOLDER, "is fed, as the options say"),
        (keep, Reason.KEPT, "was kept by name"),
    )
    for names, reason, detail in wishes:
        for name in names:
            node = view.number(name)
            blockers[node] = Blocker(node=view.names[node], reason=reason, detail=detail)
    for node in targets:
        blockers.setdefault(
            node, Blocker(node=view.names[node], reason=Reason.TARGET, detail="is a target")
        )
    return _without_followers(view, blockers)


def _without_followers(view: GraphView, blockers: dict[int, Blocker]) -> dict[int, Blocker]:
    """Without the targets and ops with state that stay in any case, such as assignments."""
    own = {n for n, b in blockers.items() if b.reason not in _WEAK}
    behind = view.reached(view.mask(own))
    return {node: each for node, each in blockers.items() if node in own or not behind[node]}


class _Judge:
    """Looks at single nodes of one graph."""

    def __init__(self, view: GraphView, step: Bools, bounded: bool) -> None:
        self._view = view
        self._step = step
        self._bounded = bounded
        self._states: dict[str, str] = {}
        self._changed = self._changed_tables()

    def suspects(self) -> list[int]:
        """Nodes worth a look: their op type or a function may be a reason to stay."""
        view = self._view
        known = (
            op_types.VARIABLES
            | op_types.PLACEHOLDERS
            | op_types.CONTROL_FLOW
            | op_types.MUTABLE_TABLES
            | view.stateful_ops
        )
        return [
            node for node, op in enumerate(view.ops) if op in known or node in view.functions
        ] + list(view.captures)

    def own_reason(self, node: int) -> Blocker | None:
        view = self._view
        op = view.ops[node]
        if node in view.captures:
            return self._captured(node)
        if op in op_types.VARIABLES:
            return self._because(node, Reason.VARIABLE, "is a variable")
        if op in op_types.PLACEHOLDERS:
            return self._because(node, Reason.PLACEHOLDER, f"is fed ({op})")
        if op in op_types.CONTROL_FLOW:
            return self._because(node, Reason.CONTROL_FLOW, f"is v1 control flow ({op})")
        if op in op_types.MUTABLE_TABLES:
            return self._table(node)
        if op in op_types.SAFE_STATEFUL | op_types.INPUT_HANDLES | op_types.FILLED_ONCE:
            return None
        if node in view.functions:
            state = self._state_of_call(node)
            return self._because(node, Reason.FUNCTION, state) if state else None
        if op in op_types.SOURCES:
            return self._because(node, Reason.SECOND_INPUT, f"brings an input of its own ({op})")
        if op in view.stateful_ops:
            return self._because(node, Reason.STATEFUL, f"has state or effects of its own ({op})")
        return None

    def shared_input(self, start: int, starts: set[int]) -> Blocker | None:
        """Whether a start's queue, reader or iterator is touched by the compute side as well."""
        view = self._view
        handles = {
            view.shared_names[source]
            for source, _ in view.inputs(start)
            if source in view.shared_names
        }
        if not handles:
            return None
        for handle, name in view.shared_names.items():
            if name not in handles:
                continue
            for user in view.consumers.of(handle).tolist():
                outside = not self._bounded and view.ops[user] in op_types.FEEDS_A_QUEUE
                if self._step[user] and user not in starts and not outside:
                    return self._because(
                        start,
                        Reason.SHARED,
                        f"reads {view.names[handle]!r}, which {view.names[user]!r} "
                        f"({view.ops[user]}) touches in the step as well",
                    )
        return None

    def _captured(self, node: int) -> Blocker | None:
        kind = self._view.captures[node]
        if kind in (CAPTURED_VALUE, CAPTURED_TABLE):
            return None
        if kind == CAPTURED_VARIABLE:
            return self._because(node, Reason.VARIABLE, "is a captured variable")
        return self._because(node, Reason.STATEFUL, "is a captured resource that may change")

    def _table(self, node: int) -> Blocker | None:
        changed_by = self._changed.get(self._view.shared_names.get(node, self._view.names[node]))
        if changed_by is None:
            return None
        return self._because(
            node, Reason.SHARED, f"is a table that {changed_by!r} changes in the step"
        )

    def _changed_tables(self) -> dict[str, str]:
        """Shared names of the mutable tables that a step changes, with the node that does."""
        view = self._view
        changed: dict[str, str] = {}
        tables = [node for node, op in enumerate(view.ops) if op in op_types.MUTABLE_TABLES]
        for table in tables:
            for user in view.consumers.of(table).tolist():
                changes = view.ops[user] in op_types.TABLE_CHANGES or (
                    user in view.functions and self._state_of_call(user)
                )
                if changes and self._step[user]:
                    key = view.shared_names.get(table, view.names[table])
                    changed.setdefault(key, view.names[user])
        return changed

    def _state_of_call(self, node: int) -> str:
        """What has state inside the functions that a node calls, in words; "" for nothing."""
        for function in self._view.functions[node]:
            inside = self._state_of(function, frozenset())
            if inside:
                return f"calls {function!r}, which {inside}"
        return ""

    def _state_of(self, function: str, above: frozenset[str]) -> str:
        if function in above:
            return "calls itself"
        if function not in self._states:
            body = self._view.library.get(function)
            if body is None:
                self._states[function] = "is not in the graph's library"
            else:
                self._states[function] = self._state_in(body, above | {function})
        return self._states[function]

    def _state_in(self, body: GraphView, above: frozenset[str]) -> str:
        safe = op_types.SAFE_STATEFUL | op_types.FILLED_ONCE
        for node, op in enumerate(body.ops):
            if node in body.functions:
                for called in body.functions[node]:
                    inside = self._state_of(called, above)
                    if inside:
                        return f"calls {called!r}, which {inside}"
            elif op in op_types.VARIABLES:
                return f"reads the variable {body.names[node]!r}"
            elif op in body.stateful_ops and op not in safe:
                return f"runs {body.names[node]!r} ({op})"
        return ""

    def _because(self, node: int, reason: Reason, detail: str) -> Blocker:
        return Blocker(node=self._view.names[node], reason=reason, detail=detail)


def mask_of(view: GraphView, blockers: Mapping[int, Blocker]) -> Bools:
    """The blockers as a bool array."""
    chosen = np.zeros(len(view), bool)
    chosen[list(blockers)] = True
    return chosen
