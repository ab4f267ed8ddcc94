"""What an export of a session computes: its signatures, from tensors, names or definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from workbench.errors import OptionError

DEFAULT = "serving_default"
_SavedModel = tf.compat.v1.saved_model


def signatures_of(
    graph: tf.Graph,
    inputs: Any,
    outputs: Any,
    signatures: Mapping[str, Any] | None,
) -> dict[str, meta_graph_pb2.SignatureDef]:
    """The definitions of an export's signatures.

    Args:
      graph: of the session.
      inputs, outputs: of the one signature: by name a tensor or the name of one; a list of them or
        one alone, which have their own names then.
      signatures: by name a definition, or a pair of inputs and outputs; None means `inputs` and
        `outputs`.

    Raises:
      OptionError: nothing is given, or a tensor is not of the graph.
    """
    if signatures is None:
        if outputs is None:
            raise OptionError(
                "the model is a session, whose outputs are not known; give inputs= and outputs=, "
                "or signatures="
            )
        signatures = {DEFAULT: ({} if inputs is None else inputs, outputs)}
    elif inputs is not None or outputs is not None:
        raise OptionError("inputs and outputs are given beside signatures; expected one of both")
    if not signatures:
        raise OptionError("signatures is empty; expected one at least")
    return {name: _definition(graph, name, given) for name, given in signatures.items()}


def tensor_names(info: Any) -> Iterator[str]:
    """The names of the tensors of one input or output of a signature."""
    kind = info.WhichOneof("encoding")
    if kind == "coo_sparse":
        sparse = info.coo_sparse
        yield from (
            sparse.indices_tensor_name,
            sparse.values_tensor_name,
            sparse.dense_shape_tensor_name,
        )
    elif kind == "composite_tensor":
        for component in info.composite_tensor.components:
            yield from tensor_names(component)
    else:
        yield info.name


def renamed(info: Any, names: Mapping[str, str]) -> meta_graph_pb2.TensorInfo:
    """The same input or output, of tensors that have new names."""
    copy = meta_graph_pb2.TensorInfo()
    copy.CopyFrom(info)
    kind = info.WhichOneof("encoding")
    if kind == "coo_sparse":
        sparse = copy.coo_sparse
        for field in ("indices_tensor_name", "values_tensor_name", "dense_shape_tensor_name"):
            old = getattr(sparse, field)
            setattr(sparse, field, names.get(old, old))
    elif kind == "composite_tensor":
        components = [renamed(each, names) for each in info.composite_tensor.components]
        del copy.composite_tensor.components[:]
        copy.composite_tensor.components.extend(components)
    else:
        copy.name = names.get(info.name, info.name)
    return copy


def _definition(graph: tf.Graph, name: str, given: Any) -> meta_graph_pb2.SignatureDef:
    if isinstance(given, meta_graph_pb2.SignatureDef):
        for info in (*given.inputs.values(), *given.outputs.values()):
            for tensor in tensor_names(info):
                _tensor(graph, tensor, name)
        return given
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise OptionError(
            f"signature {name!r} is {given!r}; expected a SignatureDef, or a pair of inputs and "
            "outputs"
        )
    inputs, outputs = (_infos(graph, part, name) for part in given)
    if not outputs:
        raise OptionError(f"signature {name!r} has no outputs; expected one at least")
    return _SavedModel.build_signature_def(
        inputs, outputs, _SavedModel.signature_constants.PREDICT_METHOD_NAME
    )


def _infos(graph: tf.Graph, given: Any, signature: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        several = given if isinstance(given, (list, tuple)) else [given]
        tensors = [_tensor(graph, value, signature) for value in several]
        given = {_own_name(tensor): tensor for tensor in tensors}
    return {
        str(key): _SavedModel.build_tensor_info(_tensor(graph, value, signature))
        for key, value in given.items()
    }


def _own_name(tensor: Any) -> str:
    values = getattr(tensor, "values", tensor)
    name = values.op.name if isinstance(values, tf.Tensor) else "input"
    return re.sub(r"\W", "_", name)


def _tensor(graph: tf.Graph, value: Any, signature: str) -> Any:
    """A tensor of the graph.

    Raises:
      OptionError: the graph has none such.
    """
    if isinstance(value, str):
        try:
            return graph.get_tensor_by_name(value if ":" in value else f"{value}:0")
        except (KeyError, ValueError):
            raise OptionError(
                f"signature {signature!r}: the session's graph has no tensor {value!r}"
            ) from None
    leaves = tf.nest.flatten(value, expand_composites=True)
    if not leaves or any(getattr(leaf, "graph", None) is not graph for leaf in leaves):
        raise OptionError(
            f"signature {signature!r}: {value!r} is no tensor of the session's graph; expected one "
            "that is, or its name"
        )
    return value
