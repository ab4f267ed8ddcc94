"""A part of a program, built in the default graph."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError, UnsupportedError
from workbench.experiments.program.program import DEFAULT_GRAPH_SEED, Built, Program
from workbench.experiments.program.refusals import refusals_named


def build_part(program: Program, part: str, optimizations: Optimizations) -> Built:
    """Builds a part of a program in the graph that is the default one.

    Raises:
      OptionError: it returns something else than `wb.Built`, or lacks what a toggle changes.
    """
    import tensorflow as tf

    from workbench.ops.lookup.fusion import fused_embeddings

    v1 = tf.compat.v1
    # What the program gives no seed to begins alike in every process.
    random.seed(DEFAULT_GRAPH_SEED)
    np.random.seed(DEFAULT_GRAPH_SEED)
    v1.set_random_seed(DEFAULT_GRAPH_SEED)
    with fused_embeddings(optimizations.built_fusion):
        built = _require_built(getattr(program, part)(optimizations), program, part)
    v1.train.get_or_create_global_step()
    _rewrite(program, part, optimizations)
    return built


def _rewrite(program: Program, part: str, optimizations: Optimizations) -> None:
    """Changes the graph as toggles say; only the step has to have what they change."""
    import tensorflow as tf

    graph = tf.compat.v1.get_default_graph()
    others = contextlib.suppress(UnsupportedError)
    for each in optimizations.switched:
        with refusals_named(program.name, each.label) if part == "build" else others:
            each.toggle.rewrite(each.value, graph)


def _require_built(built: Any, program: Program, part: str) -> Built:
    if not isinstance(built, Built):
        raise OptionError(
            f"Program {program.name!r}: {part} returned {type(built).__name__}; "
            "expected wb.Built(train_op=…)"
        )
    return built
