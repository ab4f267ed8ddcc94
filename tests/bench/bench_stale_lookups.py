"""Stale lookups beside exact ones, with a parameter server that is 2 ms further away.

A parameter server holds DLRM's tables, and each worker reaches it through a proxy that delivers
what the worker sends 2 ms later. Both settings are sessions of one process over one graph; their
blocks of steps take turns. Once as it is, all on these cores, and once with a wait in each step
between loss and gradients, in which a worker with an accelerator would leave its cores free. Beside
the steps/s stand the losses of a fresh run of each.

    python -m tests.bench.bench_stale_lookups [--workers 1] [--batch-size 64] [--delay-ms 2]
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from tests.bench.delaying_proxy import DelayingProxy
from workbench.experiments.measurement.blocks import block_order, block_rate
from workbench.experiments.measurement.statistics import ratio_interval

GOAL = 1.3
# DeepRec, docs/docs_en/Async-Embedding-Stage.md: steps/s with 8 parameter servers and 30 workers.
PUBLISHED = (1008.6968, 1197.932)
_WARM = 20
_MARK = "RESULT "


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--delay-ms", type=float, default=2.0, help="of what reaches the server")
    parser.add_argument(
        "--dense", choices=("worker", "ps"), default="worker", help="where weights are"
    )
    parser.add_argument("--stale", type=int, default=1, help="stale_lookups of the second setting")
    parser.add_argument("--fused", default="", help="how lookups are fused: v1, v2, grouped")
    parser.add_argument("--tables", type=int, default=26, help="of DLRM, the first so many")
    parser.add_argument("--wait-ms", type=float, default=6.0, help="of the second measurement")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--steps", type=int, default=60, help="of a block")
    parser.add_argument("--losses", type=int, default=200, help="steps whose losses are shown")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.task:
        run_task(chosen)
        return
    print(
        f"DLRM, batch {chosen.batch_size}, {chosen.tables} tables on 1 ps, "
        f"weights on the {chosen.dense}, lookups {chosen.fused or 'stock'}, "
        f"{chosen.delay_ms:g} ms to the ps, {chosen.workers} worker(s), {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    for wait_ms in dict.fromkeys((0.0, chosen.wait_ms)):
        chosen.wait_ms = wait_ms
        print(f"with {wait_ms:g} ms of waiting in each step" if wait_ms else "as it is")
        for worker, line in enumerate(cluster(chosen)):
            show(f"  worker {worker}", json.loads(line), chosen.stale)
    print(f"DeepRec publishes {PUBLISHED[1] / PUBLISHED[0]:.2f}× for Async-Embedding-Stage, 8 ps")


def show(name: str, found: dict, stale: int) -> None:
    """The ratio with its interval, and both loss curves."""
    exact, ahead = found["rates"]
    ratio = ratio_interval(ahead, exact)
    said = "reached" if ratio.value >= GOAL else "missed"
    print(
        f"{name}: exact {np.median(exact):.1f} steps/s, {stale} stale {np.median(ahead):.1f}: "
        f"{ratio.value:.2f}× ({ratio.low:.2f}–{ratio.high:.2f}); goal {GOAL}×: {said}"
    )
    if "losses" in found:
        parts = np.array_split(np.asarray(found["losses"]), 5, axis=1)
        for i, part in enumerate(parts):
            exact_loss, stale_loss = part.mean(axis=1)
            print(f"    loss, part {i + 1} of 5: exact {exact_loss:.4f}, stale {stale_loss:.4f}")


def cluster(chosen: argparse.Namespace) -> list[str]:
    """Runs all tasks; the results of the workers."""
    from workbench.models.data.criteo import generate_criteo

    data = generate_criteo(Path("data/bench_clicks.tsv"), rows=100_000, seed=1)
    ports = _free_ports(1 + chosen.workers)
    workers = [f"localhost:{port}" for port in ports[1:]]
    with DelayingProxy(ports[0], chosen.delay_ms / 1e3) as proxy, contextlib.ExitStack() as stack:
        near = {"ps": [f"localhost:{ports[0]}"], "worker": workers}
        far = {"ps": [f"localhost:{proxy.port}"], "worker": workers}
        server = stack.enter_context(_task(chosen, "ps", near, data))
        running = [
            stack.enter_context(_task(chosen, f"worker:{i}", far, data))
            for i in range(chosen.workers)
        ]
        texts = [each.communicate()[0] for each in running]
        server.kill()
    for each, text in zip(running, texts, strict=True):
        if each.returncode:
            raise SystemExit(text)
    return [
        line.removeprefix(_MARK)
        for text in texts
        for line in text.splitlines()
        if line.startswith(_MARK)
    ]


@contextlib.contextmanager
def _task(
    chosen: argparse.Namespace, task: str, addresses: dict, data: Path
) -> Iterator[subprocess.Popen]:
    names = ("workers", "batch_size", "delay_ms", "dense", "stale", "rounds", "steps", "losses")
    names += ("fused", "wait_ms", "tables")
    given = [f"--{name.replace('_', '-')}={getattr(chosen, name)}" for name in names]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.bench_stale_lookups", *given, f"--data={data}",
         f"--task={json.dumps([task, addresses])}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def run_task(chosen: argparse.Namespace) -> None:
    """The parameter server, or a worker, in a process of its own."""
    import tensorflow as tf

    from workbench import _native

    _native.library()
    (task, addresses) = json.loads(chosen.task)
    job, _, index = task.partition(":")
    server = tf.distribute.Server(
        tf.train.ClusterSpec(addresses), job_name=job, task_index=int(index or 0)
    )
    if job == "ps":
        server.join()
    found: dict = {"rates": _rates(tf, server, chosen, int(index))}
    if chosen.workers == 1 and chosen.losses:
        found["losses"] = [_losses(tf, server, chosen, steps) for steps in (0, chosen.stale)]
    print(_MARK + json.dumps(found), flush=True)


def _rates(tf, server, chosen: argparse.Namespace, worker: int) -> list[list[float]]:
    """Steps/s of each block: of the exact session, and of the one with stale lookups."""
    with tf.Graph().as_default() as graph, contextlib.ExitStack() as stack:
        built = _built(graph, chosen, worker)
        sessions = [
            stack.enter_context(_session(tf, server, graph, built, steps, first=not i))
            for i, steps in enumerate((0, chosen.stale))
        ]
        rates: list[list[float]] = [[], []]
        for number in range(chosen.rounds):
            for place in block_order(number, 2):
                ends = [time.perf_counter_ns()]
                for _ in range(chosen.steps + _WARM):
                    sessions[place].run(built.train_op)
                    ends.append(time.perf_counter_ns())
                rates[place].append(block_rate(np.asarray(ends), _WARM))
        return rates


def _losses(tf, server, chosen: argparse.Namespace, steps: int) -> list[float]:
    """The losses of the first steps from the same weights, on the same data."""
    with tf.Graph().as_default() as graph:
        built = _built(graph, chosen, 0)
        with _session(tf, server, graph, built, steps, first=True) as session:
            runs = (session.run([built.loss, built.train_op]) for _ in range(chosen.losses))
            return [float(loss) for loss, _ in runs]


def _built(graph, chosen: argparse.Namespace, worker: int):
    from workbench.core.options import Optimizations
    from workbench.experiments.worker.steps.built_part import build_part
    from workbench.models.building.model_program import model_program
    from workbench.models.data.criteo import CATEGORIES, check_criteo
    from workbench.models.zoo import dlrm
    from workbench.models.zoo.options import DlrmOptions

    own = f"/job:worker/task:{worker}"

    def place(op) -> str:
        is_variable = op.type in ("VarHandleOp", "VariableV2")
        shared = chosen.dense == "ps" or "_table" in op.name or chosen.workers > 1
        return "/job:ps/task:0" if is_variable and shared else own

    options = DlrmOptions(data=check_criteo(chosen.data), batch_size=chosen.batch_size)
    program = model_program("dlrm", options, lambda: _waiting(dlrm.MODEL, chosen.wait_ms / 1e3))
    categories = CATEGORIES[: chosen.tables]
    with graph.device(place), mock.patch.object(dlrm, "CATEGORIES", categories):
        wish = Optimizations(fused_embeddings=chosen.fused or None)
        built = build_part(program, "build", wish)
    far = [op.name for op in graph.get_operations() if "job:ps" in op.device]
    tables = [name for name in far if name.endswith("_table")]
    assert len(tables) == len(categories), f"{len(tables)} tables are on the ps"
    return built


def _waiting(model, wait_s: float):
    """The model with a wait between its loss and what is computed of it."""
    import tensorflow as tf

    def wait(loss):
        time.sleep(wait_s)
        return np.float32(1)

    def loss(batch):
        found = model.loss(batch)
        return found * tf.ensure_shape(tf.numpy_function(wait, [found], tf.float32), [])

    return dataclasses.replace(model, loss=loss) if wait_s else model


@contextlib.contextmanager
def _session(tf, server, graph, built, steps: int, *, first: bool):
    """A session with its stages running; the first of them sets the variables."""
    from workbench.core.options import SmartStageOptions
    from workbench.core.session.prefetch_hook import prefetching
    from workbench.core.smart_stage import prepare_config
    from workbench.experiments.worker.steps.session_config import stock_config

    v1 = tf.compat.v1
    options = SmartStageOptions(stale_lookups=steps, capacity=2)
    targets = [built.train_op, built.loss]
    with graph.as_default():
        config, plan = prepare_config(graph, stock_config(built), options, targets=targets)
        assert any(stage.stale_lookups for stage in plan.stages) == bool(steps), plan.describe()
        with v1.Session(server.target, config=config, graph=graph) as session:
            if first:
                session.run(v1.global_variables_initializer())
            session.run([v1.local_variables_initializer(), v1.tables_initializer()])
            with prefetching(session):
                yield session


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [int(each.getsockname()[1]) for each in sockets]


if __name__ == "__main__":
    main()
