"""A parameter server that is further away, and workers: processes of a bench, and DLRM on them.

Each worker reaches the parameter server through a proxy that delivers what the worker sends a
fixed time later, and so does the parameter server reach each worker: it asks for the ids that it
looks up, and on a longer way that takes longer too. So every request between them takes that much
more, whoever makes it. All run a bench's module, which hands what it finds on to the first process.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.bench.delaying_proxy import DelayingProxy
from workbench.experiments.cluster.local_cluster import free_ports
from workbench.experiments.cluster.task import PS, WORKER

_MARK = "RESULT "


@dataclasses.dataclass(frozen=True, kw_only=True)
class FarTask:
    """One process.

    Attributes:
      job, index: as in a cluster of TensorFlow.
      addresses: of all tasks, by job, as this one reaches them.
      processes: numbers of the other processes that its steps keep busy, by name: the parameter
        server's and the proxies'; of a parameter server none.
    """

    job: str
    index: int
    addresses: dict[str, list[str]]
    processes: dict[str, list[int]]

    @classmethod
    def from_json(cls, text: str) -> FarTask:
        """What `to_json` gave."""
        return cls(**json.loads(text))

    def to_json(self) -> str:
        """As an argument of the process."""
        return json.dumps(dataclasses.asdict(self))

    def serve(self) -> Any:
        """Starts the task's server; a parameter server serves until it is killed."""
        import tensorflow as tf

        from workbench import _native
        from workbench.freed_memory import keep_freed_memory

        _native.library()
        # As tasks of `workbench cluster` do.
        keep_freed_memory()
        cluster = tf.train.ClusterSpec(self.addresses)
        server = tf.distribute.Server(cluster, job_name=self.job, task_index=self.index)
        if self.job == PS:
            server.join()
        return server


def say_result(found: Any) -> None:
    """Hands on what a worker found; JSON-ready."""
    print(_MARK + json.dumps(found), flush=True)


def results(module: str, chosen: argparse.Namespace) -> list[Any]:
    """Runs all tasks to the end of the workers; what each of these found.

    Args:
      module: of the bench, which gets the same arguments and `--task`, a FarTask.
      chosen: the bench's arguments, all with a value, and those of `add_cluster` among them;
        `workers` says how many.
    """
    clicks()
    names = [name for name in vars(chosen) if name != "task"]
    given = [f"--{name.replace('_', '-')}={getattr(chosen, name)}" for name in names]
    ports = free_ports(1 + chosen.workers)
    near = [f"localhost:{port}" for port in ports]
    with contextlib.ExitStack() as stack:
        delayed = [
            stack.enter_context(DelayingProxy(port, chosen.delay_ms / 1e3))
            for port in (ports if chosen.late == "both" else ports[:1])
        ]
        far = [f"127.0.0.1:{proxy.port}" for proxy in delayed]
        asked = {PS: near[:1], WORKER: far[1:] or near[1:]}
        first = FarTask(job=PS, index=0, addresses=asked, processes={})
        server = stack.enter_context(_started(module, given, first))
        numbers = {"ps": [server.pid], "proxies": [proxy.pid for proxy in delayed]}
        tasks = [
            FarTask(
                job=WORKER,
                index=index,
                addresses={PS: far[:1], WORKER: near[1:]},
                processes=numbers,
            )
            for index in range(chosen.workers)
        ]
        running = [stack.enter_context(_started(module, given, task)) for task in tasks]
        texts = [each.communicate()[0] for each in running]
        server.kill()
    for each, text in zip(running, texts, strict=True):
        if each.returncode:
            raise SystemExit(text)
    lines = (line for text in texts for line in text.splitlines())
    return [json.loads(line.removeprefix(_MARK)) for line in lines if line.startswith(_MARK)]


@contextlib.contextmanager
def _started(module: str, given: Sequence[str], task: FarTask) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *given, f"--task={task.to_json()}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that `results` and `built_dlrm` read."""
    parser.add_argument("--delay-ms", type=float, default=2.0, help="of a request")
    parser.add_argument(
        "--late",
        choices=("both", "worker"),
        default="both",
        help="whose requests: those between worker and parameter server, or the worker's alone",
    )
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--fused", default="", help="how lookups are fused: v1, v2, grouped")
    parser.add_argument("--tables", type=int, default=26, help="of DLRM, the first ones")
    parser.add_argument(
        "--dense", choices=("worker", "ps"), default="worker", help="where weights are"
    )


def say_late(chosen: argparse.Namespace) -> str:
    """Whose requests are late, where not all are."""
    return "" if chosen.late == "both" else f" of the {chosen.late}"


def clicks() -> Path:
    """The click log of all processes; the first one makes it."""
    from workbench.models.data.criteo import generate_criteo

    return generate_criteo(Path("data/bench_clicks.tsv"), rows=100_000, seed=1)


def built_dlrm(
    graph: Any, chosen: argparse.Namespace, task: FarTask, wait_s: float = 0.0, **options: Any
) -> Any:
    """DLRM in a graph, its tables on the parameter server.

    Args:
      graph: to build it in.
      chosen: of `add_cluster`.
      task: the worker.
      wait_s: of each step between loss and gradients, its cores free.
      options: others of DLRM.
    """
    from workbench.core.optimizations import Optimizations
    from workbench.experiments.worker.steps.built_part import build_part
    from workbench.models.building.model_program import model_program
    from workbench.models.data.criteo import CATEGORIES, check_criteo
    from workbench.models.zoo import dlrm
    from workbench.models.zoo.options import DlrmOptions

    shares = chosen.dense == "ps" or len(task.addresses[WORKER]) > 1

    def place(op: Any) -> str:
        is_variable = op.type in ("VarHandleOp", "VariableV2")
        far = is_variable and (shares or "_table" in op.name)
        return f"/job:{PS}/task:0" if far else f"/job:{WORKER}/task:{task.index}"

    made = DlrmOptions(data=check_criteo(clicks()), batch_size=chosen.batch_size, **options)
    program = model_program("dlrm", made, lambda: _waiting(dlrm.MODEL, wait_s))
    categories = CATEGORIES[: chosen.tables]
    with graph.device(place), mock.patch.object(dlrm, "CATEGORIES", categories):
        built = build_part(program, "build", Optimizations(fused_embeddings=chosen.fused or None))
    far = [op.name for op in graph.get_operations() if f"job:{PS}" in op.device]
    tables = [name for name in far if name.endswith("_table")]
    assert len(tables) == len(categories), f"{len(tables)} tables are on the ps"
    return built


def _waiting(model: Any, wait_s: float) -> Any:
    """The model with a wait between its loss and what is computed of it."""
    import tensorflow as tf

    def wait(loss: Any) -> np.float32:
        del loss
        time.sleep(wait_s)
        return np.float32(1)

    def trained(batch: Any) -> Any:
        found = model.trained(batch)
        waited = tf.ensure_shape(tf.numpy_function(wait, [found.loss], tf.float32), [])
        return found._replace(loss=found.loss * waited)

    return dataclasses.replace(model, trained=trained) if wait_s else model


@contextlib.contextmanager
def initialized(target: str, graph: Any, config: Any, *, first: bool) -> Iterator[Any]:
    """A session on a server; the first of a graph sets the variables, each the input."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Session(target, config=config, graph=graph) as session:
        if first:
            session.run(v1.global_variables_initializer())
        session.run([v1.local_variables_initializer(), v1.tables_initializer()])
        yield session
