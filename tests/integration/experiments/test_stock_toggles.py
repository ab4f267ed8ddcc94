"""TensorFlow's own toggles and an author's, in real child processes: that they act."""

from __future__ import annotations

import os
import sys

import cloudpickle
import numpy as np
import pytest

import workbench as wb
from workbench.errors import RunError
from workbench.experiments.comparison.results import load_comparison
from workbench.freed_memory import has_own_settings

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
ROWS, WIDTH = 64, 256


def build(optimizations):
    """Two layers on rows of a table, in a process whose environment is as it was asked for."""
    import tensorflow as tf

    v1 = tf.compat.v1
    dim = optimizations[wb.Toggle("dim", [16, 32])]
    expected = optimizations[wb.toggles.EnvironmentToggle("WORKBENCH_TEST", ["a", "b"])]
    if os.environ.get("WORKBENCH_TEST", "a") != expected:
        raise ValueError(f"the variable is {os.environ.get('WORKBENCH_TEST')}")
    given_back = optimizations[wb.toggles.FREED_MEMORY] == "given_back"
    if given_back and not has_own_settings():
        raise ValueError("what is freed is kept")
    ids = np.random.RandomState(0).randint(0, 100, (ROWS, 4))
    data = tf.data.Dataset.from_tensors(ids).repeat()
    batch = v1.data.make_one_shot_iterator(data).get_next()

    def weights(name, shape):
        values = np.random.RandomState(1).normal(size=shape).astype(np.float32) * 0.1
        return v1.get_variable(name, initializer=values, use_resource=True)

    rows = tf.nn.embedding_lookup(weights("table", [100, dim]), batch)
    hidden = tf.nn.relu(tf.reshape(rows, [ROWS, 4 * dim]) @ weights("w0", [4 * dim, WIDTH]))
    loss = tf.reduce_mean(tf.square(hidden @ weights("w1", [WIDTH, 1]) - 1.0))
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    return wb.Built(train_op=train_op, loss=loss, fingerprint=tf.reduce_sum(batch))


PROGRAM = wb.Program(name="layers", build=build)


def traced(*choices):
    setting = wb.Optimizations(chosen=choices)
    return wb.trace(PROGRAM, setting, steps=3, progress=False)


@pytest.fixture(scope="module")
def plain():
    return traced()


def ops_of(trace):
    return [op.removeprefix("_Mkl") for op in trace.nodes["op"]]


class TestTheGraphIsAnotherOne:
    def test_with_xla(self):
        assert "_XlaRun" in ops_of(traced(wb.toggles.XLA.at("clusters")))

    def test_with_bfloat16(self, plain):
        found = ops_of(traced(wb.toggles.PRECISION.at("bfloat16")))
        assert found.count("Cast") > ops_of(plain).count("Cast")

    def test_without_onednn(self, plain):
        if "_MklMatMul" not in [*plain.nodes["op"]]:
            pytest.skip("oneDNN does nothing on this processor")
        found = traced(wb.toggles.ONEDNN.at("off"))
        assert not [op for op in found.nodes["op"] if op.startswith("_Mkl")]

    def test_without_grappler(self, plain):
        assert len(traced(wb.toggles.GRAPPLER.at("off")).nodes) > len(plain.nodes)


def test_every_op_is_on_the_thread_that_calls():
    def build_branches(optimizations):
        import tensorflow as tf

        del optimizations
        sums = [tf.reduce_sum(tf.random.stateless_uniform([9999], [n, 1])) for n in range(20)]
        return wb.Built(train_op=tf.add_n(sums))

    program = wb.Program(name="branches", build=build_branches)
    setting = wb.Optimizations(chosen=(wb.toggles.CALLER_THREAD.at("on"),))
    found = wb.trace(program, setting, steps=3, progress=False)
    assert found.events["track"].nunique() == 1


def test_what_is_freed_goes_back():
    traced(wb.toggles.FREED_MEMORY.at("given_back"))


def test_a_variable_is_there_and_its_process_alone_has_it():
    toggle = wb.toggles.EnvironmentToggle("WORKBENCH_TEST", ["a", "b"])
    traced(toggle.at("b"))
    assert "WORKBENCH_TEST" not in os.environ
    traced()


def test_a_comparison_of_an_own_toggle_keeps_both_curves(tmp_path):
    found = wb.compare(
        PROGRAM,
        [wb.Toggle("dim", [16, 32]), "grappler=off", "xla=clusters+dim=32"],
        budget_s=1.0,
        trace_steps=0,
        equivalence_steps=20,
        progress=False,
    )
    labels = [each.label for each in found.variants]
    assert labels == ["off", "dim 32", "Grappler off", "dim 32 + XLA clusters"]
    (own,) = found.checks_of("dim 32")
    assert own.toggles == "dim 32 beside dim 16" and not own.passed and len(own.losses) == own.steps
    assert found.trains_the_same("Grappler off")
    assert "Dim 32: it trains another way, as was asked" in str(found)
    found.save(tmp_path / "comparison")
    again = load_comparison(tmp_path / "comparison")
    assert again == found and str(again) == str(found)


def test_two_builds_are_compared():
    found = wb.compare(
        {"old": build, "new": build}, budget_s=0.5, trace_steps=0, equivalence_steps=8
    )
    assert [each.label for each in found.variants] == ["off", "build new"]
    (check,) = found.checks_of("build new")
    assert check.losses == check.baseline_losses


@pytest.mark.parametrize(("kind", "words"), [("raises", "no such width"), ("ends", "exit code 3")])
def test_a_choice_that_fails_is_one_sentence(kind, words):
    def build_so(optimizations):
        if optimizations["width"] == 2:
            if kind == "raises":
                raise ValueError("no such width")
            os._exit(3)
        return build(wb.Optimizations())

    program = wb.Program(name="fails", build=build_so)
    with pytest.raises(RunError, match=words):
        wb.compare(program, [wb.Toggle("width", [1, 2])], budget_s=0.5, progress=False)


def test_a_choice_whose_losses_are_no_numbers_is_shown():
    def build_so(optimizations):
        import tensorflow as tf

        built = build(wb.Optimizations())
        loss = built.loss * float("nan") if optimizations["bad"] else built.loss
        return wb.Built(train_op=tf.group(built.train_op), loss=loss)

    program = wb.Program(name="nan", build=build_so)
    found = wb.compare(
        program, [wb.Toggle("bad", [False, True])], budget_s=0.5, trace_steps=0, progress=False
    )
    (check,) = found.checks_of("bad true")
    assert not check.passed and np.isnan(check.losses).all() and "nan" in str(found)


def test_make_is_called_with_the_choice():
    def make(units=4):
        import tensorflow as tf

        weights = tf.Variable(tf.ones([8, units]))

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - 1.0))
            weights.assign_sub(0.1 * tape.gradient(loss, weights))
            return loss * tf.cast(tf.shape(weights)[1], tf.float32)

        return step, tf.data.Dataset.from_tensors(tf.ones([2, 8])).repeat()

    found = wb.compare(
        wb.FunctionProgram(name="made", make=make),
        [wb.Toggle("units", [4, 8]), "grappler=off"],
        budget_s=0.5,
        trace_steps=0,
        equivalence_steps=5,
        progress=False,
    )
    (check,) = [each for each in found.checks_of("units 8") if each.losses]
    assert check.losses[0] == pytest.approx(2 * check.baseline_losses[0])
    assert found.trains_the_same("Grappler off")


def build_dense(optimizations):
    """Two products and no lookup; it reads its toggles by name, so each setting must have them."""
    import tensorflow as tf

    v1 = tf.compat.v1
    if os.environ["WORKBENCH_TEST"] != optimizations["WORKBENCH_TEST"]:
        raise ValueError(f"the variable is {os.environ['WORKBENCH_TEST']}")
    data = tf.data.Dataset.from_tensors(np.ones((8, 16), np.float32)).repeat()
    batch = v1.data.make_one_shot_iterator(data).get_next()
    ones = tf.ones_initializer()
    first = v1.get_variable("w0", [16, optimizations["dim"]], initializer=ones, use_resource=True)
    second = v1.get_variable("w1", [optimizations["dim"], 1], initializer=ones, use_resource=True)
    loss = tf.reduce_mean(tf.square(batch @ first @ second - 1.0))
    return wb.Built(train_op=v1.train.AdamOptimizer(0.01).minimize(loss), loss=loss)


def test_a_session_runs_and_keeps_choices(tmp_path):
    dim = wb.Toggle("dim", [16, 32])
    variable = wb.toggles.EnvironmentToggle("WORKBENCH_TEST", ["a", "b"])
    program = wb.Program(name="dense", build=build_dense)
    session = wb.Session(program, toggles=[dim, variable], budget_s=1.0, trace_steps=3)
    off = session.run(wb.Optimizations(chosen=(wb.toggles.GRAPPLER.at("off"),)), progress=False)
    # Without it, the constants of the optimizer are folded before the first step.
    nodes = [len(run.measured.trace.nodes) for run in session.runs]
    assert [run.label for run in session.runs] == ["off", "Grappler off"] and nodes[1] > nodes[0]
    assert off.checks and off.comparison.trains_the_same(off.variant)
    wide = session.run(wb.Optimizations(chosen=(dim.at(32), variable.at("b"))), progress=False)
    (check,) = [each for each in wide.checks if each.losses]
    assert check.toggles == "dim 32 beside dim 16" and check.losses != check.baseline_losses
    assert "WORKBENCH_TEST" not in os.environ
    assert session.ratio(wide, off).ratio > 0
    # The program's graphs were built with the usual choices, for which there are predictions.
    assert session.predictions is not None
    assert "no model predicts it" in session.predict(wide.optimizations).reason
    smart = session.predict(wb.Optimizations(smart_stage=wb.SmartStageOptions()))
    assert "could not be built" not in getattr(smart, "reason", "")
    again = wb.load_session(session.save(tmp_path / "session"))
    assert [run.label for run in again.runs] == [run.label for run in session.runs]
    assert again.run_of(wide.optimizations).checks == wide.checks
