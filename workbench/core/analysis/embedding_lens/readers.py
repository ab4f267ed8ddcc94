"""Which ops read rows of which variable: asked of a graph, and of what ran of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from workbench.core.graph.op_types import VARIABLES

# They look up rows of their first input, at the indices of another.
_READS_ROWS = re.compile(
    r"(Resource)?Gather(V2)?$|SparseSegment(Sum|Mean|SqrtN)(WithNumSegments)?$"
    r"|Workbench((Resource)?(Local|Grouped)LookUp|Embedding(Gather|GroupedLookUp))$"
)
_WHOLE_LOOKUP = re.compile(r"Workbench((Resource)?(Local|Grouped)|EmbeddingGrouped)LookUp$")
# Between a variable and what reads its rows.
_PASSES_ON = frozenset({"Enter", "Identity", "ReadVariableOp", "_ReadVariablesOp"})
_HOLDS_ROWS = VARIABLES | {"WorkbenchEmbeddingVariable"}
# Of a function: a variable, if it is read as one.
ARGUMENT = "_Arg"
_READS_VARIABLE = re.compile(r"_?ReadVariable|Resource|WorkbenchResource")
_SCOPE = re.compile(r"^((?:.*?/)??(?:fused_|safe_)?embedding_lookup(?:_sparse)?(?:_\d+)?)(?:/|$)")


def row_readers(
    ops: Sequence[str], consumers: Mapping[int, Sequence[int]]
) -> dict[int, tuple[int, ...]]:
    """For each variable of which rows are read: the ops that read them.

    Functions get their variables as arguments, which count as well.

    Args:
      ops: type of each node.
      consumers: for a node the nodes that read its output as data; as their first input, where
        that is known.
    """
    readers_of = {}
    for variable, op in enumerate(ops):
        if op not in _HOLDS_ROWS and op != ARGUMENT:
            continue
        readers, last, seen = set(), [variable], {variable}
        while last:
            after = [node for source in last for node in consumers.get(source, ())]
            if last == [variable] and op == ARGUMENT:
                after = [node for node in after if _READS_VARIABLE.match(ops[node])]
            readers |= {node for node in after if _READS_ROWS.match(ops[node])}
            last = [node for node in after if ops[node] in _PASSES_ON and node not in seen]
            seen.update(last)
        if readers:
            readers_of[variable] = tuple(sorted(readers))
    return readers_of


def table_names(
    names: Sequence[str], ops: Sequence[str], readers: Mapping[int, tuple[int, ...]]
) -> dict[int, str]:
    """What tables are called: as their variables, or as the scope that reads a function's argument.

    Args:
      names, ops: of each node.
      readers: by variable, as of `row_readers`.
    """
    found: dict[int, str] = {}
    for variable, own in readers.items():
        # A function's argument has a number in its name, another one in each trace.
        scope = names[own[0]].rpartition("/")[0] or names[own[0]]
        if ops[variable] != ARGUMENT or scope in found.values():
            scope = names[variable]
        found[variable] = scope
    return found


def is_grouped(op: str) -> bool:
    """Whether an op reads rows of several tables, which are its first inputs."""
    return op.endswith("GroupedLookUp")


def lookup_of(name: str, op: str) -> str:
    """The scope of the lookup that an op reads rows for; its own name where it is the whole of it.

    Args:
      name, op: of the op.
    """
    scope = _SCOPE.match(name)
    if scope and not _WHOLE_LOOKUP.match(op):
        return scope[1]
    return name
