"""The hook that traces a worker in the midst of its training, over the end of its session."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

import workbench as wb
from workbench.experiments.cluster import trace_hook
from workbench.experiments.cluster.trace_hook import TraceHook

v1 = tf.compat.v1


class Worker:
    """Runs steps of sessions with the hook, as a monitored session does."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trace_hook, "WARM_UP_STEPS", 2)
        monkeypatch.setattr(trace_hook, "TRACED_STEPS", 4)
        self.said: list[str] = []
        self.met = 0
        self.path = path
        self.hook = TraceHook(path, self._meet, self.said.append)
        self._target = tf.distribute.Server.create_local_server().target

    def _meet(self) -> None:
        self.met += 1

    def session(self, steps: int, *, ends: bool = False) -> v1.Session:
        """Runs a session for `steps`; it ends as asked for, or because its server has."""
        with tf.Graph().as_default() as graph, v1.Session(self._target) as session:
            number = v1.get_variable("number", initializer=0.0)
            step = v1.train.create_global_step()
            train = tf.group(number.assign_add(1.0), v1.assign_add(step, 1))
            session.run(v1.global_variables_initializer())
            self.hook.after_create_session(session, None)
            for _ in range(steps):
                context = v1.train.SessionRunContext(v1.train.SessionRunArgs(train), session)
                asked = self.hook.before_run(context)
                options, metadata = asked.options if asked else None, v1.RunMetadata()
                session.run(train, options=options, run_metadata=metadata if options else None)
                values = v1.train.SessionRunValues(None, options, metadata)
                self.hook.after_run(context, values)
            if ends:
                self.hook.end(session)
            assert graph is session.graph
        return session


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worker:
    return Worker(tmp_path / "traces" / "worker_1.parquet", monkeypatch)


def test_the_steps_until_a_sessions_end_are_kept_and_the_others_named(worker: Worker) -> None:
    worker.session(5)
    assert not worker.path.exists()
    worker.session(9)
    trace = wb.load_trace(worker.path)
    assert len(trace.steps()) == 3
    missing = "steps of worker 1, whose session ended while it was traced"
    assert trace.meta.left_out == {missing: 1}
    assert worker.said == [f"Wrote {worker.path}"] and worker.met == 1


def test_a_session_that_ended_in_the_first_traced_step_is_traced_in_the_next(
    worker: Worker,
) -> None:
    # The hook holds no session.
    ended = worker.session(2)
    worker.hook.before_run(v1.train.SessionRunContext(v1.train.SessionRunArgs(None), ended))
    worker.session(4)
    assert len(wb.load_trace(worker.path).steps()) == 4
    assert wb.load_trace(worker.path).meta.left_out == {} and worker.met == 1


def test_a_training_that_ends_early_is_saved(worker: Worker) -> None:
    worker.session(4, ends=True)
    assert len(wb.load_trace(worker.path).steps()) == 2


def test_a_worker_that_was_started_again_keeps_what_it_has_saved(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.session(6)
    before = worker.path.read_bytes()
    again = Worker(worker.path, monkeypatch)
    again.session(8, ends=True)
    assert worker.path.read_bytes() == before and again.met == 0
    assert again.said == [
        f"Keeps {worker.path}, which this worker has saved before it was started again"
    ]
