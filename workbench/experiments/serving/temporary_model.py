"""A concrete function, or a graph with feeds and fetches, as a temporary SavedModel."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import OptionError


def name_of(model: Any) -> str:
    """What tables call a function, the name that its author gave; "graph" of a graph."""
    return str(getattr(getattr(model, "graph", None), "name", "") or "graph")


def of_function(function: Any) -> tempfile.TemporaryDirectory[str]:
    """A folder with a concrete function's SavedModel, which goes when the value does.

    Raises:
      OptionError, UnsupportedError: it is no concrete function, or cannot be saved.
    """
    import tensorflow as tf

    if not isinstance(function, tf.types.experimental.ConcreteFunction):
        has_many = hasattr(function, "get_concrete_function")
        advice = "call its get_concrete_function(…) and give what that returns; " * has_many
        raise OptionError(
            f"model is a {type(function).__name__}; {advice}expected the folder of a SavedModel, a "
            "concrete function, or a tf.Graph with feeds and fetches"
        )
    from workbench.exporting.objects import save_object

    folder = _folder()
    save_object(function, Path(path_in(folder)), inputs=None, signatures=None)
    return folder


def of_graph(
    graph: Any,
    feeds: Mapping[str, Any] | None,
    fetches: Mapping[str, Any] | None,
    session: Any,
) -> tempfile.TemporaryDirectory[str]:
    """A folder with a graph's SavedModel, which goes when the value does.

    The graph stays as it is. The SavedModel has what fetches need of it.

    Raises:
      OptionError: feeds or fetches are missing, or are no tensors of the graph; or the session is
        another graph's.
      UnsupportedError: fetches need the training's input, or Python code.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    if not feeds or not fetches:
        raise OptionError("a graph needs feeds and fetches: dicts of tensors by name")
    if session is not None and session.graph is not graph:
        raise OptionError("session runs another graph than model; give that of model")
    if session is not None:
        return _exported(session, feeds, fetches)
    with v1.Session(graph=graph) as own:
        # No op is added to the graph, which may be finalized.
        own.run([each.initializer for each in graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)])
        own.run(graph.get_collection(v1.GraphKeys.TABLE_INITIALIZERS))
        return _exported(own, feeds, fetches)


def _exported(
    session: Any, feeds: Mapping[str, Any], fetches: Mapping[str, Any]
) -> tempfile.TemporaryDirectory[str]:
    from workbench.exporting.export import export

    folder = _folder()
    export(
        session,
        path_in(folder),
        inputs=feeds,
        outputs=fetches,
        keep_ops=True,
        progress=lambda _: None,
    )
    return folder


def path_in(folder: tempfile.TemporaryDirectory[str]) -> str:
    """The SavedModel in a folder: what writes it wants a folder that is not there yet."""
    return str(Path(folder.name) / "1")


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="workbench-served-")
