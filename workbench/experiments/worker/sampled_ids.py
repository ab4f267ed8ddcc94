"""The embedding tables of a program, and what their ids are like in its first batches."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.core.analysis.embedding_lens.id_statistics import id_statistics
from workbench.core.analysis.embedding_lens.tables import EmbeddingTable, find_tables
from workbench.core.optimizations import Optimizations
from workbench.core.toggles.toggle import Choice
from workbench.errors import RunError
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker.steps.built_part import build_part
from workbench.experiments.worker.steps.session_config import stock_config
from workbench.experiments.worker.wire.messages import SampledIds


def sample_ids(program: AnyProgram, batches: int, chosen: tuple[Choice, ...] = ()) -> SampledIds:
    """Builds a program with these choices alone and fetches the ids of a few batches.

    Only what makes the ids runs: nothing is trained, but for the step with which a Keras model is
    built. The ids of all tables are of the same batches.

    Args:
      program: what is built.
      batches: how many.
      chosen: where toggles with choices stand.

    Raises:
      RunError: the data ends before the first batch.
    """
    wish = Optimizations(chosen=chosen)
    if isinstance(program, FunctionProgram):
        tables, got = _of_function(program, wish, batches)
    else:
        tables, got = _of_graph(program, wish, batches)
    if got and not any(got.values()):
        raise RunError("the data ended before the first batch, so there are no ids to sample")
    return SampledIds(
        tables=tables,
        ids={
            table.name: id_statistics(
                [
                    np.concatenate([values.ravel() for values in of_batch])
                    for of_batch in zip(*(got[name] for name in table.ids), strict=True)
                ]
            )
            for table in tables
            if got and table.ids
        },
    )


# By name of a tensor its value in each batch.
_Values = dict[str, list[np.ndarray]]


def _of_graph(
    program: Program, wish: Optimizations, batches: int
) -> tuple[tuple[EmbeddingTable, ...], _Values]:
    """The tables of a session's graph, and their ids."""
    import tensorflow as tf

    from workbench.core.tf_graph.import_graph import graph_view

    with tf.Graph().as_default() as graph:
        built = build_part(program, "build", wish)
        tables = find_tables(graph_view(graph))
        tensors = {name: graph.get_tensor_by_name(name) for name in _names(tables)}
        return tables, _fetched(built, tensors, batches) if tensors else {}


def _of_function(
    program: FunctionProgram, wish: Optimizations, batches: int
) -> tuple[tuple[EmbeddingTable, ...], _Values]:
    """The tables that a step's function captures, and their ids."""
    import tensorflow as tf

    from workbench.core.tf_graph.import_graph import graph_view
    from workbench.core.tf_graph.rebuilt_function import function_of_tensors, without_calls
    from workbench.experiments.worker.steps.function_step import training_step

    # Held until the end: with the step go the variables that its function refers to.
    step = training_step(program, wish)
    function = without_calls(step.concrete())
    tables = find_tables(graph_view(function))
    names = _names(tables)
    # What is looked up at each call, as under a distribution strategy, is not known here.
    if not names or function.graph.deferred_external_captures:
        return tables, {}
    fetch = function_of_tensors(function, names)
    elements = itertools.islice(step.dataset, batches)
    fetched = [fetch(*tf.nest.flatten(each, expand_composites=True)) for each in elements]
    return tables, {name: [each[i].numpy() for each in fetched] for i, name in enumerate(names)}


def _names(tables: Sequence[EmbeddingTable]) -> list[str]:
    return list(dict.fromkeys(name for table in tables for name in table.ids))


def _fetched(built: Built, tensors: Mapping[str, Any], batches: int) -> _Values:
    """Values of these tensors, of each batch until the data ends; in the graph of the program."""
    import tensorflow as tf

    from workbench.core.session.prefetch_hook import make_prefetch_hook

    got: _Values = {name: [] for name in tensors}
    hooks = [*built.hooks, make_prefetch_hook()]
    session_of = tf.compat.v1.train.MonitoredTrainingSession
    with session_of(hooks=hooks, config=stock_config(built)) as session:
        try:
            for _ in range(batches):
                for name, values in session.run(tensors).items():
                    got[name].append(np.asarray(values))
        except tf.errors.OutOfRangeError:
            pass
    return got
