"""Clusters of tests: each task is a fork of one Python, and those that were killed start again."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.builders.threads_of_process import threads_of_process
from workbench.experiments.cluster.local_cluster import local_tasks
from workbench.experiments.cluster.task import PS, Task
from workbench.experiments.worker.warm_python import ForkedProcess, WarmPython, warm_python

BATCH = 4


class Tasks:
    """The processes of a cluster, each with its files in one folder.

    Attributes:
      killed: how many have been killed and started again.
    """

    def __init__(self, warm: WarmPython, home: Path, given: Mapping[str, Any], workers: int):
        self._warm = warm
        self._home = home
        self._given = json.dumps({**given, "home": str(home)})
        self._tasks = {each.name: each for each in local_tasks(1, workers)}
        self._running = {name: self._start(task) for name, task in self._tasks.items()}
        self.killed = 0

    def _start(self, task: Task) -> ForkedProcess:
        with open(self.log(task.name), "ab") as log:
            return self._warm.fork(
                f"{__name__}:run",
                [self._given],
                env={**os.environ, "TF_CONFIG": task.to_config()},
                stdout=log.fileno(),
                stderr=log.fileno(),
            )

    def log(self, name: str) -> Path:
        """What a task prints."""
        return self._home / f"{name}.log"

    def address(self, name: str) -> str:
        """Where a task serves."""
        task = self._tasks[name]
        return task.cluster[task.job][task.index]

    def kill(self, name: str) -> None:
        """Kills a task as the system does, and starts it again with the same address."""
        self._running[name].kill()
        assert self._running[name].wait(30) == -signal.SIGKILL, self.log(name).read_text()
        self._running[name] = self._start(self._tasks[name])
        self.killed += 1

    def until(self, happened: Callable[[], Any], timeout_s: float) -> None:
        """Waits; fails when the time is up, or when a task has failed."""
        ends_s = time.monotonic() + timeout_s
        while not happened():
            for name, process in self._running.items():
                assert not process.poll(), f"{name}:\n{self.log(name).read_text()[-4000:]}"
            assert time.monotonic() < ends_s, self._said()
            time.sleep(0.02)

    def end(self, timeout_s: float) -> None:
        """Waits until all have ended, and without an error."""
        self.until(
            lambda: all(each.poll() is not None for each in self._running.values()), timeout_s
        )
        assert {each.returncode for each in self._running.values()} == {0}, self._said()

    def _said(self) -> str:
        logs = {name: self.log(name).read_text()[-2000:] for name in self._running}
        return "\n".join(f"--- {name}\n{text}" for name, text in logs.items())

    def kill_all(self) -> None:
        """Ends what runs."""
        for each in self._running.values():
            each.kill()


@contextlib.contextmanager
def tasks(home: Path, *, workers: int = 2, **given: Any) -> Iterator[Tasks]:
    """Starts one parameter server and workers.

    Args:
      home: a folder, for logs and results.
      workers: how many.
      given: what `run` reads; the program's name and options, those of `run_task`, and
        `steps_of_0`, steps of the chief where it runs others.
    """
    with warm_python() as warm:
        started = Tasks(warm, home, given, workers)
        try:
            yield started
        finally:
            started.kill_all()


def result(home: Path, worker: int) -> dict[str, Any]:
    """What `run_task` returned."""
    found: dict[str, Any] = json.loads((home / f"worker {worker}.json").read_text())
    return found


def seen(home: Path, worker: int) -> list[list[int]]:
    """Which examples a worker's steps had, a list for each of its sessions."""
    sessions: dict[tuple[int, int], list[int]] = {}
    path = home / f"worker {worker}.seen"
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):  # the last line of a process that was killed
            *session, examples = json.loads(line)
            sessions.setdefault(tuple(session), []).extend(examples)
    return list(sessions.values())


def run(text: str) -> None:
    """A task's process, to its end; writes what it did."""
    from workbench.core.optimizations import Optimizations
    from workbench.core.options import SmartStageOptions, StageOptions
    from workbench.experiments.cluster.run_task import run_task
    from workbench.experiments.cluster.task import task_from_environment
    from workbench.experiments.program.toggles import optimizations_of

    given = json.loads(text)
    task = task_from_environment()
    home = Path(given["home"])
    if given.get("plain_ps") and task.job == PS:
        _serve(task)
    wishes = Optimizations()
    if given.get("toggle"):
        ahead = StageOptions(capacity=2, num_threads=1)
        smart = SmartStageOptions(stale_lookups=given.get("stale_lookups", 0))
        wishes = optimizations_of(given["toggle"], ahead, smart)
    # All tests of clusters also pass under a policy: CLUSTER_TESTS_EXECUTOR=inline.
    if os.environ.get("CLUSTER_TESTS_EXECUTOR"):
        wishes = dataclasses.replace(wishes, executor=os.environ["CLUSTER_TESTS_EXECUTOR"])
    found = run_task(
        _PROGRAMS[given["program"]](home, task, given),
        wishes,
        task=task,
        steps=given.get("steps_of_0", given["steps"]) if task.is_chief else given["steps"],
        sync=given.get("sync", False),
        checkpoint=given.get("checkpoint"),
        checkpoint_s=0.2,
        say=lambda said: print(said, flush=True),
    )
    if found is not None:
        (home / f"{task.name}.json").write_text(json.dumps(dataclasses.asdict(found)))


def _serve(task: Task) -> None:
    """Serves as a parameter server of a script that does not know Workbench; never returns."""
    import tensorflow as tf

    cluster = {job: list(places) for job, places in task.cluster.items()}
    tf.distribute.Server(cluster, job_name=task.job, task_index=task.index).join()


def _keyed(home: Path, task: Task, given: Mapping[str, Any]) -> Any:
    """An EmbeddingVariable that learns."""
    import workbench as wb

    def build(wishes: Any) -> Any:
        import tensorflow as tf

        from workbench.ops import AdagradOptimizer, get_embedding_variable

        rows = get_embedding_variable("keyed", 3).sparse_read(tf.constant([1, 2], tf.int64))
        step = tf.compat.v1.train.get_or_create_global_step()
        loss = tf.reduce_sum(rows)
        optimizer = wb.cluster.synchronous(AdagradOptimizer(0.1))
        return wb.Built(train_op=optimizer.minimize(loss, global_step=step), loss=loss)

    return wb.Program(name="keyed", build=build)


def _threads(home: Path, task: Task, given: Mapping[str, Any]) -> Any:
    """Its loss is how many threads the worker has."""
    import workbench as wb

    def build(wishes: Any) -> Any:
        import tensorflow as tf

        counted = tf.ensure_shape(tf.numpy_function(threads_of_process, [], tf.float32), [])
        step = tf.compat.v1.train.get_or_create_global_step()
        with tf.control_dependencies([counted]):
            return wb.Built(train_op=tf.compat.v1.assign_add(step, 1).op, loss=counted)

    return wb.Program(name="threads", build=build)


def _counting(home: Path, task: Task, given: Mapping[str, Any]) -> Any:
    """A few weights that learn from numbers, of which each worker reads its part once.

    Of `given` it reads `examples`, how many numbers; `ends_early`, the worker that has half of its
    part; `until`, a file with which the numbers end; `wait_ms`, for which each batch waits; and
    `stops_at`, the global step at which a hook stops each worker.
    """
    import workbench as wb

    return wb.Program(name="counting", build=lambda wishes: _count(home, task, given, wishes))


def _count(home: Path, task: Task, given: Mapping[str, Any], wishes: Any) -> Any:
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops import testing as data_testing

    import workbench as wb

    v1 = tf.compat.v1
    index, workers = task.shard
    numbers = tf.data.Dataset.range(given["examples"]).shard(workers, index)
    if given.get("ends_early") == index:
        numbers = numbers.take(given["examples"] // 4)
    batches = numbers.batch(BATCH)
    if given.get("until"):
        until = Path(given["until"])
        batches = batches.take_while(
            lambda _: tf.ensure_shape(tf.numpy_function(lambda: not until.exists(), [], bool), [])
        )
    if given.get("wait_ms"):
        batches = batches.apply(data_testing.sleep(1000 * given["wait_ms"]))
    iterator = v1.data.make_initializable_iterator(batches)
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    examples = iterator.get_next()
    features = {"examples": examples, "wide": tf.one_hot(examples % 16, 16)}
    if wishes.stage:
        features = wb.staged(features, wishes.stage)
    with v1.variable_scope("counting"):
        weights = v1.get_variable("weights", [16], initializer=v1.zeros_initializer())
    errors = tf.linalg.matvec(features["wide"], weights) - tf.cast(
        features["examples"] % 5, tf.float32
    )
    loss = tf.reduce_mean(tf.square(errors))
    optimizer = wb.cluster.synchronous(v1.train.GradientDescentOptimizer(0.1))
    step = v1.train.get_or_create_global_step()
    hooks = [_seen_hook(home / f"{task.name}.seen", features["examples"])]
    if given.get("stops_at"):
        hooks.append(v1.train.StopAtStepHook(last_step=given["stops_at"]))
    return wb.Built(train_op=optimizer.minimize(loss, global_step=step), loss=loss, hooks=hooks)


def _seen_hook(path: Path, examples: Any) -> Any:
    import tensorflow as tf

    class Seen(tf.compat.v1.train.SessionRunHook):
        """Writes the examples of each step behind the number of the process and the session."""

        sessions = 0

        def after_create_session(self, session: Any, coord: Any) -> None:
            del session, coord
            self.sessions += 1

        def before_run(self, run_context: Any) -> Any:
            del run_context
            return tf.compat.v1.train.SessionRunArgs(examples)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            del run_context
            line = [os.getpid(), self.sessions, run_values.results.tolist()]
            with open(path, "a") as file:
                file.write(f"{json.dumps(line)}\n")

    return Seen()


def _until_hook(path: Path) -> Any:
    import tensorflow as tf

    class Until(tf.compat.v1.train.SessionRunHook):
        """Stops its worker once a file is there."""

        def after_run(self, run_context: Any, run_values: Any) -> None:
            del run_values
            if path.exists():
                run_context.request_stop()

    return Until()


def _dlrm(home: Path, task: Task, given: Mapping[str, Any]) -> Any:
    """DLRM of three lookups, on this worker's rows; of `given` it reads `until`, a file with which
    its steps end."""
    from tests.builders.small_dlrm import small_dlrm
    from workbench.models.data.criteo import check_criteo

    data = check_criteo(home / "clicks.tsv")
    program = small_dlrm(dataclasses.replace(data, shard=task.shard), batch_size=32)

    def build(wishes: Any) -> Any:
        import tensorflow as tf

        built = program.build(wishes)
        hooks = [_seen_hook(home / f"{task.name}.seen", tf.reshape(built.loss, [1]))]
        if given.get("until"):
            hooks.append(_until_hook(Path(given["until"])))
        return dataclasses.replace(built, hooks=[*built.hooks, *hooks])

    return dataclasses.replace(program, build=build)


_PROGRAMS = {"counting": _counting, "keyed": _keyed, "dlrm": _dlrm, "threads": _threads}
PARAMETER_SERVER = f"{PS} 0"
