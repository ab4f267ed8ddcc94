"""Nodes of two traces → groups that do the same work, and what became of each group."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence

MATCHED, TO_STAGE, TO_STEP = "matched", "moved to the stage", "moved to the step"
FUSED, UNFUSED, NEW, GONE = "fused", "unfused", "new", "gone"
STATUSES = (MATCHED, TO_STAGE, TO_STEP, FUSED, UNFUSED, NEW, GONE)
# How far out of its own scope a fused op finds what it replaced.
_OUTWARD = 2
# TensorFlow numbers the bodies of the functions that it inlines, anew for every graph.
_NUMBERED = re.compile(r"(?<=/)_\d+(?=[/_]|$)")
_FUSED_OP = re.compile(
    r"Workbench((Pre|Post|(Resource)?(Local|Grouped))LookUp|PruneInvalid|UniqueWithCounts"
    r"|PartitionWithPermutation|Gather|(Resource)?(Rows|Grouped)Apply|BatchNorm|(Dot|Fm)Interaction)"
)
_FUSED_SCOPE = re.compile(r"^fused_(?=embedding_lookup(_\d+)?$)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RanNode:
    """A node that ran.

    Attributes:
      name, op: of the node.
      in_step: whether it ran in main steps, and not in runs of a stage alone.
    """

    name: str
    op: str
    in_step: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Nodes of two traces that do the same work; either side may be empty.

    Attributes:
      name: what it is called.
      status: what became of it from `a` to `b`, one of STATUSES.
      a, b: places in the lists of nodes.
    """

    name: str
    status: str
    a: tuple[int, ...]
    b: tuple[int, ...]


def match_nodes(
    a: Sequence[RanNode],
    b: Sequence[RanNode],
    stages_a: Collection[str] = (),
    stages_b: Collection[str] = (),
) -> list[NodeGroup]:
    """Groups the nodes of two traces; each is in one group.

    1. Nodes of the same name are one group, but for the numbers that TensorFlow gives to inlined
       functions.
    2. A copy that a stage made, "smart_stage/dlrm/C1/x", is the node "dlrm/C1/x".
    3. Of what is left, Workbench's ops of a lookup, or what else was fused, replace the stock ops
       of the same scope, and those of its gradient and update likewise.

    Args:
      a, b: the nodes, all of different names.
      stages_a, stages_b: names of the stages of each trace.
    """
    keys_a, keys_b = _keys(a, b, stages_a), _keys(b, a, stages_b)
    lookups = _replaced_scopes(a, b, keys_a, keys_b)
    members: dict[str, tuple[list[int], list[int]]] = {}
    common = set(keys_a) & set(keys_b)
    for side, keys in enumerate((keys_a, keys_b)):
        for place, key in enumerate(keys):
            scope = None if key in common else _innermost(key, lookups)
            # No name ends in "/".
            group = key if scope is None else f"{scope}/"
            members.setdefault(group, ([], []))[side].append(place)
    return [_group(key, a, b, *places) for key, places in members.items()]


def _keys(own: Sequence[RanNode], other: Iterable[RanNode], stages: Collection[str]) -> list[str]:
    """What a node is matched by: its name, without its stage where only that is in the other."""
    in_other = {_unnumbered(node.name) for node in other}
    keys = []
    for node in own:
        key = _unnumbered(node.name)
        scope, _, rest = key.partition("/")
        keys.append(rest if rest and key not in in_other and scope in stages else key)
    return keys


def _unnumbered(name: str) -> str:
    return _NUMBERED.sub("_#", name)


def _group(
    key: str, a: Sequence[RanNode], b: Sequence[RanNode], of_a: list[int], of_b: list[int]
) -> NodeGroup:
    nodes_a, nodes_b = [a[place] for place in of_a], [b[place] for place in of_b]
    name = key.rstrip("/")
    if key == name:
        single = next((nodes for nodes in (nodes_a, nodes_b) if len(nodes) == 1), None)
        name = single[0].name if single else key
    return NodeGroup(name=name, status=_status(key, nodes_a, nodes_b), a=tuple(of_a), b=tuple(of_b))


def _status(key: str, a: list[RanNode], b: list[RanNode]) -> str:
    if not a or not b:
        return NEW if b else GONE
    if key.endswith("/"):
        fused_a, fused_b = (any(_FUSED_OP.match(node.op) for node in side) for side in (a, b))
        if fused_a != fused_b:
            return FUSED if fused_b else UNFUSED
    step_a, step_b = (any(node.in_step for node in side) for side in (a, b))
    if step_a == step_b:
        return MATCHED
    return TO_STAGE if step_a else TO_STEP


def _replaced_scopes(
    a: Sequence[RanNode], b: Sequence[RanNode], keys_a: list[str], keys_b: list[str]
) -> set[str]:
    """Scopes of lookups, of their gradients and updates, that one trace has fused."""
    only_a, only_b = set(keys_a) - set(keys_b), set(keys_b) - set(keys_a)
    found: set[str] = set()
    for nodes, keys, only, others in ((b, keys_b, only_b, only_a), (a, keys_a, only_a, only_b)):
        inside = collections.Counter(scope for key in others for scope in _scopes(key))
        for node, key in zip(nodes, keys, strict=True):
            if key in only and _FUSED_OP.match(node.op):
                found |= _first_with(_scopes(key), inside)
    return found


def _first_with(scopes: Sequence[str], inside: collections.Counter[str]) -> set[str]:
    """The innermost of a fused op's scopes that has ops to replace; none if it is far out."""
    for outward, scope in enumerate(scopes[: _OUTWARD + 1]):
        if inside[scope]:
            # A whole model, or all gradients, are the scope of more than one lookup.
            return {scope} if "/" in scope or outward < _OUTWARD else set()
    return set()


def _innermost(key: str, scopes: set[str]) -> str | None:
    return next((scope for scope in _scopes(key) if scope in scopes), None)


def _scopes(key: str) -> list[str]:
    """The scopes of a name, the innermost first, itself too: an op may be named as its scope is.

    Those of a gradient, "x_grad", and of a fused lookup are called as those of a stock one.
    """
    parts = [_FUSED_SCOPE.sub("", part.removesuffix("_grad")) for part in key.split("/")]
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
