"""The file of a SavedModel: Workbench's ops in its functions become calls of stock functions."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from workbench.core.tf_graph.saved_model_file import BINARY, TEXT, read_saved_model
from workbench.errors import UnsupportedError, first_line
from workbench.exporting.lowering.library import Library
from workbench.exporting.lowering.lower import PREFIX, Lowering

_FINGERPRINT = "fingerprint.pb"
# How TensorFlow calls an object that has children alone.
_NOTHING = "_generic_user_object"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lowered:
    """What became of a SavedModel's nodes.

    Attributes:
      counts: how many nodes of each of Workbench's types were replaced.
      left_out: names of the functions that were left out, each with the reason.
    """

    counts: Mapping[str, int]
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)


def write_saved_model(folder: Path, saved: Any) -> None:
    """Puts another content into the file of a SavedModel, which is a message then."""
    (folder / BINARY).write_bytes(saved.SerializeToString(deterministic=True))
    (folder / TEXT).unlink(missing_ok=True)
    _write_fingerprint(folder)


def own_ops(meta: Any) -> set[str]:
    """The types of Workbench's ops in a meta graph."""
    graph = meta.graph_def
    bodies = [graph.node, *(function.node_def for function in graph.library.function)]
    return {node.op for nodes in bodies for node in nodes if node.op.startswith(PREFIX)}


def is_of_objects(meta: Any) -> bool:
    """Whether TensorFlow 2 wrote a meta graph: functions and objects, no session's graph."""
    return bool(meta.object_graph_def.nodes)


def lower_saved_model(folder: Path) -> Lowered:
    """Replaces Workbench's ops in the file of a SavedModel of TensorFlow 2, in place.

    Functions that no signature calls are left out, where they have no stock form, as those that
    train.

    Raises:
      UnsupportedError: what a signature needs has no stock form.
    """
    saved = read_saved_model(folder)
    counts: dict[str, int] = {}
    left_out: dict[str, str] = {}
    for meta in saved.meta_graphs:
        if own_ops(meta):
            lowering, dropped = _lower(meta)
            left_out |= dropped
            for op, count in lowering.counts.items():
                counts[op] = counts.get(op, 0) + count
    if counts or left_out:
        write_saved_model(folder, saved)
    return Lowered(counts=counts, left_out=left_out)


def _lower(meta: Any) -> tuple[Lowering, dict[str, str]]:
    graph = meta.graph_def
    library = Library(graph.library.function)
    lowering = Lowering(list(library.functions))
    served = library.called_by(graph.node)
    lowered: dict[str, Any] = {}
    refused: dict[str, UnsupportedError] = {}
    for name in library.with_own_ops():
        try:
            lowered[name] = library.lowered(name, lowering)
        except UnsupportedError as error:
            if name in served:
                raise
            refused[name] = error
    dropped: dict[str, UnsupportedError] = {}
    for name, function in library.functions.items():
        called = library.called_by(function.node_def)
        reasons = [refused[need] for need in (name, *sorted(called)) if need in refused]
        if reasons:
            dropped[name] = reasons[0]
    if dropped.keys() & served:
        raise next(dropped[name] for name in sorted(served) if name in dropped)
    nodes = lowering.nodes(graph.node, "the model", _unknown)
    kept = [lowered.get(name, library.functions[name]) for name in library.functions]
    kept = [function for function in kept if function.signature.name not in dropped]
    functions = [*kept, *lowering.functions.all()]
    gradients = [each for each in graph.library.gradient if each.gradient_func not in dropped]
    registered = [
        each for each in graph.library.registered_gradients if each.gradient_func not in dropped
    ]
    labels = _drop_objects(meta.object_graph_def, dropped)
    _set(graph.node, nodes)
    _set(graph.library.function, functions)
    _set(graph.library.gradient, gradients)
    _set(graph.library.registered_gradients, registered)
    stripped = meta.meta_info_def.stripped_op_list.op
    _set(stripped, [op for op in stripped if not op.name.startswith(PREFIX)])
    return lowering, labels


def _drop_objects(objects: Any, dropped: Mapping[str, UnsupportedError]) -> dict[str, str]:
    """Takes functions from the objects that have them; returns their names there, and why."""
    names = {}
    for node in objects.nodes:
        names.update({child.node_id: child.local_name for child in node.children})
    labels = {}
    for number, node in enumerate(objects.nodes):
        if node.bare_concrete_function.concrete_function_name in dropped:
            # Its number stays taken, by an object without content.
            node.user_object.identifier = _NOTHING
            node.user_object.version.producer = node.user_object.version.min_consumer = 1
        held = list(node.function.concrete_functions)
        stay = [name for name in held if name not in dropped]
        if stay != held:
            node.function.concrete_functions[:] = stay
            reasons = [first_line(dropped[name]) for name in held if name in dropped]
            labels[names.get(number, "") or held[0]] = reasons[0]
    for name in dropped.keys() & objects.concrete_functions.keys():
        del objects.concrete_functions[name]
    return labels


def _set(field: Any, values: list[Any]) -> None:
    """Makes copies of messages the content of a repeated field, from which they may come."""
    copies = [type(value).FromString(value.SerializeToString()) for value in values]
    del field[:]
    field.extend(copies)


def _unknown(text: str) -> tf.TensorShape:
    del text
    return tf.TensorShape(None)


def _write_fingerprint(folder: Path) -> None:
    """Writes the fingerprint anew, which TensorFlow makes of the file; without one it loads too."""
    if not (folder / _FINGERPRINT).exists():
        return
    (folder / _FINGERPRINT).unlink()
    with contextlib.suppress(ImportError, ValueError, RuntimeError):
        from tensorflow.python.saved_model import fingerprinting_utils

        fingerprinting_utils.write_fingerprint(str(folder))
