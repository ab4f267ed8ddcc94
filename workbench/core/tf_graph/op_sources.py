"""An op of a graph → the line of the user's code that made it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from workbench.own_code import is_of_a_model, is_own


def op_sources(graph: Any, names: Iterable[str]) -> list[str]:
    """Where each op was made, as "file:line function"; "" where nothing is known.

    Of its traceback the innermost line of the user's own counts; of a model that comes with this
    package, the model's. What runs is not always called as it is in the graph: of `made_as` the
    first op that the graph has counts. TensorFlow adds ops of its own before a run: those without
    any such op have no line.

    Args:
      graph: a `tf.Graph`.
      names: of ops, as they ran.
    """
    return [_source(graph, name) for name in names]


def made_as(name: str) -> Iterator[str]:
    """What an op that ran may be called in the graph that it was made in, the likeliest first.

    1. Its own name.
    2. Without its first scope, which a stage's copies have: "smart_stage/dlrm/C1/x".
    3. An op that it is inside of, the nearest first: the body of a loop runs as
       "dien/scan/while/body/_1/x", and the graph has "dien/scan/while".
    """
    copied_from = name.partition("/")[2]
    yield name
    if copied_from:
        yield copied_from
    yield from _scopes(name)
    yield from _scopes(copied_from)


def _scopes(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _source(graph: Any, name: str) -> str:
    for each in made_as(name):
        try:
            op = graph.get_operation_by_name(each)
        except (KeyError, ValueError):
            continue
        return _own_line(op)
    return ""


def _own_line(op: Any) -> str:
    for frame in reversed(list(op.traceback or ())):
        if is_own(frame.filename) or is_of_a_model(frame.filename):
            return f"{frame.filename}:{frame.lineno} {frame.name}"
    return ""
