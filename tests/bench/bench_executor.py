"""The executors beside TensorFlow's own: cost of an op, latency, clients, schedules, tracing.

All ways take turns in one process; a figure is the median of rounds, a ratio the median of the
ratios of each round. Prints the goals beside them.

    python -m tests.bench.bench_executor [--rounds 30] [--quick] [PART …]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tests.bench import executor_graphs as graphs
from tests.bench.executor_clients import Together, clients_together
from workbench import _native
from workbench.core.executor.policy import executor_type
from workbench.core.options import CostModelOptions

v1 = tf.compat.v1
WARM_UP = 260  # TensorFlow's own executor learns what is cheap; ours learns from 10 to 60.
LEARNING = CostModelOptions(start_step=10, stop_step=60)
Call = Callable[[], Any]


def rounds_of(
    calls: Mapping[str, Call],
    rounds: int,
    repeats: int,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, list[float]]:
    """Microseconds of a call in each round by this clock, of all ways in turn."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        names = list(calls) if number % 2 else list(calls)[::-1]
        for name in names:
            call = calls[name]
            # The threads of the way before spin for a while, and this way's memory is cold.
            for _ in range(repeats // 4):
                call()
            start = clock()
            for _ in range(repeats):
                call()
            taken[name].append((clock() - start) / repeats / 1000)
    return taken


def ratio(taken: Mapping[str, Sequence[float]], name: str, to: str) -> str:
    """Median and quartiles of one way's figures over another's; of one round the figure alone."""
    each = [a / b for a, b in zip(taken[name], taken[to], strict=True)]
    if len(each) == 1:
        return f"{each[0]:.2f}"
    low, middle, high = statistics.quantiles(each, n=4)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a Markdown table."""
    print(f"\n### {title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}", flush=True)
    for row in rows:
        print_row(row)


def print_row(row: Sequence[str]) -> None:
    print(f"| {' | '.join(row)} |", flush=True)


def ways_of(case: graphs.Case, ways: Mapping[str, tuple[str, int]]) -> dict[str, Call]:
    """Warmed-up calls of a case under each executor that takes it."""
    calls: dict[str, Call] = {}
    for name, (kind, inter) in ways.items():
        with tf.Graph().as_default():
            fed, fetched = case.build()
            sess = graphs.session(kind, inter=inter, optimized=case.optimized)
            try:
                sess.run(v1.global_variables_initializer())
                run = graphs.callable_of(sess, fed, fetched)
                for _ in range(WARM_UP):
                    run(case.value)
            except tf.errors.UnimplementedError:
                continue  # SINGLE_THREADED_EXECUTOR refuses reference variables
            calls[name] = lambda run=run, value=case.value: run(value)
    return calls


def cases() -> list[graphs.Case]:
    one = np.float32(1.0)
    row = np.random.default_rng(0).integers(0, graphs.ROWS, [graphs.TABLES, 1])
    return [
        graphs.Case(name="chain", build=graphs.chain, value=one, ops=1000),
        graphs.Case(name="wide", build=graphs.wide, value=one, ops=1001),
        graphs.Case(name="empty", build=graphs.empty, value=one, ops=0),
        graphs.Case(
            name="DLRM, 1 row, reference variables",
            build=lambda: graphs.dlrm_forward(references=True),
            value=row,
            ops=0,
            optimized=True,
        ),
        graphs.Case(
            name="DLRM, 1 row, resource variables",
            build=lambda: graphs.dlrm_forward(references=False),
            value=row,
            ops=0,
            optimized=True,
        ),
    ]


def part_latency(rounds: int) -> None:
    """Goals: chain and wide at most SINGLE_THREADED_EXECUTOR and 0.8 of default, DLRM 0.7."""
    ways = {
        "default": (graphs.DEFAULT, 1),
        "default, 2 threads": (graphs.DEFAULT, 2),
        "single-threaded": (graphs.SINGLE, 1),
        "inline": (executor_type("inline", LEARNING), 1),
        "normal": (executor_type("normal", LEARNING), 1),
        "cost model, 2 threads": (executor_type("cost_model", LEARNING), 2),
    }
    rows = []
    for case in cases():
        calls = ways_of(case, ways)
        taken = rounds_of(calls, rounds, 200)
        for name in calls:
            middle = statistics.median(taken[name])
            rows.append(
                [
                    case.name,
                    name,
                    f"{middle:.1f}",
                    f"{1000 * middle / case.ops:.0f}" if case.ops else "",
                    ratio(taken, name, "default"),
                    ratio(taken, name, "single-threaded") if "single-threaded" in taken else "",
                ]
            )
    header = ("graph", "executor", "µs a call", "ns an op", "of default", "of single-threaded")
    table("One call after the other, one thread unless said", header, rows)


def part_cpu(rounds: int) -> None:
    """Goal: the normal executor takes at most 1.02 of the default's processor time.

    On one thread all of a small op is processor time, and that hardly varies beside other work.
    """
    rows = []
    for case in (each for each in cases() if each.name != "empty"):
        calls = ways_of(
            case,
            {"default": (graphs.DEFAULT, 1), "normal": (executor_type("normal", LEARNING), 1)},
        )
        taken = rounds_of(calls, rounds * 4, 20, clock=time.process_time_ns)
        for name in calls:
            middle = statistics.median(taken[name])
            rows.append([case.name, name, f"{middle:.1f}", ratio(taken, name, "default")])
    header = ("graph", "executor", "CPU µs a call", "of default")
    table("Processor time of one call after the other, one thread", header, rows)


def part_clients(rounds: int) -> None:
    """Goal: 32 clients get at least 1.3 of the default's calls, p99 not above it."""
    case = cases()[3]
    ways = {
        "default": (graphs.DEFAULT, 2),
        "inline": (executor_type("inline", LEARNING), 2),
    }
    calls = ways_of(case, ways)
    rows = []
    for clients in (1, 2, 8, 32):
        rates: dict[str, list[float]] = {name: [] for name in calls}
        slowest: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(max(3, rounds // 4)):
            for name, call in calls.items():
                run = clients_together(call, clients, seconds=1.0)
                rates[name].append(run.calls_a_second)
                slowest[name].append(run.p99_ms)
        for name in calls:
            rows.append(
                [
                    str(clients),
                    name,
                    f"{statistics.median(rates[name]):.0f}",
                    f"{statistics.median(slowest[name]):.2f}",
                    ratio(rates, name, "default"),
                    ratio(slowest, name, "default"),
                ]
            )
    header = (
        "clients",
        "executor",
        "calls a second",
        "p99 ms",
        "calls of default",
        "p99 of default",
    )
    table("DLRM on one row, reference variables, Python clients", header, rows)


def part_loops(rounds: int) -> None:
    """Goal: with a loop in the graph clients get no fewer steps than stock's, nor later ones."""
    case = graphs.Case(name="loop", build=graphs.loop, value=np.float32(1.0), ops=0)
    ways = {
        "default": (graphs.DEFAULT, 2),
        "normal": (executor_type("normal", LEARNING), 2),
        "inline": (executor_type("inline", LEARNING), 2),
    }
    calls = ways_of(case, ways)
    rows = []
    for clients, thinks_ms in ((16, 0), (16, 2), (32, 0), (32, 2)):
        runs: dict[str, list[Together]] = {name: [] for name in calls}
        for number in range(min(5, max(3, rounds // 6))):
            for name in list(calls) if number % 2 else list(calls)[::-1]:
                runs[name].append(
                    clients_together(calls[name], clients, seconds=0.4, thinks_s=thinks_ms / 1000)
                )
        rates = {name: [run.calls_a_second for run in each] for name, each in runs.items()}
        middles = {name: [run.p50_ms for run in each] for name, each in runs.items()}
        for name in calls:
            rows.append(
                [
                    str(clients),
                    str(thinks_ms),
                    name,
                    f"{statistics.median(rates[name]):.0f}",
                    f"{statistics.median(middles[name]):.2f}",
                    ratio(rates, name, "default"),
                    ratio(middles, name, "default"),
                ]
            )
    header = (
        "clients",
        "think ms",
        "executor",
        "steps a second",
        "p50 ms",
        "steps of default",
        "p50 of default",
    )
    table("A loop of 20 turns, clients that think between two steps", header, rows)


def part_schedules(rounds: int) -> None:
    """Goal: the cost model within 1.05 of the best schedule where default is over 1.15 of it."""
    rows = []
    ways = {"default": graphs.DEFAULT, "cost model": executor_type("cost_model", LEARNING)}
    for seed in range(8):
        plan = graphs.scheduled(seed)
        free = graphs.Scheduled(tuple(() for _ in plan.after), plan.best)
        calls: dict[str, Call] = {}
        for name, (kind, what) in {
            **{name: (kind, plan) for name, kind in ways.items()},
            # What two workers need for as many tasks that wait for nobody: work over cores.
            "work / cores": (ways["cost model"], free),
        }.items():
            with tf.Graph().as_default():
                _, fetched = graphs.build_scheduled(what)
                run = graphs.callable_of(graphs.session(kind, inter=2), None, fetched)
            for _ in range(LEARNING.stop_step + 2 * LEARNING.TRIAL_STEPS):
                run()
            calls[name] = run
        taken = rounds_of(calls, rounds, 5)
        rows.append([str(seed), *(ratio(taken, name, "work / cores") for name in ways)])
    table(
        "Two workers, 48 equal tasks whose best schedule leaves nobody idle: time over it",
        ("graph", *ways),
        rows,
    )


def part_tracing(rounds: int) -> None:
    """Goal: the native tracer at most 30 ns an op and 1.12 of untraced on 5,000 tiny ops."""
    calls: dict[str, Call] = {}
    native = _native.calls()
    sizes = native.workbench_traced_ops
    with tf.Graph().as_default():
        fed, fetched = graphs.chain(5_000)
        for name in ("normal", "inline"):
            run = graphs.callable_of(graphs.session(executor_type(name, LEARNING)), fed, fetched)
            for _ in range(WARM_UP):
                run(np.float32(1.0))
            calls[name] = lambda run=run: run(np.float32(1.0))
    rows = []
    for name, call in calls.items():

        def traced(call: Call = call) -> None:
            native.workbench_trace_ops(1)
            call()
            native.workbench_trace_ops(0)

        taken: dict[str, list[float]] = {"untraced": [], "traced": []}
        for _ in range(rounds * 4):
            for way, run in (("untraced", call), ("traced", traced)):
                start = time.perf_counter_ns()
                run()
                taken[way].append((time.perf_counter_ns() - start) / 1000)
        extra = [a - b for a, b in zip(taken["traced"], taken["untraced"], strict=True)]
        rows.append(
            [
                name,
                f"{statistics.median(taken['untraced']):.0f}",
                ratio(taken, "traced", "untraced"),
                f"{1000 * statistics.median(extra) / 5_000:.1f}",
                str(sizes()),
            ]
        )
        drop_events()
    header = ("executor", "µs untraced", "traced / untraced", "ns an op", "events kept")
    table("Tracing 5,000 tiny ops", header, rows)


def drop_events() -> None:
    """Takes all events out of the tracer, so that its memory is used again."""
    from workbench.core.capture.op_events import Recording

    Recording().stop()


PARTS = {
    "latency": part_latency,
    "cpu": part_cpu,
    "clients": part_clients,
    "loops": part_loops,
    "schedules": part_schedules,
    "tracing": part_tracing,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], help="what to run; all by default"
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="a few rounds: rough figures")
    given = parser.parse_args()
    unknown = sorted(set(given.parts) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; expected one of {', '.join(PARTS)}")
    _native.library()
    for name in given.parts or PARTS:
        PARTS[name](6 if given.quick else given.rounds)


if __name__ == "__main__":
    main()
