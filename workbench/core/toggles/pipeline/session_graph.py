"""tf.data pipelines of a session's graph: found by their iterators, and changed in place.

An iterator reads a dataset of the graph (MakeIterator), or makes one by a function of its own
(OneShotIterator). In the first case an edge of the graph is changed. In the second case the
iterator gets a changed copy of its function.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.core.toggles.pipeline.transformations import (
    Pipeline,
    Transformation,
    from_nodes,
    merged_options,
)

# Makes a dataset of another one: (the other, types of its elements, their shapes).
MakeDataset = Callable[[Any, Sequence[Any], Sequence[Any]], Any]

_PREFIX = "workbench"
_FACTORY = "dataset_factory"
# Without state it would be computed ahead of time, and a dataset is no constant.
_CALL = "StatefulPartitionedCall"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GraphPipeline:
    """A pipeline of a graph.

    Attributes:
      pipeline: what it does.
      iterator: the operation that reads it.
      function: the FunctionDef that makes it; None where it stands in the graph itself.
    """

    pipeline: Pipeline
    iterator: Any
    function: Any = None

    def insert(self, make: MakeDataset, reader: Transformation | None = None) -> None:
        """Puts another dataset into the pipeline.

        Args:
          make: makes it of the one before it.
          reader: what reads it from now on, in place of its first input; None is the iterator.
        """
        read = reader.inputs[0] if reader else self.pipeline.last
        types, shapes = self._elements(read)
        if self.function is None:
            self._insert_in_graph(lambda dataset: make(dataset, types, shapes), reader, read)
        else:
            self._insert_in_function(lambda dataset: make(dataset, types, shapes), reader, read)

    def alone(self, kept: Transformation) -> Any:
        """A dataset of this pipeline in the default graph, with only what it needs."""
        import tensorflow as tf

        if self.function is not None:
            variant = self._called(kept)
        else:
            definition = self.iterator.graph.as_graph_def()
            needed = tf.compat.v1.graph_util.extract_sub_graph(definition, [kept.source.name])
            needed.library.CopyFrom(definition.library)
            end = f"{kept.source.name}:0"
            (variant,) = tf.graph_util.import_graph_def(needed, name="", return_elements=[end])
        elements = zip(*self._elements(kept), strict=True)
        spec = tuple(tf.TensorSpec(shape, dtype) for dtype, shape in elements)
        return tf.data.experimental.from_variant(variant, spec)

    def _called(self, kept: Transformation) -> Any:
        """What the iterator's function returns, with a dataset in it for its result."""
        import tensorflow as tf
        from tensorflow.core.framework import attr_value_pb2

        function = type(self.function)()
        function.CopyFrom(self.function)
        function.signature.name += "_kept"
        (output,) = function.ret
        function.ret[output] = f"{kept.source.name}:handle:0"
        only = tf.compat.v1.GraphDef()
        only.CopyFrom(self.iterator.graph.as_graph_def())
        only.ClearField("node")
        only.library.function.append(function)
        tf.graph_util.import_graph_def(only, name="")
        called, none, one = (attr_value_pb2.AttrValue() for _ in range(3))
        called.func.name = function.signature.name
        none.list.SetInParent()
        one.list.type.append(tf.variant.as_datatype_enum)
        graph = tf.compat.v1.get_default_graph()
        attributes = {"f": called, "Tin": none, "Tout": one}
        return graph.create_op(_CALL, [], [tf.variant], attrs=attributes).outputs[0]

    def _elements(self, read: Transformation) -> tuple[list[Any], list[Any]]:
        """Types and shapes of a dataset's elements."""
        import tensorflow as tf

        here = read.source.attr
        types = [here[name] for name in ("output_types", "Toutput_types") if name in here]
        if types and "output_shapes" in here:
            shapes = here["output_shapes"].list.shape
            return [tf.as_dtype(each) for each in types[0].list.type], [*map(_shape, shapes)]
        if read is self.pipeline.last:
            iterator = self.iterator
            known = iterator if iterator.type == "OneShotIterator" else iterator.inputs[1].op
            return known.get_attr("output_types"), [*map(_shape, known.get_attr("output_shapes"))]
        # Sources without these attributes read texts.
        return [tf.string], [tf.TensorShape([])]

    def _insert_in_graph(
        self, make: Callable[[Any], Any], reader: Transformation | None, read: Transformation
    ) -> None:
        graph = self.iterator.graph
        operation = graph.get_operation_by_name(reader.source.name) if reader else self.iterator
        dataset = graph.get_operation_by_name(read.source.name).outputs[0]
        place = [each is dataset for each in operation.inputs].index(True)
        with (
            graph.as_default(),
            graph.control_dependencies(None),
            graph.device(dataset.device),
            graph.name_scope(_PREFIX),
        ):
            operation._update_input(place, make(dataset))

    def _insert_in_function(
        self, make: Callable[[Any], Any], reader: Transformation | None, read: Transformation
    ) -> None:
        changed = type(self.function)()
        changed.CopyFrom(self.function)
        changed.signature.name = f"{changed.signature.name}_{_PREFIX}_{secrets.token_hex(4)}"
        nodes = {node.name: node for node in changed.node_def}
        source = read.source.name
        (output,) = changed.ret
        ends = nodes[reader.source.name].input if reader else [changed.ret[output]]
        place = [each.split(":")[0] for each in ends].index(source)
        added, end = _made_nodes(make, ends[place], nodes)
        for node in added:
            node.device = read.source.device
        changed.node_def.extend(added)
        if reader:
            nodes[reader.source.name].input[place] = end
        else:
            changed.ret[output] = end
        _use_function(self.iterator, changed)


def pipelines_of(graph: Any) -> list[GraphPipeline]:
    """The pipelines that iterators of a graph read."""
    from tensorflow.python.framework import ops

    assert isinstance(graph, ops.Graph)
    iterators = [op for op in graph.get_operations() if op.type in _READ]
    if not iterators:
        return []
    definition = graph.as_graph_def()
    library = {each.signature.name: each for each in definition.library.function}
    nodes = {node.name: node for node in definition.node}
    found = (_READ[op.type](op, nodes, library) for op in iterators)
    return [each for each in found if each is not None]


def _of_graph(
    iterator: Any, nodes: Mapping[str, Any], library: Mapping[str, Any]
) -> GraphPipeline | None:
    last = from_nodes(iterator.inputs[0].op.name, nodes, library)
    if last is None:
        return None
    return GraphPipeline(pipeline=_with_options(last), iterator=iterator)


def _of_function(
    iterator: Any, nodes: Mapping[str, Any], library: Mapping[str, Any]
) -> GraphPipeline | None:
    del nodes
    function = library.get(iterator.get_attr(_FACTORY).name)
    if function is None or len(function.ret) != 1:
        return None
    (end,) = function.ret.values()
    inside = {node.name: node for node in function.node_def}
    last = from_nodes(end.split(":")[0], inside, library)
    if last is None:
        return None
    return GraphPipeline(pipeline=_with_options(last), iterator=iterator, function=function)


_READ = {"MakeIterator": _of_graph, "OneShotIterator": _of_function}


def _with_options(last: Transformation) -> Pipeline:
    texts = [
        each.source.attr["serialized_options"].s for each in last.all() if each.kind == "Options"
    ]
    return Pipeline(last=last, options=merged_options(texts))


def _made_nodes(
    make: Callable[[Any], Any], before: str, taken: Mapping[str, Any]
) -> tuple[list[Any], str]:
    """Nodes of a dataset that stands in a function, and how others there name it.

    Args:
      make: makes it of the dataset before it.
      before: how that is named there.
      taken: names of the function's own nodes.
    """
    import tensorflow as tf

    scope = _PREFIX
    while any(name.startswith(scope) for name in taken):
        scope += "_"
    with tf.Graph().as_default() as graph, graph.name_scope(scope):
        place = tf.compat.v1.placeholder(tf.variant, [])
        end = make(place)
    names = {
        tensor.name: f"{op.name}:{argument.name}:0"
        for op in graph.get_operations()
        for tensor, argument in zip(op.outputs, op.op_def.output_arg, strict=True)
    }
    names[place.name] = before
    nodes = [op.node_def for op in graph.get_operations() if op is not place.op]
    for node in nodes:
        inputs = [names[each if ":" in each else f"{each}:0"] for each in node.input]
        node.ClearField("input")
        node.input.extend(inputs)
    return nodes, names[end.name]


def _use_function(iterator: Any, function: Any) -> None:
    """Gives a one-shot iterator another function, which its graph gets."""
    import tensorflow as tf

    definition = iterator.graph.as_graph_def()
    only = tf.compat.v1.GraphDef(versions=definition.versions)
    only.library.function.append(function)
    with iterator.graph.as_default():
        tf.graph_util.import_graph_def(only, name="")
    iterator._set_func_attr(_FACTORY, function.signature.name)


def _shape(shape: Any) -> Any:
    import tensorflow as tf

    return tf.TensorShape(shape)
