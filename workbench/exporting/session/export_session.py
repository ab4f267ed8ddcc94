"""Exports what a session computes and holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from workbench.exporting.lowering.lower import PREFIX
from workbench.exporting.phases import Phases
from workbench.exporting.session.new_graph import new_graph
from workbench.exporting.session.part import part_of
from workbench.exporting.session.values import read_values
from workbench.exporting.session.write import write_model
from workbench.number_words import counted, size


@dataclasses.dataclass(frozen=True, kw_only=True)
class SessionExport:
    """What became of a session's model.

    Attributes:
      counts: how many nodes of each of Workbench's types were replaced.
      kept: the types of those that stay.
      rows: how many rows each EmbeddingVariable has.
      stage_inputs: inputs that stand for what a stage handed out.
    """

    counts: Mapping[str, int]
    kept: tuple[str, ...]
    rows: Mapping[str, int]
    stage_inputs: tuple[str, ...]


def export_session(
    session: Any,
    signatures: Mapping[str, Any],
    folder: Path,
    say: Phases,
    *,
    keep_ops: bool,
    assets: Mapping[str, str],
) -> SessionExport:
    """Writes the model of a session into an empty folder.

    Args:
      session: a `tf.compat.v1.Session`, or a monitored one.
      signatures: definitions by name.
      folder: where.
      say: the phases.
      keep_ops: whether Workbench's ops stay.
      assets: the file of each constant that names one elsewhere.

    Raises:
      OptionError, UnsupportedError: see `part_of`, `read_values` and `new_graph`.
    """
    graph = session.graph
    definition = graph.as_graph_def()
    part = part_of(graph, definition, signatures)
    say(f"reading {counted(len(part.variables) + len(part.embeddings), 'variable')}")
    values = read_values(session, graph, part, default_rows=not keep_ops)
    new = new_graph(graph, definition, part, values, keep_ops=keep_ops)
    total = sum(value.nbytes for value in new.variables.values())
    say(f"writing {counted(len(new.variables), 'variable')}, {size(total)}")
    named = graph.get_collection(tf.compat.v1.GraphKeys.ASSET_FILEPATHS)
    files = {tensor.op.name: None for tensor in named}
    write_model(new, part, values, {**files, **assets}, folder)
    bodies = [new.definition.node, *(each.node_def for each in new.definition.library.function)]
    ops = {node.op for body in bodies for node in body if node.op.startswith(PREFIX)}
    return SessionExport(
        counts=new.counts,
        kept=tuple(sorted(ops)),
        rows={name: len(each.keys) for name, each in values.embeddings.items()},
        stage_inputs=part.stage_inputs,
    )
