"""A session over a real program: runs, cancelling at any moment, errors, predictions, the end."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import cloudpickle
import psutil
import pytest

import workbench as wb
from tests.builders.replays import every_replay_holds
from workbench.core.what_if.predictions import Predicted, Withheld
from workbench.errors import RunError
from workbench.experiments.measurement.progress_line import state_of
from workbench.experiments.session.setting_predictions import CANCELLED_AFTER_RUN
from workbench.experiments.what_if import known_graphs
from workbench.experiments.worker.process import CANCELLED
from workbench.experiments.worker.warm_python import warm_python

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

STAGE = wb.Optimizations(stage=wb.StageOptions())
INLINE = wb.Optimizations(executor="inline")


def build(optimizations):
    """One weight, trained towards the number of the batch."""
    import tensorflow as tf

    v1 = tf.compat.v1
    data = tf.data.Dataset.range(10**9).map(lambda i: tf.fill([4], tf.cast(i, tf.float32)))
    batch = v1.data.make_one_shot_iterator(data).get_next()
    if optimizations.stage:
        batch = wb.staged(batch, optimizations.stage)
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(batch * 1e-9 - weight))
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss)


PROGRAM = wb.Program(name="tiny", build=build)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.fixture(autouse=True)
def leaves_no_process() -> Iterator[None]:
    """Fails the test if a process is left that was not there before.

    What forks children is there before, and has a user to the end, so that no test starts its own.
    """
    with warm_python():
        before = children()
        yield
        assert children() <= before


@pytest.fixture(scope="module")
def session():
    made = wb.Session(PROGRAM, budget_s=0.5, trace_steps=5)
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        # A busy machine must not withhold what is looked at here.
        every_replay_holds(patch)
        job = made.start(STAGE, on_progress=said.append)
        assert job.wait(120) and job.error is None
    return made, job, said


def test_a_job_measures_the_setting_beside_the_baseline(session):
    made, job, said = session
    assert [run.label for run in made.runs] == ["off", "stage"]
    assert job.result is made.runs[1] and made.run_of(STAGE) is job.result
    assert made.ratio(*reversed(made.runs)) == job.result.comparison.ratios[0]
    assert job.result.measured.trace is not None
    assert "Starting 2 child processes" in said
    phases = ["Building the graphs", "Tracing a few steps of 1 graph"]
    assert said[-3:] == [*phases, "Predicting the other settings"]


def test_its_other_settings_are_predicted_from_the_first_run(session):
    made, _, _ = session
    inline, fused = made.predict(INLINE), made.predict(wb.Optimizations(fused_embeddings="v1"))
    began = time.perf_counter()
    made.predict(wb.Optimizations(stage=wb.StageOptions(capacity=3)))
    print(f"\none setting more in {(time.perf_counter() - began) * 1e3:.0f} ms")
    assert isinstance(inline, Predicted) and inline.ratio > 0
    assert isinstance(fused, Withheld)
    assert fused.reason == "the program builds no embedding lookup through Workbench"
    assert {each.label for each in made.predictions.predicted} >= {"off", "stage", "smart stage"}


@pytest.mark.executors
def test_a_smart_stage_is_planned_on_the_trace_of_the_run_before(session):
    made, _, _ = session
    before, said = len(made.runs), []
    smart = wb.Optimizations(smart_stage=wb.SmartStageOptions())
    run = made.run(smart, progress=said.append)
    assert run.measured.plan is not None and run.measured.plan.predictions is not None
    assert not any("to be planned on" in text for text in said)
    # each line has the phases, and the rounds are there before the result
    states = [state_of(text) for text in said]
    assert "Plan the smart stage" in [phase.title for phase in states[-1].phases]
    every = [each for state in states for each in state.evidence]
    assert any(not each.final for each in every)
    final = next(each for each in every if each.final)
    ratio = run.comparison.ratios[0]
    assert (final.interval.value, final.interval.low) == (ratio.ratio, ratio.low)
    made.delete_run(run.number)
    assert len(made.runs) == before


@pytest.mark.executors
def test_a_saved_session_goes_on(session, tmp_path):
    made, _, _ = session
    made.save(tmp_path)
    loaded = wb.load_session(tmp_path, PROGRAM)
    run = loaded.run(INLINE, progress=False)
    assert [each.label for each in loaded.runs] == ["off", "stage", "inline executor"]
    assert run.number == 3 and loaded.ratio(run, loaded.runs[1]) is not None
    assert len(made.runs) == 2


MOMENTS = (
    *(pytest.param(each, marks=pytest.mark.slow) for each in ("Building", "Checking", "Tracing")),
    *("Starting", "Warming up", "Block"),
)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_job_is_cancelled_at_any_moment(moment):
    made = wb.Session(PROGRAM, budget_s=0.5 if moment == "Tracing" else 20, trace_steps=5)
    reached = threading.Event()

    def on_progress(text):
        if text.startswith(moment):
            reached.set()

    job = made.start(STAGE, on_progress=on_progress)
    assert reached.wait(60)
    time.sleep(0.1)
    began = time.perf_counter()
    job.cancel()
    assert job.wait(30)
    print(f"\n{moment}: over after {time.perf_counter() - began:.2f} s")
    assert job.cancelled and str(job.error) == CANCELLED
    assert made.runs == () and not job.running


def test_a_job_is_cancelled_while_it_learns(monkeypatch):
    # as of a program whose graphs take long to build
    known = known_graphs._known
    monkeypatch.setattr(known_graphs, "_known", lambda *a: [known(*a) for _ in range(500)][-1])
    made = wb.Session(PROGRAM, budget_s=0.2, trace_steps=2)
    reached = threading.Event()
    said = []

    def on_progress(text):
        said.append(text)
        if said[-2:] == ["Tracing 2 steps", "Building the graphs"]:
            reached.set()

    job = made.start(on_progress=on_progress)
    assert reached.wait(60)
    time.sleep(0.3)
    began = time.perf_counter()
    job.cancel()
    assert job.wait(30)
    print(f"\nlearning: over after {time.perf_counter() - began:.2f} s")
    assert str(job.error) == CANCELLED_AFTER_RUN and len(made.runs) == 1


def fails(optimizations):
    import tensorflow as tf

    return wb.Built(train_op=tf.matmul(tf.zeros([2, 3]), tf.zeros([5, 5])))


def test_the_users_error_comes_with_their_own_line():
    job = wb.Session(wb.Program(name="failing", build=fails)).start()
    assert job.wait(60)
    lines, first = inspect.getsourcelines(fails)
    line = first + next(i for i, line in enumerate(lines) if "matmul" in line)
    assert isinstance(job.error, RunError) and not job.cancelled
    assert str(job.error).startswith(f"`{os.path.relpath(__file__)}`, line {line}: ValueError: ")


SCRIPT = """
    import threading
    import time

    import psutil

    import workbench as wb

    def build(optimizations):
        time.sleep(600)  # The script ends before.

    started = threading.Event()
    session = wb.Session(wb.Program(name="late", build=build))
    session.start(on_progress=lambda text: "Starting" in text and started.set())
    started.wait()
    while len(children := psutil.Process().children(recursive=True)) < 2:
        time.sleep(0.01)
    print(*(child.pid for child in children), flush=True)
"""


def test_a_script_that_ends_ends_its_job_and_children(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stderr == ""
    left = [psutil.Process(int(pid)) for pid in done.stdout.split() if psutil.pid_exists(int(pid))]
    assert psutil.wait_procs(left, timeout=10)[1] == []
