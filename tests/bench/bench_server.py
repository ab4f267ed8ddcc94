"""Executor policies on a server beside the server's own executor, and beside a direct session.

A server of this process runs 200 and 2,000 ops in a chain and side by side. All ways take turns; a
figure is the median of the rounds, a ratio the median of the ratios of each round with quartiles.
The last column is the inline policy on the server beside the sum of what it is made of: a run of
one op on the same server, and the graph in a direct session under inline. A row is printed when it
is measured.

With --cluster, DLRM trains a row at a time on a parameter server and two workers instead. Their
processes start anew for each measurement, and there are as many rounds as the budget allows.

    python -m tests.bench.bench_server [--rounds 10] [--cluster [--budget 210]]
"""

from __future__ import annotations

import argparse
import faulthandler
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

import workbench as wb
from tests.bench.bench_executor import print_row, ratio, rounds_of, table

v1 = tf.compat.v1
WARM_UP, REPEATS = 200, 300


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--cluster", action="store_true", help="DLRM on three processes instead")
    parser.add_argument(
        "--budget", type=float, default=210.0, help="seconds for all clusters (default 210)"
    )
    chosen = parser.parse_args(arguments)
    # A crash of the native library says where, not just an exit status.
    faulthandler.enable()
    if chosen.cluster:
        from tests.bench import server_cluster

        rows = server_cluster.rows(chosen.rounds, chosen.budget)
        table("DLRM, a row a step, 1 parameter server and 2 workers", server_cluster.HEADER, rows)
        return
    server = v1.train.Server.create_local_server()
    header = ("graph", "stock, server", "direct inline", "one op, server", "inline, server")
    table("Runs of a session on a server, µs", (*header, "of stock", "of its parts"), ())
    for ops in (200, 2000):
        for shape in (chain, wide):
            print_row(row(server.target, shape, ops, chosen.rounds))


def chain(ops: int) -> Any:
    """A variable to which a number is added again and again."""
    x = variable()
    for _ in range(ops):
        x = x + 1.0
    return x


def wide(ops: int) -> Any:
    """Sums of a variable side by side, and their sum."""
    x = variable()
    return tf.add_n([x + float(i) for i in range(ops // 2)])


def one_op(ops: int) -> Any:
    return tf.identity(variable())


def variable() -> Any:
    return v1.get_variable("v", [10], initializer=v1.zeros_initializer(), use_resource=False)


def row(target: str, shape: Callable[[int], Any], ops: int, rounds: int) -> list[str]:
    """The row of a graph."""
    inline = wb.executor_options("inline", config=as_built())
    sessions: list[v1.Session] = []
    calls = {
        "stock": call(shape, ops, target, as_built(), sessions),
        "direct": call(shape, ops, "", inline, sessions),
        "fixed": call(one_op, ops, target, inline, sessions),
        "inline": call(shape, ops, target, inline, sessions),
    }
    taken = rounds_of(calls, rounds, REPEATS)
    taken["parts"] = [a + b for a, b in zip(taken["direct"], taken["fixed"], strict=True)]
    for each in sessions:
        each.close()
    times = [f"{statistics.median(taken[name]):.0f}" for name in calls]
    return [
        f"{shape.__name__}, {ops} ops",
        *times,
        ratio(taken, "inline", "stock"),
        ratio(taken, "inline", "parts"),
    ]


def as_built() -> v1.ConfigProto:
    """A config under which the graph that is built is the graph that runs."""
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def call(
    build: Callable[[int], Any],
    ops: int,
    target: str,
    config: v1.ConfigProto,
    sessions: list[v1.Session],
) -> Callable[[], Any]:
    """A warmed-up run of a graph that fetches nothing."""
    with tf.Graph().as_default():
        last = build(ops)
        session = v1.Session(target, config=config)
        sessions.append(session)
        session.run(v1.global_variables_initializer())
        once: Callable[[], Any] = session.make_callable(last.op)

    def run() -> None:
        try:
            once()
        except tf.errors.AbortedError:
            # One run in 35,000 on stock servers, see docs/cluster.md.
            once()

    for _ in range(WARM_UP):
        run()
    return run


if __name__ == "__main__":
    main()
