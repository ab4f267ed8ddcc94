"""Stale lookups beside exact ones, with a parameter server that is 2 ms further away.

A parameter server holds DLRM's tables, and each request between it and a worker, whoever makes it,
goes through a proxy that delivers it 2 ms later; with `--late worker` only those of the worker do,
and the ids that the parameter server asks for are there at once. Both settings are sessions of one
process over one graph; their blocks of steps take turns. Once as it is, all on these cores, and
once with a wait in each step between loss and gradients, in which a worker with an accelerator
would leave its cores free. Beside the steps/s stand the cores that worker, parameter server and
proxy had, and the losses of a fresh run of each. A batch is small, lookups are grouped, batch
normalizations and the dot interaction fused and transfers packed, lest the cores be busy all of the
exact step: nothing can be hidden then.

    python -m tests.bench.bench_stale [--workers 1] [--batch-size 32] [--delay-ms 2]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.bench.far_cluster import (
    FarTask,
    add_cluster,
    built_dlrm,
    initialized,
    results,
    say_late,
    say_result,
)
from tests.bench.process_cpu import OTHERS, CpuUse
from workbench.experiments.measurement.blocks import block_order, block_rate
from workbench.experiments.measurement.statistics import ratio_interval

GOAL = 1.3
# DeepRec, docs/docs_en/Async-Embedding-Stage.md: steps/s with 8 parameter servers and 30 workers.
PUBLISHED = (1008.6968, 1197.932)
_WARM = 20
_MODULE = "tests.bench.bench_stale"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1)
    add_cluster(parser)
    parser.set_defaults(batch_size=32, fused="grouped")
    parser.add_argument("--stale", type=int, default=1, help="stale_lookups of the second setting")
    parser.add_argument("--wait-ms", type=float, default=6.0, help="of the second measurement")
    parser.add_argument("--pack", type=int, choices=(0, 1), default=1, help="transfers, in both")
    parser.add_argument(
        "--norms", type=int, choices=(0, 1), default=1, help="fused batch normalizations, in both"
    )
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--steps", type=int, default=60, help="of a block")
    parser.add_argument("--losses", type=int, default=200, help="steps whose losses are shown")
    chosen = parser.parse_args(arguments)
    if chosen.task:
        run_task(chosen, FarTask.from_json(chosen.task))
        return
    print(
        f"DLRM, batch {chosen.batch_size}, {chosen.tables} tables on 1 ps, "
        f"weights on the {chosen.dense}, lookups {chosen.fused or 'stock'}, "
        f"transfers {'packed' if chosen.pack else 'one by one'}, "
        f"batch normalizations {'fused' if chosen.of('batch normalization') else 'stock'}, "
        f"{chosen.delay_ms:g} ms a request{say_late(chosen)}, {chosen.workers} worker(s), "
        f"{os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    for wait_ms in dict.fromkeys((0.0, chosen.wait_ms)):
        chosen.wait_ms = wait_ms
        print(f"with {wait_ms:g} ms of waiting in each step" if wait_ms else "as it is")
        for worker, found in enumerate(results(_MODULE, chosen)):
            show(f"  worker {worker}", found, chosen.stale)
    print(f"DeepRec publishes {PUBLISHED[1] / PUBLISHED[0]:.2f}× for Async-Embedding-Stage, 8 ps")


def show(name: str, found: dict, stale: int) -> None:
    """The ratio with its interval, who had the cores, and both loss curves."""
    exact, ahead = found["rates"]
    ratio = ratio_interval(ahead, exact)
    said = "reached" if ratio.value >= GOAL else "missed"
    print(
        f"{name}: exact {np.median(exact):.1f} steps/s, {stale} stale {np.median(ahead):.1f}: "
        f"{ratio.value:.2f}× ({ratio.low:.2f}–{ratio.high:.2f}); goal {GOAL}×: {said}"
    )
    for setting, rates, used in zip(
        ("exact", "stale"), found["rates"], found["cores"], strict=True
    ):
        cores = ", ".join(f"{who} {share:.2f}" for who, share in used.items())
        busy = sum(share for who, share in used.items() if who != OTHERS)
        least_ms = 1e3 * busy / float(np.median(rates)) / (os.cpu_count() or 1)
        print(f"    cores in use, {setting}: {cores}: without any wait {least_ms:.1f} ms a step")
    if "losses" in found:
        parts = np.array_split(np.asarray(found["losses"]), 5, axis=1)
        for i, part in enumerate(parts):
            exact_loss, stale_loss = part.mean(axis=1)
            print(f"    loss, part {i + 1} of 5: exact {exact_loss:.4f}, stale {stale_loss:.4f}")


def run_task(chosen: argparse.Namespace, task: FarTask) -> None:
    """The parameter server, or a worker, in a process of its own."""
    target = task.serve().target
    found: dict = _measured(target, chosen, task)
    if chosen.workers == 1 and chosen.losses:
        found["losses"] = [_losses(target, chosen, task, steps) for steps in (0, chosen.stale)]
    say_result(found)


def _measured(target: str, chosen: argparse.Namespace, task: FarTask) -> dict[str, Any]:
    """Steps/s of each block, and cores in use: of the exact session, and of the stale one."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph, contextlib.ExitStack() as stack:
        built = built_dlrm(graph, chosen, task, chosen.wait_ms / 1e3)
        sessions = [
            stack.enter_context(_session(target, graph, built, chosen, steps, first=not i))
            for i, steps in enumerate((0, chosen.stale))
        ]
        rates: list[list[float]] = [[], []]
        processes = {"worker": [os.getpid()], **task.processes}
        used = [CpuUse(processes), CpuUse(processes)]
        for number in range(chosen.rounds):
            for place in block_order(number, 2):
                ends = [time.perf_counter_ns()]
                with used[place].counted():
                    for _ in range(chosen.steps + _WARM):
                        sessions[place].run(built.train_op)
                        ends.append(time.perf_counter_ns())
                rates[place].append(block_rate(np.asarray(ends), _WARM))
        return {"rates": rates, "cores": [each.cores for each in used]}


def _losses(target: str, chosen: argparse.Namespace, task: FarTask, steps: int) -> list[float]:
    """The losses of the first steps from the same weights, on the same data."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        built = built_dlrm(graph, chosen, task, chosen.wait_ms / 1e3)
        with _session(target, graph, built, chosen, steps, first=True) as session:
            runs = (session.run([built.loss, built.train_op]) for _ in range(chosen.losses))
            return [float(loss) for loss, _ in runs]


@contextlib.contextmanager
def _session(
    target: str, graph: Any, built: Any, chosen: argparse.Namespace, steps: int, *, first: bool
) -> Iterator[Any]:
    """A session with its stages running; the first of them sets the variables."""
    from workbench.core.fusion.plan import plan_fusion
    from workbench.core.options import SmartStageOptions
    from workbench.core.session.pack_transfers import pack_transfers
    from workbench.core.session.prefetch_hook import prefetching
    from workbench.core.session.rewrite import apply
    from workbench.core.smart_stage import prepare_config
    from workbench.experiments.worker.steps.session_config import stock_config

    options = SmartStageOptions(stale_lookups=steps, capacity=2)
    targets = [built.train_op, built.loss]
    config = stock_config(built)
    if chosen.norms:
        fusion = plan_fusion(graph)
        assert fusion.of("batch normalization"), fusion.describe()
        config = apply(fusion, config)
    config, plan = prepare_config(graph, config, options, targets=targets)
    if chosen.pack:
        pack_transfers(config)
    assert any(stage.stale_lookups for stage in plan.stages) == bool(steps), plan.describe()
    with initialized(target, graph, config, first=first) as session, prefetching(session):
        yield session


if __name__ == "__main__":
    main()
