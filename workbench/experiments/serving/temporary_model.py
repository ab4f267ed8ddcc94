"""A concrete function, or a graph with feeds and fetches, as a temporary SavedModel."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import OptionError, first_line
from workbench.experiments.serving.served_model import DEFAULT_SIGNATURE

_METHOD = "tensorflow/serving/predict"


def name_of(model: Any) -> str:
    """What tables call a function, the name that its author gave; "graph" of a graph."""
    return str(getattr(getattr(model, "graph", None), "name", "") or "graph")


def of_function(function: Any) -> tempfile.TemporaryDirectory[str]:
    """A folder with a concrete function's SavedModel, which goes when the value does.

    Raises:
      OptionError: it is no concrete function, or cannot be saved.
    """
    import tensorflow as tf

    if not isinstance(function, tf.types.experimental.ConcreteFunction):
        has_many = hasattr(function, "get_concrete_function")
        advice = "call its get_concrete_function(…) and give what that returns; " * has_many
        raise OptionError(
            f"model is a {type(function).__name__}; {advice}expected the folder of a SavedModel, a "
            "concrete function, or a tf.Graph with feeds and fetches"
        )
    folder = _folder()
    try:
        module = tf.Module()
        # A SavedModel keeps the variables that a tracked object holds.
        module.variables_of_function = list(function.graph.variables)
        module.function = function
        tf.saved_model.save(module, path_in(folder), signatures={DEFAULT_SIGNATURE: function})
    except (ValueError, AssertionError, TypeError, RuntimeError) as error:
        raise OptionError(
            f"the function {name_of(function)!r} cannot be saved: {first_line(error)}"
        ) from error
    return folder


def of_graph(
    graph: Any,
    feeds: Mapping[str, Any] | None,
    fetches: Mapping[str, Any] | None,
    session: Any,
) -> tempfile.TemporaryDirectory[str]:
    """A folder with a graph's SavedModel, which goes when the value does.

    Raises:
      OptionError: feeds or fetches are missing, or are no tensors of the graph; the graph is
        finalized; or the session is another graph's.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    if not feeds or not fetches:
        raise OptionError("a graph needs feeds and fetches: dicts of tensors by name")
    if graph.finalized:
        raise OptionError("the graph is finalized, so that no saver can be added; give another")
    if session is not None and session.graph is not graph:
        raise OptionError("session runs another graph than model; give that of model")
    folder = _folder()
    with graph.as_default():
        inputs, outputs = _tensors(graph, feeds, "feeds"), _tensors(graph, fetches, "fetches")
        fed = {id(tensor) for tensor in inputs.values()}
        # No session fetches what it is fed, unless an op stands between.
        outputs = {
            name: tf.identity(tensor) if id(tensor) in fed else tensor
            for name, tensor in outputs.items()
        }
        if session is not None:
            _save(session, inputs, outputs, path_in(folder))
        else:
            with v1.Session(graph=graph) as own:
                own.run(v1.global_variables_initializer())
                own.run(v1.tables_initializer())
                _save(own, inputs, outputs, path_in(folder))
    return folder


def _save(session: Any, inputs: dict[str, Any], outputs: dict[str, Any], path: str) -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    ends = [
        {name: v1.saved_model.build_tensor_info(tensor) for name, tensor in tensors.items()}
        for tensors in (inputs, outputs)
    ]
    builder = v1.saved_model.Builder(path)
    builder.add_meta_graph_and_variables(
        session,
        [v1.saved_model.tag_constants.SERVING],
        signature_def_map={DEFAULT_SIGNATURE: v1.saved_model.build_signature_def(*ends, _METHOD)},
        main_op=v1.tables_initializer(),
        strip_default_attrs=True,
    )
    builder.save()


def _tensors(graph: Any, given: Mapping[str, Any], which: str) -> dict[str, Any]:
    tensors = {}
    for name, tensor in given.items():
        if isinstance(tensor, str):
            try:
                tensor = graph.get_tensor_by_name(tensor if ":" in tensor else f"{tensor}:0")
            except (KeyError, ValueError):
                raise OptionError(f"{which} names {tensor!r}, which the graph has not") from None
        if getattr(tensor, "graph", None) is not graph:
            raise OptionError(f"{which}[{name!r}] is {tensor!r}; expected a tensor of the graph")
        tensors[name] = tensor
    return tensors


def path_in(folder: tempfile.TemporaryDirectory[str]) -> str:
    """The SavedModel in a folder: a builder of version 1 wants a folder that is not there yet."""
    return str(Path(folder.name) / "1")


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="workbench-served-")
