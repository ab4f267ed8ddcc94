"""A finished graph as a program: its nodes travel to child processes as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.core.graph.graph_view import GraphView, node_name
from workbench.core.graph.op_types import STAGE_PUT
from workbench.errors import OptionError
from workbench.experiments.program.own.imported_graph import ImportedGraph
from workbench.experiments.program.program import Program

_GRAPH, _META_GRAPH = "tensorflow.GraphDef", "tensorflow.MetaGraphDef"
_TRAIN_OPS = "train_op"  # TensorFlow's collection of what optimizers have made
_FILLS = ("InitializeTable", "LookupTableImport")
_HOW = 'wb.graph_program(graph, train_op="…", loss="…")'


def is_graph(given: object) -> bool:
    """Whether it is a finished graph: a `tf.Graph`, a GraphDef or a MetaGraphDef."""
    return hasattr(given, "as_graph_def") or _kind(given) in (_GRAPH, _META_GRAPH)


def graph_program(
    graph: Any,
    *,
    train_op: Any = None,
    loss: Any = None,
    fingerprint: Any = None,
    labels: Any = None,
    scores: Any = None,
    init_op: Any = (),
    name: str = "graph",
    config: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> Program:
    """Makes a program of a finished graph, whose input is part of it.

    Variables are initialized as the graph does it: by the collections of a `tf.Graph` or a
    MetaGraphDef, in a GraphDef by the "…/Assign" beside each variable. Random ops without a seed
    get one, so that every variant begins alike. A stage of your own and V1, V2 and grouped lookups
    are put in while a graph is built. So a finished one has no such toggles; "auto" it has.

    Args:
      graph: a `tf.Graph`, a MetaGraphDef, as `tf.compat.v1.train.export_meta_graph` gives it, or a
        GraphDef.
      train_op, loss, fingerprint, labels, scores: names of nodes or tensors, or these themselves,
        as of `wb.Built`. Without a train op the only one that an optimizer of the graph has made is
        taken.
      init_op: names of what else is run once in each session, before the first step. Without it
        every initializer of a table or an iterator is run.
      name: what tables and reports call it.
      config: the session's ConfigProto; None takes TensorFlow's defaults.
      settings: what else a reader of the report must know.

    Raises:
      OptionError: no graph, an unknown name, no train op or several, a placeholder that the step
        reads, or a stage of your own.
    """
    # It imports TensorFlow, which whoever has a graph has loaded.
    from workbench.core.tf_graph.import_graph import graph_view

    if not is_graph(graph):
        raise OptionError(
            f"graph is a {type(graph).__name__}; expected a tf.Graph, a GraphDef or a MetaGraphDef"
        )
    if hasattr(graph, "as_graph_def"):
        import tensorflow as tf

        with graph.as_default():
            graph = tf.compat.v1.train.export_meta_graph(graph=graph)
    meta = _kind(graph) == _META_GRAPH
    view = graph_view(graph.graph_def if meta else graph)
    step = _known(view, train_op, "train_op") or _only_train_op(graph, view, meta)
    _require_runs(view, step)
    inits = [init_op] if isinstance(init_op, str) or hasattr(init_op, "name") else init_op
    build = ImportedGraph(
        graph=graph.SerializeToString(),
        has_collections=meta,
        train_op=step,
        loss=_known(view, loss, "loss"),
        fingerprint=_known(view, fingerprint, "fingerprint"),
        labels=_known(view, labels, "labels"),
        scores=_known(view, scores, "scores"),
        init_ops=tuple(_known(view, each, "init_op") for each in inits) or _initializers(view),
        config=config,
    )
    return Program(name=name, build=build, settings=dict(settings or {}))


def _kind(given: object) -> str:
    return str(getattr(getattr(given, "DESCRIPTOR", None), "full_name", ""))


def _known(view: GraphView, given: Any, argument: str) -> str:
    """The name of a node or a tensor; "" without one."""
    if given is None:
        return ""
    name = given if isinstance(given, str) else getattr(given, "name", None)
    if not isinstance(name, str) or node_name(name) not in view.index:
        raise OptionError(
            f"{argument} is {given!r}, and the graph of {len(view)} nodes has none of that name; "
            "expected the name of a node or a tensor in it"
        )
    return name


def _only_train_op(graph: Any, view: GraphView, meta: bool) -> str:
    """What an optimizer has made, by the collections, else what all of its updates end in."""
    names = []
    if meta and _TRAIN_OPS in graph.collection_def:
        names = list(graph.collection_def[_TRAIN_OPS].node_list.value)
    if not names:
        updates = view.mask(node for node, op in enumerate(view.ops) if "Apply" in op)
        after = np.flatnonzero(view.reached(updates)).tolist()
        ends = [node for node in after if not len(view.consumers.of(node))]
        names = [view.names[node] for node in ends]
    if len(names) == 1:
        return str(names[0])
    what = f"several: {', '.join(map(repr, names[:5]))}" if names else "none"
    raise OptionError(
        f"the graph of {len(view)} nodes does not say what a training step runs (train ops of "
        f"optimizers: {what}); name it: {_HOW}"
    )


def _require_runs(view: GraphView, step: str) -> None:
    """Requires that a step needs nothing that only the process has that built the graph."""
    for node in np.flatnonzero(view.ancestors(view.mask([view.number(step)]))):
        if view.ops[node] == "Placeholder":
            raise OptionError(
                f"the step {step!r} reads the placeholder {view.names[node]!r}, and nothing is fed "
                "here; let the graph read its own input, such as a tf.data iterator"
            )
    if STAGE_PUT in view.ops:
        name = view.names[view.ops.index(STAGE_PUT)]
        raise OptionError(
            f"the graph has a stage of your own ({name!r}), whose threads are not part of "
            "a graph; give the graph without wb.staged(…), or a function build(optimizations)"
        )


def _initializers(view: GraphView) -> tuple[str, ...]:
    """What fills tables and starts iterators, one for each."""
    initializers: dict[int, str] = {}
    for node, op in enumerate(view.ops):
        if op != "MakeIterator" and not op.startswith(_FILLS):
            continue
        of, _ = view.inputs(node)[1 if op == "MakeIterator" else 0]
        if of in initializers:
            raise OptionError(
                f"{view.names[of]!r} has two initializers, {initializers[of]!r} and "
                f"{view.names[node]!r}; "
                f'say which is run: wb.graph_program(graph, init_op="{view.names[node]}")'
            )
        initializers[of] = view.names[node]
    return tuple(initializers.values())
