"""Tiny graphs as text, one node a line: `name = Op(input, other:1, ^control) dtype dtype`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workbench.core.graph.graph_view import GraphView, SeenStage, edges
from workbench.core.options import StageOptions

# What the OpDefs of these types say.
STATEFUL = frozenset(
    {
        *("Assert", "AssignVariableOp", "FIFOQueueV2", "HashTableV2", "If", "IteratorGetNext"),
        *("IteratorV2", "LookupTableInsertV2", "MutableHashTableV2", "Print", "PyFunc"),
        *("QueueDequeueV2", "QueueEnqueueV2", "RandomUniform", "ReaderReadV2", "VarHandleOp"),
        *("StatefulPartitionedCall", "TextLineReaderV2", "VariableV2", "While"),
        *("WorkbenchBufferPut", "WorkbenchBufferTake"),
    }
)
_LINE = re.compile(
    r"(?P<name>[\w/.]+) = (?P<op>\w+)(?:\((?P<inputs>[^)]*)\))?(?P<kinds>( [\w_]+)*)$"
)
_NO_OUTPUT = frozenset(
    {
        "Assert",
        "AssignVariableOp",
        "NoOp",
        "LookupTableInsertV2",
        "QueueEnqueueV2",
        "WorkbenchBufferPut",
    }
)
_RESOURCE = frozenset(
    {
        "FIFOQueueV2",
        "HashTableV2",
        "IteratorV2",
        "MutableHashTableV2",
        "TextLineReaderV2",
        "VarHandleOp",
    }
)


def graph(
    text: str,
    *,
    functions: Mapping[str, tuple[str, ...]] | None = None,
    library: Mapping[str, GraphView] | None = None,
    captures: Mapping[str, str] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    shared: Mapping[str, str] | None = None,
    stage: StageOptions | None = None,
    devices: Mapping[str, str] | None = None,
) -> GraphView:
    """The graph that `text` spells.

    Args:
      text: the nodes; dtypes default to one float32, or what the op is known for.
      functions, captures, shared, devices: by node name.
      library: functions' bodies.
      shapes: of variables that a function captures, by node name.
      stage: options of the user's own stage.
    """
    rows = [found for line in text.strip().splitlines() if (found := _parsed(line))]
    index = {name: i for i, (name, *_) in enumerate(rows)}
    data, control = [], []
    for target, (_, _, inputs, _) in enumerate(rows):
        place = 0
        for each in inputs:
            if each.startswith("^"):
                control.append((index[each[1:]], target))
                continue
            source, _, output = each.partition(":")
            data.append((index[source], int(output or 0), target, place))
            place += 1
    names = {name: f"/{(shared or {}).get(name, name)}" for name in index}
    return GraphView(
        names=tuple(index),
        ops=tuple(op for _, op, _, _ in rows),
        devices=tuple((devices or {}).get(name, "") for name in index),
        outputs=tuple(kinds for *_, kinds in rows),
        data=edges(data, 4),
        control=edges(control, 2),
        stateful_ops=STATEFUL,
        shared_names={
            i: names[name]
            for i, (name, op, _, _) in enumerate(rows)
            if op in _RESOURCE or op.startswith("WorkbenchBuffer")
        },
        functions={index[name]: called for name, called in (functions or {}).items()},
        library=dict(library or {}),
        captures={index[name]: kind for name, kind in (captures or {}).items()},
        captured_shapes={index[name]: shape for name, shape in (shapes or {}).items()},
        stages={
            i: SeenStage(name="prefetch", options=stage or StageOptions())
            for i, (_, op, _, _) in enumerate(rows)
            if op == "WorkbenchBufferPut"
        },
    )


def _parsed(line: str) -> tuple[str, str, list[str], tuple[str, ...]] | None:
    if not line.strip():
        return None
    found = _LINE.match(line.strip())
    assert found, f"no node: {line!r}"
    op = found["op"]
    inputs = [each.strip() for each in (found["inputs"] or "").split(",") if each.strip()]
    usual = () if op in _NO_OUTPUT else ("resource",) if op in _RESOURCE else ("float32",)
    return found["name"], op, inputs, tuple(found["kinds"].split()) or usual
