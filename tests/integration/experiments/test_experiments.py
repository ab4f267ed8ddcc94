"""Experiments in real child processes: what they find, how they fail, and that none is left."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import cloudpickle
import numpy as np
import psutil
import pytest

import workbench as wb
from tests.builders.grids import rest_slow
from tests.builders.processes import hear_ctrl_c
from workbench.core.options import StageOptions
from workbench.errors import OptionError, RunError
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.trace import trace
from workbench.experiments.program.program import Built, Program
from workbench.experiments.worker.process import CANCELLED, started_workers
from workbench.experiments.worker.warm_python import warm_python
from workbench.experiments.worker.wire.messages import Open, RunSteps

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def tiny_dataset(tf, *, batches=None):
    """Batches of four numbers that say which batch they are."""
    dataset = tf.data.Dataset.range(batches) if batches else tf.data.Dataset.range(10_000_000)
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    dataset = dataset.map(lambda i: tf.fill([4], tf.cast(i, tf.float32))).with_options(plain)
    return tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()


def tiny_build(optimizations, *, batches=None):
    """One weight, trained towards the number of the batch."""
    import tensorflow as tf

    from workbench.core.session.staged import staged

    v1 = tf.compat.v1
    batch = tiny_dataset(tf, batches=batches)
    if optimizations.stage:
        batch = staged(batch, optimizations.stage)
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer(), use_resource=False)
    loss = tf.reduce_mean(tf.square(batch * 1e-3 - weight))
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return Built(train_op=train_op, loss=loss, fingerprint=tf.cast(batch[0], tf.int64))


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.fixture
def leaves_no_process():
    """Fails the test if a process is left that was not there before, but what forks children."""
    with warm_python():
        before = children()
    yield
    assert children() <= before


@pytest.fixture(scope="module")
def comparison():
    program = Program(name="tiny", build=tiny_build, settings={"batch": 4})
    said: list[str] = []
    found = compare(
        program,
        "stage",
        stage=StageOptions(num_threads=2, capacity=3),
        budget_s=0.5,
        trace_steps=5,
        equivalence_steps=20,
        progress=said.append,
    )
    return found, said


def test_a_comparison_has_what_a_report_needs(comparison):
    found, _ = comparison
    assert [variant.label for variant in found.variants] == ["off", "stage"]
    assert found.baseline == "off"
    for variant in found.variants:
        assert variant.low <= variant.steps_per_s <= variant.high
        assert len(variant.block_steps_per_s) == found.settings["rounds"]
    assert [ratio.label for ratio in found.ratios] == ["stage"]
    assert found.bounds == ()
    assert found.settings["batch"] == 4
    assert found.settings["took_s"] > found.settings["budget_s"] == 0.5
    assert found.settings["stage.num_threads"] == 2
    dropped = found.settings["steps_dropped_per_block"]
    assert 3 <= dropped["off"] <= 400 and 3 + 5 <= dropped["stage"] <= 400 + 5
    assert found.environment["tf.data inject_prefetch"] == "off"
    assert found.environment["tensorflow"].startswith("2.")


def test_training_stays_the_same(comparison):
    found, _ = comparison
    losses, batches = found.equivalence
    assert (losses.kind, losses.passed, losses.steps) == ("bit-equal losses", True, 20)
    assert (batches.kind, batches.passed) == ("same batches", True)
    assert "each exactly once over the first 20 steps, 2 prefetch threads" in batches.detail


def test_traces_show_the_stage_ahead(comparison):
    found, _ = comparison
    off, stage = (variant.trace for variant in found.variants)
    assert set(off.tracks["kind"]) == {"step", "inter_op"}
    assert "prefetch" in set(stage.tracks["kind"])
    assert len(stage.steps()) == 5
    taken = stage.items[stage.items["take_end_ns"] >= 0]
    assert (taken["put_end_ns"] <= taken["take_end_ns"]).all()


@pytest.mark.executors
def test_traces_come_from_the_executor_with_the_measured_step_beside(comparison):
    found, _ = comparison
    for variant in found.variants:
        untraced = variant.trace.meta.untraced
        assert variant.trace.meta.source == "executor"
        assert untraced.steps > 0 and untraced.run_ns > 0 and not untraced.while_traced
        # of consecutive steps of a warm session
        numbers = variant.trace.steps()["number"].tolist()
        assert numbers == list(range(numbers[0], numbers[0] + 5)) and numbers[0] > 20


def build_on_the_inline_executor(optimizations):
    built = tiny_build(optimizations)
    from workbench.core.executor.policy import executor_options

    return Built(train_op=built.train_op, loss=built.loss, config=executor_options("inline"))


def traced_with(step_stats: bool, build=tiny_build, **chosen) -> wb.Trace:
    return trace(
        Program(name="tiny", build=build),
        wb.Optimizations(stage=StageOptions(), **chosen),
        steps=3,
        warm_up_steps=2,
        step_stats=step_stats,
        progress=False,
    )


def test_step_stats_are_the_tracer_where_they_are_asked_for(leaves_no_process):
    stats = traced_with(True)
    assert (
        stats.meta.source == "step_stats"
        and stats.meta.step_stats == "step_stats=True asked for them"
    )
    assert stats.meta.untraced.run_ns > 0
    assert set(stats.tracks["kind"]) == {"step", "prefetch", "inter_op"}


@pytest.mark.executors
def test_a_program_that_chooses_an_executor_is_traced_on_it():
    # Inline runs ops on the thread that calls the step; the normal executor never does.
    assert "Main step ops" in set(traced_with(False, build_on_the_inline_executor).tracks["name"])
    assert "Main step ops" not in set(traced_with(False).tracks["name"])


def test_a_function_has_no_step_stats():
    program = wb.FunctionProgram(name="mine", make=dict)
    for ask in (trace, compare):
        with pytest.raises(OptionError) as caught:
            ask(program, step_stats=True)
        assert str(caught.value) == (
            "program 'mine' is a FunctionProgram, and step_stats=True asks for TensorFlow's step "
            "stats, which only runs of a session return; leave it out: the steps are traced by the "
            "executor that runs them"
        )


def test_progress_says_what_is_done(comparison):
    _, every = comparison
    # a machine that is busy is spoken of first
    said = [text for text in every if not text.startswith("The machine is busy")]
    assert said[0].startswith("More than the budget of 0.5\u00a0s: about ")
    assert said[1:4] == [
        "Starting 2 child processes",
        "Building the graphs",
        "Checking that training stays the same",
    ]
    assert any(text.startswith("Block 1 of ") for text in said)
    assert said[-1] == "Tracing 5 steps"


STEP_S, BUDGET_S = 0.05, 6.0


def slow_build(optimizations):
    """The same, with steps that wait 50 ms: 200 of each variant are over any budget."""
    import tensorflow as tf

    def wait():
        time.sleep(STEP_S)
        return np.int32(0)

    built = tiny_build(optimizations)
    with tf.control_dependencies([built.train_op]):
        return dataclasses.replace(built, train_op=tf.numpy_function(wait, [], tf.int32))


@pytest.mark.slow
def test_a_comparison_of_slow_steps_is_cut_to_its_budget_and_says_it_first():
    said: list[str] = []
    program = Program(name="slow", build=slow_build)
    found = compare(program, "stage", budget_s=BUDGET_S, progress=said.append)
    # That its parts add up to the budget is shown with a clock of its own: test_time_budget.py.
    assert found.settings["took_s"] > BUDGET_S / 2
    assert re.match("(About|More than the budget of) 6\u00a0s", said[0])
    assert said[1] == "Starting 2 child processes"
    # Everything that a budget shortens was there to be shortened.
    assert 2 < found.equivalence[0].steps < 200
    assert all(1 < len(variant.trace.steps()) < 30 for variant in found.variants)


@pytest.mark.executors
def test_a_single_trace(leaves_no_process):
    program = Program(name="tiny", build=tiny_build)
    found = trace(program, steps=4, warm_up_steps=2, progress=False)
    assert len(found.steps()) == 4
    assert found.meta.title == "tiny"
    assert found.meta.source == "executor"
    assert found.meta.untraced.run_ns > 0


def raises_in_build(optimizations):
    raise ValueError("no such column\nand more")


def refuses_in_build(optimizations):
    raise OptionError("capacity is 0; expected more")


def fails_in_a_step(optimizations):
    import tensorflow as tf

    zero = tf.compat.v1.placeholder_with_default(0, [])
    return Built(train_op=tf.math.floordiv(1, zero))


def returns_nothing(optimizations):
    return None


FAILING = Program(
    name="failing",
    build=raises_in_build,
    build_epoch=refuses_in_build,
    build_input=fails_in_a_step,
    build_compute=returns_nothing,
)


def line_of(function, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


@pytest.fixture(scope="module")
def failing():
    with started_workers([("failing", FAILING)]) as workers:
        yield workers[0]


def open_part(worker, part: str):
    from workbench.core.optimizations import Optimizations

    return worker.call(Open(session=part, part=part, optimizations=Optimizations()))


def test_the_users_error_comes_with_their_own_line(failing):
    with pytest.raises(RunError) as caught:
        open_part(failing, "build")
    line = line_of(raises_in_build, "raise ValueError")
    place = os.path.relpath(__file__)
    assert str(caught.value) == f"`{place}`, line {line}: ValueError: no such column"
    assert "Traceback of the child process" in caught.value.__notes__[0]
    assert "raises_in_build" in caught.value.__notes__[0]


def test_errors_of_ours_keep_their_class(failing):
    with pytest.raises(OptionError) as caught:
        open_part(failing, "build_epoch")
    assert str(caught.value) == "capacity is 0; expected more"


def test_an_op_that_fails_names_the_line_that_built_it(failing):
    open_part(failing, "build_input")
    with pytest.raises(RunError) as caught:
        failing.call(RunSteps(session="build_input", steps=1))
    line = line_of(fails_in_a_step, "floordiv")
    assert f"line {line}: InvalidArgumentError: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_build_function_must_return_what_was_built(failing):
    with pytest.raises(OptionError) as caught:
        open_part(failing, "build_compute")
    said = str(caught.value)
    assert said.endswith(": build_compute returned NoneType; expected wb.Built(train_op=…)")


def killed_in_build(optimizations):
    os.kill(os.getpid(), signal.SIGKILL)


def aborts_in_build(optimizations):
    os.abort()


def exits_in_build(optimizations):
    os._exit(3)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            killed_in_build,
            "The run ended without a result (signal 9, probably memory). "
            "Lower the batch or the capacity.",
        ),
        (aborts_in_build, "The run ended without a result (signal 6, Aborted). Native code failed"),
        (exits_in_build, "The run ended without a result (exit code 3)."),
    ],
)
def test_a_dead_child_says_how_it_died_and_takes_the_others_along(build, said, leaves_no_process):
    with pytest.raises(RunError) as caught:
        compare(Program(name="dying", build=build), progress=False)
    assert str(caught.value).startswith(said)


def test_a_program_that_cannot_travel_is_named():
    import threading

    lock = threading.Lock()
    with pytest.raises(
        RunError, match="program 'held' cannot travel to a child process: TypeError"
    ):
        compare(Program(name="held", build=lambda optimizations: lock), progress=False)


def ignores_the_stage(optimizations):
    from workbench.core.optimizations import Optimizations

    return tiny_build(Optimizations())


def test_a_program_without_a_stage_has_nothing_to_compare(leaves_no_process):
    with pytest.raises(OptionError, match="'deaf' builds no stage when optimizations.stage is set"):
        compare(Program(name="deaf", build=ignores_the_stage), progress=False)


def test_fewer_steps_than_a_stage_has_on_their_way_are_compared(leaves_no_process):
    program = Program(name="tiny", build=tiny_build)
    found = compare(
        program, "stage", budget_s=0.1, trace_steps=0, equivalence_steps=8, progress=False
    ).equivalence
    assert [(check.passed, check.steps) for check in found] == [(True, 8), (True, 8)]


def ends_soon(optimizations):
    return tiny_build(optimizations, batches=30)


def test_data_that_ends_cannot_be_measured(leaves_no_process):
    program = Program(name="short", build=ends_soon)
    with pytest.raises(
        RunError, match=r"The data of 'off' ended after \d+ steps of a block; repeat"
    ):
        compare(program, "stage", equivalence_steps=0, progress=False)


def epoch_of_thirty(optimizations):
    return tiny_build(optimizations, batches=30)


def test_batches_are_compared_over_a_whole_epoch(leaves_no_process):
    program = Program(name="tiny", build=tiny_build, build_epoch=epoch_of_thirty)
    found = compare(
        program, "stage", budget_s=0.1, trace_steps=0, equivalence_steps=5, progress=False
    ).equivalence
    assert [check.passed for check in found] == [True, True]
    assert found[1].steps == 30
    assert found[1].detail.startswith("each exactly once over a whole epoch, 2 prefetch threads")


SCRIPT = textwrap.dedent(
    """
    import sys, time
    from workbench.experiments.comparison.compare import compare
    from workbench.experiments.program.program import Program

    def build(optimizations):
        print("building", file=sys.stderr, flush=True)
        time.sleep(600)

    try:
        compare(Program(name="slow", build=build), "stage", progress=False)
    except KeyboardInterrupt as stop:
        print(stop, flush=True)
        sys.exit(130)
    """
)


@pytest.fixture
def script(tmp_path):
    """A user's script whose children are in their build function."""
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    running = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,
    )
    while "building" not in running.stderr.readline():
        assert running.poll() is None
    yield running, psutil.Process(running.pid).children(recursive=True)
    running.kill()
    running.communicate()


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_and_says_so(script):
    running, workers = script
    assert len(workers) == 3  # two, and what they are forks of
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    assert (running.returncode, out.strip()) == (130, CANCELLED)
    assert psutil.wait_procs(workers, timeout=10)[1] == []


@pytest.mark.slow
@pytest.mark.parametrize("number", rest_slow([signal.SIGKILL, signal.SIGTERM], signal.SIGKILL))
def test_children_end_with_their_parent(script, number):
    running, workers = script
    running.send_signal(number)
    assert psutil.wait_procs(workers, timeout=10)[1] == []
