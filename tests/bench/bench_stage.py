"""The stage against what stock TensorFlow offers, and against the bound; and what one item costs.

DLRM on an input that each batch waits for as long as the step computes: un-staged, staged, with
stock StagingArea and with tf.data.prefetch, in interleaved blocks of one run. Then the cost of one
put and take of a 40-tensor item. Prints figures with intervals, and whether they reach the goals.

    python tests/bench/bench_stage.py [--budget 120] [--rows 200000] [--threads 2] [--capacity 2]
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import statistics
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.experiments.measurement.blocks import (
    TimedSession,
    run_blocks,
    run_pilots,
    step_time_ms,
)
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.statistics import mean_interval, ratio_interval
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.tensorflow_import import import_tensorflow
from workbench.experiments.worker.wire.messages import Open
from workbench.models.data.criteo import check_criteo, generate_criteo
from workbench.models.zoo.options import DlrmOptions
from workbench.models.zoo.programs import dlrm_program

STAGED = "staged"
PEERS = ("StagingArea", "tf.data.prefetch", "tf.data.map + prefetch")
GOAL_OF_BOUND = 0.97
GOAL_PAIR_US = 30.0
ITEM_TENSORS = 40


def build_staging_area(
    options: DlrmOptions, stage: StageOptions, optimizations: Optimizations
) -> Built:
    """The parsed batch through StagingArea, its put run by as many threads as our stage has."""
    import tensorflow as tf
    from tensorflow.python.ops import data_flow_ops

    from workbench.models.zoo import dlrm

    v1 = tf.compat.v1
    parsed = dlrm.parse(dlrm.next_lines(options))
    names = list(parsed)
    area = data_flow_ops.StagingArea(
        [parsed[name].dtype for name in names],
        [parsed[name].shape for name in names],
        capacity=stage.capacity,
    )
    put = area.put([parsed[name] for name in names])
    taken = dict(zip(names, area.get(), strict=True))

    class Putting(v1.train.SessionRunHook):
        """Runs put in threads of its own until the session closes."""

        def after_create_session(self, session, coord):
            run = session.make_callable(put)

            def produce():
                while not coord.should_stop():
                    try:
                        run()
                    except (tf.errors.CancelledError, RuntimeError):
                        return

            for _ in range(stage.num_threads):
                threading.Thread(target=produce, daemon=True).start()

    built = dlrm.train(options, taken)
    # A put that waits for room holds an inter-op thread: with one per core, two puts would leave
    # none to the step on a machine of two cores, and the run would hang.
    threads = len(os.sched_getaffinity(0)) + stage.num_threads
    config = v1.ConfigProto(inter_op_parallelism_threads=threads)
    return Built(train_op=built.train_op, loss=built.loss, hooks=[Putting()], config=config)


def build_prefetch(options: DlrmOptions, depth: int, optimizations: Optimizations) -> Built:
    """The lines prefetched by tf.data, parsed in the step."""
    from workbench.models.zoo import dlrm

    lines = dlrm.next_lines(options, overlap=lambda dataset: dataset.prefetch(depth))
    return dlrm.train(options, dlrm.parse(lines))


def build_map_prefetch(options: DlrmOptions, depth: int, optimizations: Optimizations) -> Built:
    """The lines parsed and prefetched by tf.data."""
    from workbench.models.zoo import dlrm

    def overlap(dataset):
        return dataset.prefetch(1).map(dlrm.parse).prefetch(depth)

    return dlrm.train(options, dlrm.next_lines(options, overlap=overlap))


def measure_throughput(options: DlrmOptions, stage: StageOptions, budget_s: float) -> bool:
    """Prints the table of variants; returns whether the goals are reached."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    plain = dlrm_program(options)
    ours = Optimizations(stage=stage)
    peer_builds = (
        functools.partial(build_staging_area, options, stage),
        functools.partial(build_prefetch, options, stage.capacity),
        functools.partial(build_map_prefetch, options, stage.capacity),
    )
    peers = [
        (label, Program(name=label, build=build))
        for label, build in zip(PEERS, peer_builds, strict=True)
    ]
    programs = [("un-staged", plain), (STAGED, plain), *peers]
    ahead = [0, *[stage.capacity + stage.num_threads] * (1 + len(peers))]
    progress = Progress(True)
    progress.phase(f"Starting {len(programs)} child processes")
    with started_workers(programs) as workers:
        for (label, _), worker in zip(programs, workers, strict=True):
            made = ours if label == STAGED else Optimizations()
            worker.send(Open(session="main", optimizations=made))
        for worker in workers:
            worker.receive()
        sessions = [
            TimedSession(label=label, worker=worker, name="main", ahead=count)
            for (label, _), worker, count in zip(programs, workers, ahead, strict=True)
        ]
        for part in ("build_input", "build_compute"):
            workers[0].call(Open(session=part, part=part, optimizations=Optimizations()))
            sessions.append(TimedSession(label=part, worker=workers[0], name=part, ahead=2))
        pilots = run_pilots(sessions, budget_s=math.inf, progress=progress)
        plan, measured = run_blocks(sessions, pilots, budget_s=budget_s, progress=progress)
    progress.end()
    print(f"\n{plan.rounds} rounds of interleaved blocks, 95 % intervals")
    means = {label: mean_interval(found.rates) for label, found in measured.items()}
    slower = min(("build_input", "build_compute"), key=lambda part: means[part].value)
    print(
        f"T_input {1000 / means['build_input'].value:.2f} ms, "
        f"T_compute {1000 / means['build_compute'].value:.2f} ms, "
        f"bound {means[slower].value:.1f} steps/s"
    )
    shares = {
        label: ratio_interval(measured[label].rates, measured[slower].rates)
        for label, _ in programs
    }
    for label, share in shares.items():
        mean = means[label]
        print(
            f"  {label:24s} {mean.value:7.1f} steps/s ({mean.low:.1f}–{mean.high:.1f})   "
            f"{share.value:7.1%} of the bound ({share.low:.1%}–{share.high:.1%})"
        )
    passed = said(
        f"staged reaches {GOAL_OF_BOUND:.0%} of the bound", shares[STAGED].value, GOAL_OF_BOUND
    )
    for label in PEERS:
        ratio = ratio_interval(measured[STAGED].rates, measured[label].rates)
        words = (
            f"staged / {label} ({ratio.low:.3f}–{ratio.high:.3f}) is 1 or its interval reaches 1"
        )
        passed &= said(words, ratio.high, 1.0, shown=ratio.value)
    return passed


def measure_pair(runs: int = 5000, rounds: int = 12) -> bool:
    """Prints what put and take of one item cost beyond empty session runs."""
    import_tensorflow()
    import tensorflow as tf

    from workbench.core.staging import buffer

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        owner = v1.placeholder(tf.int64, [2], name="owner")
        at = buffer.Buffer(capacity=1, shared_name="bench")
        put = at.put(owner, [tf.constant(float(i)) for i in range(ITEM_TENSORS)])
        with tf.control_dependencies(at.take([tf.float32] * ITEM_TENSORS)):
            take = tf.no_op()
        resume = at.resume(owner)
        empty = tf.no_op()
        session.run(resume, {owner: [1, -1]})
        run_put = buffer.prepared(session, feeds=[owner.name], targets=[put.name])
        run_empty_put = buffer.prepared(session, feeds=[owner.name], targets=[empty.name])
        run_take, run_empty = session.make_callable(take), session.make_callable(empty)
        token = [1, 0]

        def pair():
            run_put(token)
            run_take()

        def nothing():
            run_empty_put(token)
            run_empty()

        costs, singles = [], []
        for _ in range(rounds):
            paired, bare, one = (timed(f, runs) for f in (pair, nothing, run_empty))
            costs.append((paired - bare) / 1000)
            singles.append((paired - one) / 1000)
    low, high = np.quantile(costs, [0.05, 0.95])
    cost = statistics.median(costs)
    print(
        f"\nput + take of {ITEM_TENSORS} tensors: {cost:.1f} µs ({low:.1f}–{high:.1f}) beyond the "
        f"two empty runs they come in, {statistics.median(singles):.1f} µs beyond one empty run"
    )
    goal = f"a pair costs under {GOAL_PAIR_US:.0f} µs beyond empty session runs"
    return said(goal, -cost, -GOAL_PAIR_US, shown=cost)


def timed(function, runs: int) -> float:
    """Mean time of a call, ns."""
    for _ in range(runs // 10):
        function()
    begun = time.perf_counter_ns()
    for _ in range(runs):
        function()
    return (time.perf_counter_ns() - begun) / runs


def said(goal: str, value: float, least: float, shown: float | None = None) -> bool:
    """Prints whether a goal is reached, and says so."""
    passed = value >= least
    print(f"  {'pass' if passed else 'FAIL'}  {goal}: {value if shown is None else shown:.3g}")
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of measuring")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--capacity", type=int, default=2)
    parser.add_argument("--pair-only", action="store_true")
    chosen = parser.parse_args()
    passed = True
    if not chosen.pair_only:
        path = generate_criteo(Path("build") / "bench" / "clicks.tsv", rows=chosen.rows)
        options = DlrmOptions(data=check_criteo(path))
        latency_ms = step_time_ms(dlrm_program(options), "build_compute")
        print(f"A step computes {latency_ms:.2f} ms; each batch waits as long")
        options = DlrmOptions(data=options.data, input_latency_ms=latency_ms)
        stage = StageOptions(num_threads=chosen.threads, capacity=chosen.capacity)
        passed &= measure_throughput(options, stage, chosen.budget)
    passed &= measure_pair()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
