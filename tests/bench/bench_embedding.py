"""Fused embedding lookups beside stock TensorFlow, in one run.

26 features, batch 2048, combiner mean, float32. m1: one id a row. m10: 10 % of rows are empty, else
1 + Poisson(10.1) ids, 1 % of ids are -1. Ids are uniform over the table; z1 and z10 are the same by
Zipf's law. Batches lie in memory and rotate over at least 120 MB of rows, so that no row is in a
cache from the batch before. Each cell has a process of its own, where stock's
safe_embedding_lookup_sparse, V1, V2 and the grouped lookup take turns on the same tables, with the
stock graph whose lookups are fused when it is finished ("auto"), in a session of its own. The limit
is plain loops with two stages of prefetch, in huge pages, compiled for the processor at hand
(native/bench/lookup_limit.cc); a step without lookups, which takes the batch alone, is not counted
against it. Stock and auto train by stock's optimizers, fused ones by
Workbench's. With --peers PYTHON, torch's EmbeddingBag, FBGEMM and AMD's zentorch take turns too, on
the same ids in a process of that Python; `make bench-embedding` makes one where they can be
installed. With --zentf PYTHON, stock's lookups do so in a process of that Python with AMD's zentf.

With several threads, a process that has one takes turns too: what the others gain, for the grouped
lookup and for the limit; and the rates at which both read memory are printed, for where one thread
takes most of what the memory has, others gain no more than is left.

Prints for each cell the time of a step, ratios to stock with 95 % intervals, the time to the limit,
what threads gain, and executed nodes per feature (of lookup and gradient; the optimizer's own come
on top); then whether the goals are reached: 3 times fewer nodes, faster in every cell, twice as
fast with one id a row, ahead of all peers, at most 1.15 to 1.6 times the limit or 1.5 times with
training, and 0.9 times as many times one thread's speed as there are threads.

    python -m tests.bench.bench_embedding [--quick] [--cell 1e5x16xm1] [--variables resource]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.bench.embedding_batches import FEATURES, Cell, batch
from tests.bench.lookup_limit import limit, read_rates
from tests.bench.served_blocks import Served, serve
from tests.bench.timed_blocks import block, timed
from workbench.core.toggles.stock.zentf import ZENTF as ZENTF_TOGGLE
from workbench.experiments.measurement.statistics import Interval, ratio_interval

STOCK, GROUPED, AUTO = "stock", "grouped", "auto"
FUSED = ("v1", "v2", GROUPED)
OURS = (*FUSED, AUTO)
LIMIT, BATCH_ALONE = "limit", "batch"
ZENTF = "zentf"
PEERS = ("torch", "FBGEMM", "zentorch", ZENTF)
WAYS = ("forward", "SGD", "Adagrad")
CELLS = tuple(
    f"{rows}x{dim}x{kind}"
    for rows, dims in (("1e5", (16, 64, 128)), ("1e6", (16, 32, 64, 128)))
    for dim in dims
    for kind in ("m1", "m10")
)
QUICK = ("1e5x16xm1", "1e5x16xm10", "1e5x64xm1", "1e5x64xm10")
GOAL_NODES, GOAL_ANY, GOAL_ONE_ID = 3.0, 1.0, 2.0
GOAL_TRAINED_TO_LIMIT, GOAL_EACH_THREAD = 1.5, 0.9


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cell", action="append", help="only this cell, such as 1e5x16xm1")
    parser.add_argument("--quick", action="store_true", help="only four small cells")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this way")
    parser.add_argument(
        "--seconds", type=float, default=6.0, help="of measuring, each cell and way"
    )
    parser.add_argument("--variables", choices=("ref", "resource"), default="ref")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peers", help="a Python that has torch and fbgemm_gpu")
    parser.add_argument("--zentf", help="a Python that has zentf, TensorFlow and Workbench")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--serve", choices=(GROUPED, STOCK), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.child and chosen.serve:
        serve_one(Cell.named(chosen.child), chosen)
        return
    if chosen.child:
        print(json.dumps(measured(Cell.named(chosen.child), chosen)))
        return
    cells = chosen.cell or (QUICK if chosen.quick else CELLS)
    reached = True
    if chosen.threads > 1:
        one, all_of_them = (rate / 1e9 for rate in read_rates([1, chosen.threads]))
        print(
            f"The memory is read at {one:.1f} GB/s by one thread, at {all_of_them:.1f} by "
            f"{chosen.threads}: {all_of_them / one:.2f}×"
        )
    for way in chosen.way or WAYS:
        print(f"\n{way}, {chosen.variables} variables, {chosen.threads} threads")
        heads = "".join(f" {name:>22}" for name in OURS)
        threads = f"   grouped by {chosen.threads} threads to one" if chosen.threads > 1 else ""
        peers = "   grouped beside peers" if chosen.peers or chosen.zentf else ""
        print(f"  {'cell':<14} {'stock ms':>9}{heads}   grouped to limit{threads}   nodes{peers}")
        for cell in cells:
            if way != "forward" and cell.startswith("1e6") and not cell.startswith("1e6x16"):
                continue
            found = in_child(cell, way, chosen)
            reached &= show(cell, way, found, chosen.threads)
    print("\nAll goals are reached." if reached else "\nGoals are MISSED where marked.")


def in_child(cell: str, way: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Measures a cell in a process of its own, so that no memory of another one is left."""
    command = [*_child(cell), "--way", way, "--variables", chosen.variables]
    command += ["--seconds", str(chosen.seconds), "--threads", str(chosen.threads)]
    command += ["--peers", chosen.peers] if chosen.peers else []
    command += ["--zentf", chosen.zentf] if chosen.zentf else []
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{cell}, {way}: exit status {done.returncode}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _child(cell: str) -> list[str]:
    return [sys.executable, "-m", "tests.bench.bench_embedding", "--child", cell]


def show(cell: str, way: str, found: dict[str, Any], threads: int) -> bool:
    """Prints the row of a cell; whether it reaches the goals."""
    threads_goal = GOAL_EACH_THREAD * threads
    goal = GOAL_ONE_ID if Cell.named(cell).one_id else GOAL_ANY
    stock = found["seconds"][STOCK]
    line, reached = f"  {cell:<14} {1000 * float(np.median(stock)):9.2f}", True
    for name in OURS:
        ratio = _times_as_fast(found["seconds"][name], stock)
        missed = ratio.value < goal or (goal == GOAL_ANY and ratio.value <= goal)
        line += f" {_said(ratio, missed=missed):>22}"
        reached &= not missed
    limit_goal = _limit_goal(Cell.named(cell), way)
    to_limit = _to_limit(found["seconds"])
    line += f" {_said(to_limit, missed=to_limit.value > limit_goal):>18}"
    reached &= to_limit.value <= limit_goal
    if _alone(GROUPED) in found["seconds"]:
        ours, limits = _gain(found["seconds"], GROUPED), _gain(found["seconds"], LIMIT)
        missed = ours.value < threads_goal
        line += f"   {_said(ours, missed=missed):>18}, limit {limits.value:.2f}"
        reached &= not missed
    nodes = found["nodes"]
    line += f"   {nodes[STOCK]:.1f}"
    for name in OURS:
        fewer = nodes[STOCK] / nodes[name]
        line += f", {nodes[name]:.1f} ({fewer:.1f}× fewer{'' if fewer >= GOAL_NODES else '!'})"
        reached &= fewer >= GOAL_NODES
    for name in PEERS:
        if name in found["seconds"]:
            ratio = _times_as_fast(found["seconds"][GROUPED], found["seconds"][name])
            missed = ratio.value <= 1
            line += f"   {name} {_said(ratio, missed=missed)}"
            reached &= not missed
    print(line, flush=True)
    for name, problem in found["problems"].items():
        print(f"    {name} was left out: {problem}")
    return reached


def _times_as_fast(seconds: Sequence[float], others: Sequence[float]) -> Interval:
    """How many times as fast as others something is, both in seconds of a step."""
    return ratio_interval([1 / s for s in seconds], [1 / s for s in others], 0)


def _said(ratio: Interval, *, missed: bool) -> str:
    return f"{ratio.value:.2f}× ({ratio.low:.2f}–{ratio.high:.2f}){'!' if missed else ' '}"


def _limit_goal(cell: Cell, way: str) -> float:
    """How many times as long as the limit the grouped lookup may take."""
    if way != "forward":
        return GOAL_TRAINED_TO_LIMIT
    if cell.one_id:
        return 1.6 if cell.dim <= 16 else 1.4 if cell.dim <= 64 else 1.2
    return 1.15 if cell.dim >= 64 else 1.25


def _to_limit(seconds: dict[str, list[float]]) -> Interval:
    """How many times as long as the limit the grouped lookup takes."""
    return _times_as_fast(seconds[LIMIT], _looked_up(seconds, GROUPED))


def _gain(seconds: dict[str, list[float]], name: str) -> Interval:
    """How many times as fast as one thread all of them are, the batch not counted."""
    return _times_as_fast(_looked_up(seconds, name), _looked_up(seconds, _alone(name)))


def _looked_up(seconds: dict[str, list[float]], name: str) -> list[float]:
    """What the lookups of a step take: of ours the batch is no part, the limit has none."""
    if name in (LIMIT, _alone(LIMIT)):
        return seconds[name]
    batch_alone = BATCH_ALONE if name == GROUPED else _alone(BATCH_ALONE)
    batch_s = float(np.median(seconds[batch_alone]))
    return [s - batch_s for s in seconds[name]]


def _alone(name: str) -> str:
    """A variant's name where one thread runs it."""
    return f"{name}, one thread"


def measured(cell: Cell, chosen: argparse.Namespace) -> dict[str, Any]:
    """Seconds of a step of each variant in interleaved blocks, and executed nodes per feature."""
    with contextlib.ExitStack() as stack:
        blocks, nodes = _prepared(stack, cell, chosen, (STOCK, *FUSED))
        problems: dict[str, str] = {}
        own = [*_child(chosen.child)[1:], "--way", *chosen.way, "--variables", chosen.variables]
        if chosen.threads > 1:
            alone = [sys.executable, *own, "--serve", GROUPED, "--threads", "1"]
            served = Served(alone)
            stack.callback(served.end)
            blocks |= {_alone(name): run for name, run in served.blocks.items()}
        if chosen.peers:
            peers = [chosen.peers, "-m", "tests.bench.embedding_peers"]
            served = Served([*peers, chosen.child, *chosen.way, str(chosen.threads)])
            stack.callback(served.end)
            blocks |= served.blocks
            problems = served.problems
        if chosen.zentf:
            stocks = [chosen.zentf, *own, "--serve", STOCK, "--threads", str(chosen.threads)]
            served = Served(stocks, ZENTF_TOGGLE.environment("on"))
            stack.callback(served.end)
            blocks[ZENTF] = served.blocks[STOCK]
        return {
            "nodes": {name: found / FEATURES for name, found in nodes.items()},
            "seconds": timed(blocks, chosen.seconds, spinning=PEERS),
            "problems": problems,
        }


def serve_one(cell: Cell, chosen: argparse.Namespace) -> None:
    """Serves one kind of lookup, the batch alone and the limit to another process."""
    with contextlib.ExitStack() as stack:
        serve(_prepared(stack, cell, chosen, (chosen.serve,))[0])


def _prepared(
    stack: contextlib.ExitStack, cell: Cell, chosen: argparse.Namespace, names: Sequence[str]
) -> tuple[dict[str, Callable[[int], float]], dict[str, int]]:
    """Blocks of the variants, of the batch alone and of the limit; executed nodes of a step."""
    import tensorflow as tf

    import workbench as wb

    tf.compat.v1.disable_v2_behavior()
    # The first device of a process decides for all its sessions, and tf.data makes one.
    tf.config.threading.set_intra_op_parallelism_threads(chosen.threads)
    v1 = tf.compat.v1
    (way,) = chosen.way
    features = features_of(tf, cell)
    tables = _tables(tf, cell, resource=chosen.variables == "resource")
    steps = {name: _step(tf, name, features, tables, way, cell) for name in names}
    config = v1.ConfigProto(
        intra_op_parallelism_threads=chosen.threads, inter_op_parallelism_threads=chosen.threads
    )
    session = stack.enter_context(v1.Session(config=config))
    session.run(v1.global_variables_initializer())
    session.run(v1.get_collection("batches"))
    runs = {name: session.make_callable(op) for name, op in steps.items()}
    if STOCK in names:
        runs[AUTO] = stack.enter_context(_auto(tf, steps[STOCK], config))
    # Through the data once, which is in memory then.
    for _ in range(cell.batches()):
        runs[names[0]]()
        if AUTO in runs:
            runs[AUTO]()
    # Else faults of pages are measured, not lookups.
    wb.keep_freed_memory()
    nodes = {name: _nodes(tf, session, op) for name, op in steps.items()}
    if STOCK in names:
        with _auto(tf, steps[STOCK], config, counted=True) as count:
            nodes[AUTO] = count()
    batches = [batch(seed, cell) for seed in range(cell.batches())]
    taken = [part for each in features for part in (each.values, each.indices)]
    runs[BATCH_ALONE] = session.make_callable(tf.group(*taken))
    runs[LIMIT] = limit(batches, cell.tables, cell.rows, cell.dim, cell.size, chosen.threads, way)
    return {name: block(run) for name, run in runs.items()}, nodes


@contextlib.contextmanager
def _auto(tf: Any, stock: Any, config: Any, *, counted: bool = False) -> Iterator[Any]:
    """A run of stock's step in a session that fuses its lookups; or what counts its nodes."""
    import workbench as wb

    v1 = tf.compat.v1
    fused = v1.ConfigProto()
    fused.CopyFrom(config)
    wb.apply(wb.plan_fusion(v1.get_default_graph()), fused)
    with v1.Session(config=fused) as session:
        session.run(v1.global_variables_initializer())
        session.run(v1.get_collection("batches"))
        if counted:
            yield lambda: _nodes(tf, session, stock)
        else:
            yield session.make_callable(stock)


def features_of(tf: Any, cell: Cell) -> list[Any]:
    """SparseTensors of the next batch."""

    def batches() -> Any:
        for seed in range(cell.batches()):
            yield tuple(batch(seed, cell))

    feature = (tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, 2], tf.int64))
    spec = (feature,) * FEATURES
    dataset = tf.data.Dataset.from_generator(batches, output_signature=spec).cache().repeat()
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    plain.autotune.enabled = False
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset.with_options(plain))
    tf.compat.v1.add_to_collection("batches", iterator.initializer)
    shape = tf.constant([cell.size, 64], tf.int64)
    return [tf.SparseTensor(at, values, shape) for values, at in iterator.get_next()]


def _tables(tf: Any, cell: Cell, *, resource: bool) -> list[Any]:
    v1 = tf.compat.v1
    made = [
        v1.get_variable(
            f"table_{i}",
            [cell.rows, cell.dim],
            initializer=v1.random_uniform_initializer(-0.05, 0.05, seed=i),
            use_resource=resource,
        )
        for i in range(cell.tables)
    ]
    return [made[i % len(made)] for i in range(FEATURES)]


def _step(tf: Any, name: str, features: list[Any], tables: list[Any], way: str, cell: Cell) -> Any:
    from workbench.ops.lookup.fused import fused_safe_embedding_lookup_sparse
    from workbench.ops.lookup.grouped import grouped_embedding_lookup

    v1 = tf.compat.v1
    found = grouped_embedding_lookup(tables, features) if name == GROUPED else []
    for table, ids in zip(tables, features, strict=True):
        if name == GROUPED:
            break
        if name == STOCK:
            found.append(v1.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean"))
        else:
            found.append(
                fused_safe_embedding_lookup_sparse(table, ids, combiner="mean", fusion_version=name)
            )
    # Takes all and does nothing: arrays of what is fetched would take time that is no lookup's.
    with v1.name_scope("taken"):
        taken = tf.raw_ops.Assert(condition=tf.constant(True), data=found)
    if way == "forward":
        return taken
    # The gradient is given: what a loss costs is no part of the lookup.
    upstream = [tf.constant(1e-3, tf.float32, [cell.size, cell.dim])] * FEATURES
    different = different_tables(tables)
    gradients = tf.gradients(found, different, grad_ys=upstream)
    train = _optimizer(v1, way, name != STOCK).apply_gradients(
        zip(gradients, different, strict=True)
    )
    return tf.group(taken, train)


def different_tables(tables: list[Any]) -> list[Any]:
    found: list[Any] = []
    for table in tables:
        if not any(table is each for each in found):
            found.append(table)
    return found


_OPTIMIZERS: dict[tuple[str, bool], Any] = {}


def _optimizer(v1: Any, way: str, fused: bool) -> Any:
    """Stock's, and Workbench's for fused lookups; V1 and V2 share the slots."""
    from workbench.ops.embedding_variable import optimizers

    home = optimizers if fused else v1.train
    if (way, fused) not in _OPTIMIZERS:
        _OPTIMIZERS[way, fused] = (
            home.GradientDescentOptimizer(0.01) if way == "SGD" else home.AdagradOptimizer(0.01)
        )
    return _OPTIMIZERS[way, fused]


def _nodes(tf: Any, session: Any, op: Any) -> int:
    """Nodes that one run executes for lookups and gradients: all but the optimizer's own."""
    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    found = tf.compat.v1.RunMetadata()
    session.run(op, options=options, run_metadata=found)
    return sum(
        1
        for device in found.step_stats.dev_stats
        for node in device.node_stats
        if not node.node_name.startswith(("_", "taken", "GradientDescent", "Adagrad"))
        and "/Adagrad" not in node.node_name
    )


if __name__ == "__main__":
    main()
