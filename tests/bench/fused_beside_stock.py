"""Fetches of a graph in sessions of one process: as it is, and fused, in turn with a plain copy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.bench.timed_blocks import block, timed
from workbench.experiments.measurement.statistics import ratio_interval

STOCK, FUSED, COPY = "stock", "fused", "copy"


def measured(
    graph: Any, step: Any, copy: Any, threads: int, seconds: float
) -> dict[str, list[float]]:
    """Seconds of a step of each, in interleaved blocks.

    Args:
      graph: with variables alone.
      step: what is fetched with and without a plan.
      copy: an op that copies what the step reads.
      threads: of each session.
      seconds: for all.
    """
    import tensorflow as tf

    import workbench as wb

    v1 = tf.compat.v1
    with graph.as_default(), contextlib.ExitStack() as stack:
        initial = v1.global_variables_initializer()

        def run(fetch: Any, fuses: bool) -> Callable[[], Any]:
            config = v1.ConfigProto(
                intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
            )
            if fuses:
                wb.apply(wb.plan_fusion(graph), config)
            session = stack.enter_context(v1.Session(graph=graph, config=config))
            session.run(initial)
            return session.make_callable(fetch)

        wanted = {STOCK: (step, False), FUSED: (step, True), COPY: (copy, False)}
        return timed({name: block(run(*each)) for name, each in wanted.items()}, seconds)


def row(name: str, found: dict[str, list[float]]) -> str:
    """A row of Markdown: times, how many times as fast the fused one is, and how many copies."""
    rates = {name: [1 / each for each in seconds] for name, seconds in found.items()}
    faster = ratio_interval(rates[FUSED], rates[STOCK], 0)
    copies = float(np.median(found[FUSED]) / np.median(found[COPY]))
    stock, fused = (1e3 * float(np.median(found[name])) for name in (STOCK, FUSED))
    ratio = f"{faster.value:.2f} ({faster.low:.2f}–{faster.high:.2f})"
    return f"| {name} | {stock:.3f} | {fused:.3f} | {ratio} | {copies:.1f} |"


HEADS = "| stock, ms | fused, ms | times as fast | copies |\n|---|---|---|---|---|"
