"""The embedding tables of a program, and what their ids are like in its first batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.core.analysis.embedding_lens.id_statistics import id_statistics
from workbench.core.analysis.embedding_lens.tables import find_tables
from workbench.core.optimizations import Optimizations
from workbench.core.toggles.toggle import Choice
from workbench.errors import RunError
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker.steps.built_part import build_part
from workbench.experiments.worker.steps.session_config import stock_config
from workbench.experiments.worker.wire.messages import SampledIds


def sample_ids(program: Program, batches: int, chosen: tuple[Choice, ...] = ()) -> SampledIds:
    """Builds a program with these choices alone and fetches the ids of a few batches.

    Only what makes the ids runs: nothing is trained. The ids of all tables are of the same batches.

    Args:
      program: what is built.
      batches: how many.
      chosen: where toggles with choices stand.

    Raises:
      RunError: the data ends before the first batch.
    """
    import tensorflow as tf

    from workbench.core.tf_graph.import_graph import graph_view

    with tf.Graph().as_default() as graph:
        built = build_part(program, "build", Optimizations(chosen=chosen))
        tables = find_tables(graph_view(graph))
        names = {name: graph.get_tensor_by_name(name) for table in tables for name in table.ids}
        got = _fetched(built, names, batches) if names else {}
    if names and not any(got.values()):
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
            if table.ids
        },
    )


def _fetched(built: Built, tensors: Mapping[str, Any], batches: int) -> dict[str, list[np.ndarray]]:
    """Values of these tensors, of each batch until the data ends; in the graph of the program."""
    import tensorflow as tf

    from workbench.core.session.prefetch_hook import make_prefetch_hook

    got: dict[str, list[np.ndarray]] = {name: [] for name in tensors}
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
