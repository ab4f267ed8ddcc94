"""Fetches of a graph in sessions of one process: as it is, and fused, in turn with a plain copy.

What the benches of single layers have in common; they differ in the graph.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.bench.timed_blocks import block, timed
from workbench.experiments.measurement.statistics import ratio_interval

STOCK, FUSED, COPY = "stock", "fused", "copy"


def run(
    described: str,
    arguments: Sequence[str] | None,
    *,
    sizes: str,
    shapes: Sequence[str],
    built: Callable[[tuple[int, ...]], tuple[Any, Any, Any]],
) -> None:
    """Measures each shape, and prints a row of Markdown for it.

    Args:
      described: what the bench is, in its first line.
      arguments: of the command line.
      sizes: what the numbers of a shape are.
      shapes: such as "512x512".
      built: of a shape the graph, with variables alone; what is fetched; and an op that copies what
        that reads.
    """
    parser = argparse.ArgumentParser(description=described.splitlines()[0])
    parser.add_argument("--shape", action="append", help=f"{sizes}, such as {shapes[0]}")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each shape")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    print(f"{chosen.threads} threads")
    print(f"| {sizes} | stock, ms | fused, ms | times as fast | copies |")
    print("|---|---|---|---|---|", flush=True)
    for shape in chosen.shape or shapes:
        made = built(tuple(map(int, shape.split("x"))))
        found = _measured(*made, chosen.threads, chosen.seconds)
        print(_row(shape.replace("x", " × "), found), flush=True)


def _measured(
    graph: Any, step: Any, copy: Any, threads: int, seconds: float
) -> dict[str, list[float]]:
    """Seconds of a step of each, in interleaved blocks."""
    import tensorflow as tf

    import workbench as wb

    v1 = tf.compat.v1
    with graph.as_default(), contextlib.ExitStack() as stack:
        initial = v1.global_variables_initializer()

        def runs(fetch: Any, fuses: bool) -> Callable[[], Any]:
            config = v1.ConfigProto(
                intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
            )
            if fuses:
                wb.apply(wb.plan_fusion(graph), config)
            session = stack.enter_context(v1.Session(graph=graph, config=config))
            session.run(initial)
            return session.make_callable(fetch)

        wanted = {STOCK: (step, False), FUSED: (step, True), COPY: (copy, False)}
        return timed({name: block(runs(*each)) for name, each in wanted.items()}, seconds)


def _row(name: str, found: dict[str, list[float]]) -> str:
    """Times, how many times as fast the fused one is, and how many copies it takes."""
    rates = {name: [1 / each for each in seconds] for name, seconds in found.items()}
    faster = ratio_interval(rates[FUSED], rates[STOCK], 0)
    copies = float(np.median(found[FUSED]) / np.median(found[COPY]))
    stock, fused = (1e3 * float(np.median(found[name])) for name in (STOCK, FUSED))
    ratio = f"{faster.value:.2f} ({faster.low:.2f}–{faster.high:.2f})"
    return f"| {name} | {stock:.3f} | {fused:.3f} | {ratio} | {copies:.1f} |"
