"""What tracing costs a step, and what it takes to make, save, check and export a large trace.

Prints three parts: traced over untraced steps of the six models, un-staged and staged (`models`);
tracers on 5,000 tiny ops (`ops`); a trace of a million events (`events`).

    python -m tests.bench.bench_trace [models] [ops] [events] [--model dlrm] [--rounds 8]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.bench.trace_inflation import inflations, table_lines
from tests.builders.traces import big_trace
from workbench import _native
from workbench.core.capture.op_events import Recording, op_columns
from workbench.core.trace.builder import StepRecord, build_trace
from workbench.core.trace.meta import TraceMeta
from workbench.core.trace.metrics import step_metrics
from workbench.core.trace.trace import load_trace
from workbench.models import MODELS

v1 = tf.compat.v1
NODES = 5_000
CHAINS = 8


def best_of(times: int, job: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        job()
        taken.append(time.perf_counter() - start)
    return min(taken)


def tiny_ops() -> tf.Operation:
    """Chains of additions of scalars, NODES in all."""
    ends = []
    for _ in range(CHAINS):
        x = v1.placeholder_with_default(1.0, [])
        for _ in range(NODES // CHAINS):
            x = x + x
        ends.append(x.op)
    return tf.group(*ends)


def session_of_tiny_ops(executor: str) -> tuple[v1.Session, tf.Operation]:
    """A session that runs them as they are, with nothing optimized away."""
    config = v1.ConfigProto(use_per_session_threads=True)
    config.experimental.executor_type = executor
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    with tf.Graph().as_default() as graph:
        return v1.Session(config=config, graph=graph), tiny_ops()


def ways_to_trace() -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """(tracer, a step without it, a step under it)."""
    session, op = session_of_tiny_ops("")
    full = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    software = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)
    for name, options in (("stock, full trace", full), ("stock, step stats", software)):
        yield (
            name,
            lambda: session.run(op),
            lambda options=options: session.run(op, None, options, v1.RunMetadata()),
        )
    own, own_op = session_of_tiny_ops("WORKBENCH_NORMAL")
    yield "executor's own", lambda: own.run(own_op), lambda: own.run(own_op)


def cost_of_tracing(blocks: int, steps: int) -> None:
    """Prints how much slower each tracer makes a step: medians of blocks that take turns."""
    ways = list(ways_to_trace())
    taken: dict[tuple[str, bool], list[float]] = {}
    for block in range(blocks + 1):
        for name, plain, traced in ways:
            for under, step in ((False, plain), (True, traced))[:: 1 if block % 2 else -1]:
                recording = Recording() if under and name.startswith("executor") else None
                step()
                start = time.perf_counter()
                for _ in range(steps):
                    step()
                if block:  # the first warms up
                    taken.setdefault((name, under), []).append(
                        (time.perf_counter() - start) / steps
                    )
                if recording:
                    recording.abandon()
    for name, _, _ in ways:
        plain, traced = (statistics.median(taken[name, under]) for under in (False, True))
        print(
            f"{name:<18} untraced {plain * 1e3:6.2f} ms, traced {traced * 1e3:6.2f} ms: "
            f"{traced / plain:5.2f} ×, {(traced - plain) / NODES * 1e9:6.0f} ns an op"
        )


def events_to_trace(events: int) -> None:
    """Prints what it takes to make a Trace of what the executor recorded, drained and checked."""
    session, op = session_of_tiny_ops("WORKBENCH_NORMAL")
    for _ in range(5):
        session.run(op)
    recording = Recording()
    client, thread = threading.get_ident(), threading.get_native_id()
    steps = []
    for number in range(-(-events // NODES)):
        start_ns = time.time_ns()
        session.run(op)
        end_ns = time.time_ns()
        steps.append(
            StepRecord(
                number=number, client=client, start_ns=start_ns, end_ns=end_ns, thread_id=thread
            )
        )
    begin = time.perf_counter()
    seen = recording.stop()
    drained = time.perf_counter()
    runs = np.array([(thread, step.start_ns, step.end_ns) for step in steps], np.int64)
    trace = build_trace(steps, [], {}, TraceMeta(), op_columns(seen, runs))
    trace.self_check()
    made = time.perf_counter()
    print(
        f"{len(trace.events):,} events → Trace {made - begin:6.2f} s, "
        f"of it {drained - begin:.2f} s drained"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--model", action="append", choices=list(MODELS), help="only this model")
    parser.add_argument("--rounds", type=int, default=8, help="traced blocks of each variant")
    parser.add_argument("--steps", type=int, default=24, help="steps of a traced block")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=11)
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; expected one of {', '.join(PARTS)}")
    for name in options.parts or PARTS:
        PARTS[name](options)


def part_models(options: argparse.Namespace) -> None:
    """Traced over untraced steps of the six models."""
    models, home = options.model or list(MODELS), Path("data/bench")
    found = inflations(models, home, rounds=options.rounds, steps=options.steps)
    for line in table_lines(found):
        print(line, flush=True)


def part_ops(options: argparse.Namespace) -> None:
    """Each tracer on tiny ops."""
    _native.library()
    print(f"A step of {NODES:,} tiny ops")
    cost_of_tracing(options.blocks, steps=10)


def part_events(options: argparse.Namespace) -> None:
    """What a large trace takes."""
    for _ in range(options.repeats):
        events_to_trace(options.events)
    trace = big_trace(options.events)
    memory = sum(table.memory_usage(deep=True).sum() for table in trace.tables().values())
    per_million = 1e6 / len(trace.events)
    print(f"{len(trace.events):,} events, {len(trace.steps()):,} steps")
    print(f"memory      {memory / 1e6:6.1f} MB   {memory * per_million / 1e6:.1f} MB a million")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.parquet")
        save = best_of(options.repeats, lambda: trace.save(path))
        size = path.stat().st_size
        print(f"disk        {size / 1e6:6.1f} MB   {size * per_million / 1e6:.1f} MB a million")
        for name, seconds in (
            ("save", save),
            ("load", best_of(options.repeats, lambda: load_trace(path))),
            ("self check", best_of(options.repeats, trace.self_check)),
            ("metrics", best_of(1, lambda: step_metrics(trace))),
            ("to_chrome", best_of(1, lambda: trace.to_chrome(Path(folder, "trace.json")))),
        ):
            print(f"{name:<11} {seconds:6.2f} s")


PARTS = {"models": part_models, "ops": part_ops, "events": part_events}

if __name__ == "__main__":
    main()
