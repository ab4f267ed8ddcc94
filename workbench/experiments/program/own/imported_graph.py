"""ImportedGraph: a finished graph as bytes, imported into the graph that is the default one.

Its variables are known to a session afterwards, as if they had been built there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.experiments.program.program import DEFAULT_GRAPH_SEED, Built

_GLOBAL_STEP = "global_step"
# Op types of a variable, and of what assigns its initial value.
_VARIABLES = {"VarHandleOp": "AssignVariableOp", "VariableV2": "Assign", "Variable": "Assign"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportedGraph:
    """The build function of a finished graph.

    Attributes:
      graph: a GraphDef, or a MetaGraphDef where it has collections.
      has_collections: which of the two.
      train_op, loss, fingerprint, labels, scores: names of nodes or tensors; "" for none.
      init_ops: names of what is run once in each session, beside the variables' initializers.
      config: of the session.
    """

    graph: bytes = dataclasses.field(repr=False)
    has_collections: bool
    train_op: str
    loss: str = ""
    fingerprint: str = ""
    labels: str = ""
    scores: str = ""
    init_ops: tuple[str, ...] = ()
    config: Any = None

    def __call__(self, _: Optimizations) -> Built:
        """Imports the graph; no optimization changes it."""
        import tensorflow as tf

        v1 = tf.compat.v1
        graph = v1.get_default_graph()
        meta = v1.MetaGraphDef()
        if self.has_collections:
            meta.ParseFromString(self.graph)
        else:
            meta.graph_def.ParseFromString(self.graph)
        _prepare(meta.graph_def)
        if self.has_collections:
            v1.train.import_meta_graph(meta)
        else:
            tf.import_graph_def(meta.graph_def, name="")
            _note_variables(graph)
        begun = v1.get_collection_ref(v1.GraphKeys.TABLE_INITIALIZERS)
        known = {each.name for each in begun}
        begun += [_op(graph, name) for name in self.init_ops if name not in known]
        return Built(
            train_op=_op(graph, self.train_op),
            loss=_tensor(graph, self.loss),
            fingerprint=_tensor(graph, self.fingerprint),
            labels=_tensor(graph, self.labels),
            scores=_tensor(graph, self.scores),
            config=self.config,
        )


def _prepare(definition: Any) -> None:
    """Loads the ops of this library where there are some, and gives seeds to ops without one."""
    if any(node.op.startswith("Workbench") for node in _all_nodes(definition)):
        from workbench import _native

        _native.library()
    for number, node in enumerate(_all_nodes(definition)):
        seeds = [node.attr[name] for name in ("seed", "seed2") if name in node.attr]
        if len(seeds) == 2 and not any(seed.i for seed in seeds):
            seeds[0].i, seeds[1].i = DEFAULT_GRAPH_SEED, number


def _all_nodes(definition: Any) -> Iterator[Any]:
    yield from definition.node
    for function in definition.library.function:
        yield from function.node_def


def _op(graph: Any, name: str) -> Any:
    return graph.get_operation_by_name(name.partition(":")[0])


def _tensor(graph: Any, name: str) -> Any:
    if not name:
        return None
    return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")


def _note_variables(graph: Any) -> None:
    """Puts the variables of a graph without collections into them.

    Raises:
      OptionError: nothing beside a variable assigns its initial value.
    """
    import tensorflow as tf
    from tensorflow.core.framework import variable_pb2
    from tensorflow.python.ops.resource_variable_ops import ResourceVariable

    v1 = tf.compat.v1
    for op in [op for op in graph.get_operations() if op.type in _VARIABLES]:
        assign = _assign_of(op)
        if assign is None:
            raise OptionError(
                f"nothing in the graph initializes the variable {op.name!r}: expected an op "
                f"{op.name + '/Assign'!r}; give the tf.Graph, or a MetaGraphDef of "
                "tf.compat.v1.train.export_meta_graph(), which say how"
            )
        handle, is_resource = op.outputs[0], op.type == "VarHandleOp"
        read = _read_of(op)
        if read is None and is_resource:
            read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=op.get_attr("dtype"))
        elif read is None:
            read = tf.identity(handle)
        proto = variable_pb2.VariableDef(
            variable_name=handle.name,
            initializer_name=assign.name,
            initial_value_name=assign.inputs[1].name,
            snapshot_name=read.name,
            is_resource=is_resource,
        )
        kind = ResourceVariable if is_resource else v1.Variable
        variable = kind.from_proto(proto)
        v1.add_to_collection(v1.GraphKeys.GLOBAL_VARIABLES, variable)
        if op.name == _GLOBAL_STEP:
            v1.add_to_collection(v1.GraphKeys.GLOBAL_STEP, variable)


def _assign_of(variable: Any) -> Any:
    kind = _VARIABLES[variable.type]
    own = [op for op in variable.outputs[0].consumers() if op.type == kind]
    named = [op for op in own if op.name == f"{variable.name}/Assign"]
    return named[0] if named else None


def _read_of(variable: Any) -> Any:
    kind = "ReadVariableOp" if variable.type == "VarHandleOp" else "Identity"
    reads = (op.outputs[0] for op in variable.outputs[0].consumers() if op.type == kind)
    return next(reads, None)
