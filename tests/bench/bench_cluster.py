"""SmartStage on a worker whose parameter server is 2 ms further away, against its predicted bound.

A parameter server holds DLRM's variables; each request between it and the worker goes through a
proxy that delivers it 2 ms later; with `--late worker` only the worker's do. A step can take no
less than its slower side takes alone, and no less than the CPU time of both sides on these cores.
Both sides are measured on the very graph that the plan makes, in a session whose buffer holds a
whole block: first its stage fills the buffer and no step runs, then steps take what is ready and
the stage rests. Their blocks take turns with those of the un-staged session and of the one with a
smart stage. On a local file, and on an input that each batch waits for as long as the step side
takes.

Beside the steps/s stand the cores that worker, parameter server and proxy had: they share them
here, and have them to themselves on machines of their own.

    python -m tests.bench.bench_cluster [--batch-size 64] [--delay-ms 2] [--trace 1]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
from tests.bench.process_cpu import CpuUse
from workbench.experiments.measurement.blocks import block_order, block_rate
from workbench.experiments.measurement.statistics import ratio_interval

GOAL = 0.97
PLAIN, STAGED = "un-staged", "smart stage"
STAGE_SIDE, STEP_SIDE, CPU = "stage side", "step side", "CPU time of both"
_MODULE = "tests.bench.bench_cluster"
_WARM = 20
# Items that a stage may make before its runs are counted.
_UNCOUNTED = 16
_PATIENCE_S = 120.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_cluster(parser)
    parser.set_defaults(dense="ps")
    parser.add_argument("--capacity", type=int, default=2, help="items in the stage's buffer")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60, help="of a block")
    parser.add_argument("--trace", type=int, default=0, help="1: show where traced steps wait")
    parser.add_argument("--latency-ms", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=1, choices=(1,), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.task:
        run_task(chosen, FarTask.from_json(chosen.task))
        return
    print(
        f"DLRM, batch {chosen.batch_size}, {chosen.tables} tables on 1 ps, weights on the "
        f"{chosen.dense}, lookups {chosen.fused or 'stock'}, "
        f"{chosen.delay_ms:g} ms a request{say_late(chosen)}, "
        f"1 worker, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before"
    )
    (found,) = results(_MODULE, chosen)
    show("local file", found)
    chosen.latency_ms = round(1000 / float(np.median(found["rates"][STEP_SIDE])), 1)
    (found,) = results(_MODULE, chosen)
    show(f"each batch waits {chosen.latency_ms:g} ms", found)


def show(kind: str, found: dict[str, Any]) -> None:
    """Steps/s, the bound and what is reached of it, and who had the cores."""
    rates = {name: tuple(each) for name, each in found["rates"].items()}
    print(f"\n{kind}; {len(rates[STAGED])} rounds, median ms of a step, and cores in use")
    for name, each in rates.items():
        cores = ", ".join(f"{who} {used:.2f}" for who, used in found["cores"].get(name, {}).items())
        print(f"  {name:12s} {_ms(each):8.2f}  {cores}")
    gain = ratio_interval(rates[STAGED], rates[PLAIN])
    print(f"  {STAGED} / {PLAIN} {gain.value:.2f}× ({gain.low:.2f}–{gain.high:.2f})")
    slower = max(STAGE_SIDE, STEP_SIDE, key=lambda side: _ms(rates[side]))
    for bound in (slower, *([CPU] if _ms(rates[CPU]) > _ms(rates[slower]) else [])):
        share = ratio_interval(rates[STAGED], rates[bound])
        said = "reached" if share.value >= GOAL else "MISSED"
        print(
            f"  {share.value:.3f} ({share.low:.3f}–{share.high:.3f}) of what the {bound} allows; "
            f"goal {GOAL}: {said}"
        )
    if "report" in found:
        print(found["report"])


def _ms(rates: Sequence[float]) -> float:
    return 1000 / float(np.median(rates))


def run_task(chosen: argparse.Namespace, task: FarTask) -> None:
    """The parameter server, or the worker, in a process of its own."""
    target = task.serve().target

    import tensorflow as tf

    with tf.Graph().as_default() as graph, contextlib.ExitStack() as stack:
        built = built_dlrm(graph, chosen, task, input_latency_ms=chosen.latency_ms)
        plain, _ = stack.enter_context(_session(target, graph, built, 0))
        staged, _ = stack.enter_context(_session(target, graph, built, chosen.capacity))
        block = chosen.steps + _WARM
        parts, stages = stack.enter_context(_session(target, graph, built, block + _UNCOUNTED))
        gates = stack.enter_context(_gated(stages))
        timed: dict[str, Callable[[], list[int]]] = {
            PLAIN: lambda: _step_ends(plain, built, block),
            STAGED: lambda: _step_ends(staged, built, block),
            STAGE_SIDE: lambda: _item_ends(gates, block),
            STEP_SIDE: lambda: _step_ends(parts, built, block),
        }
        found = _measured(timed, chosen.rounds, {"worker": [os.getpid()], **task.processes})
        if chosen.trace:
            found["report"] = _report(staged, built)
    say_result(found)


def _measured(
    timed: dict[str, Callable[[], list[int]]], rounds: int, processes: dict[str, list[int]]
) -> dict[str, Any]:
    """Steps/s of each block of each setting, and the cores that processes had in them."""
    rates: dict[str, list[float]] = {name: [] for name in [*timed, CPU]}
    used = {name: CpuUse(processes) for name in timed}
    # What the stage side has made, the step side takes.
    turns = ((PLAIN,), (STAGED,), (STAGE_SIDE, STEP_SIDE))
    cores = len(os.sched_getaffinity(0))
    for number in range(rounds):
        cpu_s = {}
        for name in (name for place in block_order(number, len(turns)) for name in turns[place]):
            with used[name].counted():
                ends = timed[name]()
            rates[name].append(block_rate(np.asarray(ends), _WARM))
            cpu_s[name] = used[name].last_s / (len(ends) - 1)
        rates[CPU].append(cores / (cpu_s[STAGE_SIDE] + cpu_s[STEP_SIDE]))
    return {"rates": rates, "cores": {name: each.cores for name, each in used.items()}}


def _step_ends(session: Any, built: Any, steps: int) -> list[int]:
    ends = [time.perf_counter_ns()]
    for _ in range(steps):
        session.run(built.train_op)
        ends.append(time.perf_counter_ns())
    return ends


@contextlib.contextmanager
def _session(
    target: str, graph: Any, built: Any, capacity: int
) -> Iterator[tuple[Any, Sequence[Any]]]:
    """A session with a smart stage of `capacity` items, and its stages; un-staged where that is 0.

    That is the first one of the graph, which sets the variables.
    """
    from workbench.core.options import SmartStageOptions
    from workbench.core.session.prefetch_hook import prefetching
    from workbench.core.smart_stage import prepare_config
    from workbench.experiments.worker.steps.session_config import stock_config

    config = stock_config(built)
    if capacity:
        options = SmartStageOptions(capacity=capacity)
        targets = [built.train_op, built.loss]
        config, plan = prepare_config(graph, config, options, targets=targets)
        assert plan.stages, plan.describe()
    with (
        initialized(target, graph, config, first=not capacity) as session,
        prefetching(session) as stages,
    ):
        yield session, stages


def _item_ends(gates: Sequence[Gate], items: int) -> list[int]:
    """Lets each stage make `items`; returns the begin, and when the last stage has made each."""
    begun = time.time_ns()
    for gate in gates:
        gate.let(items)
    return [begun, *[gate.ends() for gate in gates][-1]]


@contextlib.contextmanager
def _gated(stages: Sequence[Any]) -> Iterator[list[Gate]]:
    """A gate behind each stage of a session, which have made little before."""
    gates = [Gate() for _ in stages]
    try:
        for stage, gate in zip(stages, gates, strict=True):
            stage.sink = gate
        for gate in gates:
            gate.ends()
        yield gates
    finally:
        for stage, gate in zip(stages, gates, strict=True):
            stage.sink = None
            gate.let(float("inf"))


class Gate:
    """A stage's sink that lets its one producer make some items, and then holds it."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._left: float = 0
        self._held = False
        self._changed = threading.Condition()

    def __call__(self, record: Any) -> None:
        """Holds the producer, which calls it after each item, while no more are asked for."""
        with self._changed:
            self._ends.append(record.end_ns)
            self._left -= 1
            self._held = self._left <= 0
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._left > 0)

    def let(self, count: float) -> None:
        """Lets the producer make `count` items."""
        with self._changed:
            self._ends, self._left, self._held = [], count, False
            self._changed.notify_all()

    def ends(self) -> list[int]:
        """When each of these was made, once all are."""
        with self._changed:
            held = self._changed.wait_for(lambda: self._held, _PATIENCE_S)
            assert held, f"a stage lacks room, or stands still: {len(self._ends)} items"
            return self._ends


def _report(session: Any, built: Any) -> str:
    """Where the time of traced steps goes, and what travels."""
    from workbench.core.analysis.cluster_report import cluster_report
    from workbench.core.capture.session_capture import capture_steps
    from workbench.viz.outlets import text_of

    trace = capture_steps(session, built.train_op, 30, title=STAGED, step_stats=True)
    return text_of(cluster_report(trace))


if __name__ == "__main__":
    main()
