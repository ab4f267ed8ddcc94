"""A boundary moved by hand in real child processes: it is run as it was moved, and trains alike."""

from __future__ import annotations

import sys

import cloudpickle
import numpy as np
import pytest

import workbench as wb
from workbench.errors import PlanError

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def build(optimizations, *, batches=10_000_000):
    """One weight, trained towards the square of the sine of the number of the batch."""
    import tensorflow as tf

    v1 = tf.compat.v1
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(batches)).get_next()
    sine = tf.sin(tf.cast(batch, tf.float32) * 1e-3, name="sine")
    wanted = tf.square(sine, name="wanted")
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer(), use_resource=False)
    loss = tf.square(wanted - weight, name="loss")
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss, fingerprint=tf.identity(batch, name="which"))


def build_epoch(optimizations):
    return build(optimizations, batches=30)


PROGRAM = wb.Program(name="tiny", build=build, build_epoch=build_epoch)


def moved(**names):
    return wb.Optimizations(smart_stage=wb.SmartStageOptions(**names))


def test_a_moved_boundary_is_a_run_that_trains_the_same(tmp_path):
    session = wb.Session(PROGRAM, budget_s=0.5, trace_steps=0)
    run = session.run(moved(exclude=("wanted",)), progress=False)
    assert run.label == "moved boundary (without wanted)"
    (stage,) = run.measured.plan.stages
    assert "sine" in stage.moved
    assert "wanted" not in stage.moved
    assert [check.passed for check in run.checks] == [True, True]
    session.save(tmp_path / "saved")
    again = wb.load_session(tmp_path / "saved").runs[-1]
    assert again.optimizations == run.optimizations
    panel = wb.Workbench(wb.load_session(tmp_path / "saved"))
    assert panel.run_list[-1]["name"] == "Moved boundary without wanted"
    assert panel.cut == "-wanted"


@pytest.mark.slow
def test_the_line_of_the_panel_is_run_where_it_was_left(monkeypatch):
    monkeypatch.setattr(wb.Workbench, "send", lambda *_: None)
    panel = wb.Workbench(PROGRAM, moved(), budget_s=0.5, trace_steps=5)
    panel.run(wait=True)
    shown = {"run": panel.shown, "base": panel.base}
    panel._on_message(panel, {"kind": "content", "id": 1, "tab": "boundary", **shown}, [])
    panel._on_message(panel, {"kind": "moved", "leaves": [0], **shown}, [])
    (drawn,) = panel.plan.stages
    panel.stage = "moved"
    run = panel.run(wait=True).result
    (stage,) = run.measured.plan.stages
    assert stage.moved == drawn.moved
    assert "wanted" not in stage.moved
    assert panel.run_list[-1]["name"].startswith("Moved boundary")


def make():
    import tensorflow as tf

    weight = tf.Variable(0.0)

    @tf.function
    def train_step(batch):
        wanted = tf.square(tf.sin(batch, name="sine"), name="wanted")
        loss = tf.square(wanted - weight)
        weight.assign_sub(0.1 * 2 * (weight - wanted))
        return loss

    numbers = np.linspace(0.0, 1.0, 100, dtype=np.float32)
    return train_step, tf.data.Dataset.from_tensor_slices(numbers)


def test_the_boundary_of_a_function_is_moved_too():
    program = wb.FunctionProgram(name="function", make=make)
    found = wb.compare(program, [moved(include=("sine",))], budget_s=0.5, trace_steps=0)
    (stage,) = found.variants[1].plan.stages
    assert (stage.moved[-1], stage.carried) == ("sine", ("sine",))
    assert all(check.passed for check in found.checks_of("moved boundary"))


def test_a_boundary_that_the_program_cannot_have_says_why():
    with pytest.raises(PlanError, match="the cut names a node that cannot move: 'loss'"):
        wb.compare(PROGRAM, [moved(include=("loss",))], budget_s=0.5, trace_steps=0)
