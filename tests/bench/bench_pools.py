"""A heavy stage beside a step of matrix products: on threads of its own, and on the step's.

The step is a chain of products that reads one matrix from the stage; the stage makes it by such a
chain too, some shorter, so that it is busy most of the time and the step never waits for it. All
arms have the same number of intra-op threads, in child processes and interleaved blocks:

- own: the stage has some of the threads to itself, the session the others.
- shared: the session has all of them, and the stage runs on them too.

Beside each, the step on the session's threads with a matrix that lies ready. Prints how long a step
takes, and what the stage leaves of the speed of the step alone: of a median step, and of all, among
them the few in which the system has both on one core for a while.

    python -m tests.bench.bench_pools [--budget 120] [--products 12] [--staged 8] [--size 384]
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import os
import sys
from collections.abc import Sequence

import cloudpickle

from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions, ThreadPoolOptions
from workbench.experiments.measurement.blocks import TimedSession, run_blocks, run_pilots
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import ratio_interval
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import Open

GOAL = 0.97
OWN, SHARED = "own", "shared"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arm:
    """One program: its session's intra-op threads, and those of the stage's own pool.

    Attributes:
      threads: of the session.
      stage_threads: of the stage's own; 0 for the session's.
      staged: whether the step's input is made by a stage, or lies ready.
    """

    threads: int
    stage_threads: int = 0
    staged: bool = False


def build(arm: Arm, products: int, staged: int, size: int, optimizations: Optimizations) -> Built:
    """The step of an arm."""
    import tensorflow as tf

    import workbench as wb

    v1 = tf.compat.v1
    # A product with it keeps numbers as they are; a variable, so that nothing is folded.
    weights = v1.get_variable("weights", initializer=tf.eye(size))

    def chain(matrix, length):
        for _ in range(length):
            matrix = tf.matmul(matrix, weights)
        return matrix

    ready = v1.get_variable("ready", initializer=tf.random.stateless_uniform([size, size], [0, 1]))
    config = v1.ConfigProto(intra_op_parallelism_threads=arm.threads)
    pool = ThreadPoolOptions(inter_op_threads_num=1, intra_op_threads_num=arm.stage_threads)
    wb.add_stage_pools(config, [pool])
    read = tf.identity(ready)
    hooks = []
    if arm.staged:
        read = wb.staged(
            chain(read, staged), StageOptions(capacity=2, use_stage_subgraph_thread_pool=True)
        )
        hooks.append(wb.make_prefetch_hook())
    return Built(train_op=chain(read, products).op, hooks=hooks, config=config)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of blocks")
    parser.add_argument("--products", type=int, default=12, help="matrix products of a step")
    parser.add_argument("--staged", type=int, default=8, help="matrix products of the stage")
    parser.add_argument("--size", type=int, default=384, help="rows of the matrices")
    chosen = parser.parse_args(arguments)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    # Else the sessions of a process have as many intra-op threads as its first one asked for.
    os.environ["TF_OVERRIDE_GLOBAL_THREADPOOL"] = "1"
    cores = len(os.sched_getaffinity(0))
    own = max(1, cores // 2)
    left = max(1, cores - own)
    arms = {
        f"{OWN}, compute alone": Arm(threads=left),
        OWN: Arm(threads=left, stage_threads=own, staged=True),
        f"{SHARED}, compute alone": Arm(threads=left + own),
        SHARED: Arm(threads=left + own, staged=True),
    }
    sizes = (chosen.products, chosen.staged, chosen.size)
    programs = [
        (label, Program(name=label, build=functools.partial(build, arm, *sizes)))
        for label, arm in arms.items()
    ]
    progress = Progress(True)
    with started_workers(programs) as workers:
        for worker in workers:
            worker.call(Open(session="main", optimizations=Optimizations()))
        sessions = [
            TimedSession(label=label, worker=worker, name="main", ahead=3 * arm.staged)
            for (label, arm), worker in zip(arms.items(), workers, strict=True)
        ]
        pilots = run_pilots(sessions, budget_s=math.inf, progress=progress)
        plan, found = run_blocks(sessions, pilots, budget_s=chosen.budget, progress=progress)
    progress.end()
    print(f"{cores} cores, {left + own} intra-op threads, {plan.rounds} rounds; median ms a step")
    for label, arm in arms.items():
        threads = f"session {arm.threads}, stage {arm.stage_threads or 'none'}"
        print(f"  {label:22s} {threads:24s} {found[label].step_ns_median / 1e6:8.2f}")
    for kind in (OWN, SHARED):
        alone = found[f"{kind}, compute alone"]
        kept = ratio_interval(found[kind].rates, alone.rates)
        median = alone.step_ns_median / found[kind].step_ns_median
        print(
            f"  {kind}: a median step {median:.3f}, all steps {kept.value:.3f} ({kept.low:.3f}–"
            f"{kept.high:.3f}) of the speed of compute alone"
            + (f"; the goal is {GOAL}" if kind == OWN else "")
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
