"""Measured ceilings: what a changed step executes and trains, and what a measurement says."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.grids import every_value
from workbench.core.what_if.faster import KINDS
from workbench.core.what_if.stub import ONE_BATCH
from workbench.errors import OptionError, RunError, UnsupportedError
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.what_if import measured_ceilings as measuring
from workbench.experiments.worker.steps.stubbed_steps import StubbedSteps

v1 = tf.compat.v1
ROWS, DIM, BATCH = 50, 4, 8
STEPS = 4


def build(optimizations, *, resource=True, batches=None, hooks=()):
    # Lines whose number of words differs, so that what lies ready must be of one batch.
    def line(i):
        words = tf.strings.as_string(tf.range(1 + i % 5)) + " "
        return tf.strings.join([tf.strings.as_string(i % 7), tf.strings.reduce_join(words)], ",")

    data = tf.data.Dataset.range(10**6).map(line).batch(BATCH)
    data = data.take(batches) if batches else data
    number, words = tf.io.decode_csv(
        v1.data.make_one_shot_iterator(data).get_next(), [[0.0], [""]], field_delim=","
    )
    tokens = v1.string_split(words)
    ids = tf.SparseTensor(
        tokens.indices, tf.strings.to_hash_bucket_fast(tokens.values, ROWS), tokens.dense_shape
    )
    with v1.variable_scope("", use_resource=resource):
        table = v1.get_variable("table", [ROWS, DIM])
        weight = v1.get_variable("weight", [DIM, 1])
    vectors = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean")
    loss = tf.nn.l2_loss(tf.matmul(vectors, weight) - number[:, None])
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss, hooks=[hook(loss) for hook in hooks])


class Fetches(v1.train.SessionRunHook):
    """Asks for the loss with each step, as hooks that log it do."""

    def __init__(self, loss):
        self._loss = loss

    def before_run(self, run_context):
        return v1.train.SessionRunArgs(self._loss)


class Ran(NamedTuple):
    """What a step executed and trained.

    `changed` tells which elements of each variable are others after a few steps.
    """

    names: set[str]
    losses: list[float]
    changed: dict[str, np.ndarray]
    left_out: set[str]
    kept: set[str]


def ran(work: str, program: wb.Program) -> Ran:
    with tf.Graph().as_default() as graph:
        stubbed = StubbedSteps(program).build(work)
        table, weight = (v for v in v1.trainable_variables())
        built, losses = stubbed.built, []
        fetches = [built.train_op] if built.loss is None else [built.train_op, built.loss]
        with v1.train.MonitoredTrainingSession(hooks=built.hooks) as session:
            raw = session._tf_sess()
            before = raw.run({"table": table, "weight": weight})
            for _ in range(STEPS):
                losses += session.run(fetches)[1:]
            told = v1.RunMetadata()
            raw.run(fetches, options=v1.RunOptions(trace_level=3), run_metadata=told)
            after = raw.run({"table": table, "weight": weight})
        names = {
            node.node_name for part in told.step_stats.dev_stats for node in part.node_stats
        } & {op.name for op in graph.get_operations() if op.type != "NoOp"}
    changed = {name: before[name] != after[name] for name in before}
    return Ran(names, losses, changed, set(stubbed.left_out), set(stubbed.kept))


@functools.cache
def found(work: str, resource: bool):
    program = wb.Program(name="tiny", build=functools.partial(build, resource=resource))
    return ran(work, program)


@every_value(work=list(KINDS), resource=[True, False])
def test_only_that_work_is_missing_in_what_a_step_executes(work: str, resource: bool):
    everything, without = found(ONE_BATCH, resource), found(work, resource)
    assert not everything.left_out and everything.names & without.left_out
    assert without.names & without.left_out == set()
    assert everything.names & without.kept - without.names == set()
    assert np.isfinite(without.losses).all()
    assert len(without.losses) == (0 if work == "dense" else STEPS)


@pytest.mark.parametrize("resource", [True, False])
def test_tables_are_untouched_without_lookups_and_trained_without_dense(resource: bool):
    changed = found("lookups", resource).changed
    assert not changed["table"].any() and changed["weight"].all()
    changed = found("dense", resource).changed
    assert changed["table"].any() and not changed["weight"].any()


@pytest.mark.parametrize("work", ["input", "ids"])
def test_values_that_lie_ready_are_those_of_the_batch(work: str):
    assert found(work, True).losses == found(ONE_BATCH, True).losses


def test_a_program_that_builds_another_graph_each_time_is_refused():
    number = itertools.count()

    def grows(optimizations):
        with v1.name_scope(f"build{next(number)}"):
            return build(optimizations)

    with pytest.raises(UnsupportedError, match="builds another graph each time: 'build1/"):
        ran("input", wb.Program(name="grows", build=grows))


def test_a_stage_that_nobody_asked_for_is_refused():
    def staged(optimizations):
        number = wb.staged(tf.random.uniform([]))
        return wb.Built(train_op=v1.assign_add(v1.get_variable("sum", []), number))

    with pytest.raises(UnsupportedError, match="'staged' builds a stage, .* where none was asked"):
        ran("input", wb.Program(name="staged", build=staged))


def test_data_that_ends_too_early_is_refused():
    program = wb.Program(name="short", build=functools.partial(build, batches=2))
    with pytest.raises(RunError, match="the data of 'short' ended in its first 3 steps"):
        ran("input", program)


def test_what_cannot_be_measured_is_refused():
    program = wb.Program(name="tiny", build=build)
    with pytest.raises(OptionError, match="budget_s is 0; expected seconds above 0"):
        wb.measured_ceilings(program, budget_s=0)
    function = wb.FunctionProgram(name="step", make=lambda: None)
    with pytest.raises(OptionError, match="'step' is a FunctionProgram, whose graph no session"):
        wb.measured_ceilings(function)


@pytest.mark.slow
def test_each_kind_is_measured_and_a_hook_that_needs_one_is_said():
    program = wb.Program(name="tiny", build=functools.partial(build, hooks=[Fetches]))
    said: list[str] = []
    ceilings = wb.measured_ceilings(program, budget_s=1, progress=said.append)
    assert {each.work for each in ceilings.kinds} == {"input", "ids", "lookups"}
    assert all(each.ops > 0 and each.low <= each.ratio <= each.high for each in ceilings.kinds)
    ((work, reason),) = ceilings.withheld
    assert work == "dense"
    assert "a step without it still runs" in reason and "which a hook or another fetch" in reason
    assert ceilings.rounds >= 2 and ceilings.one_batch.steps_per_s > 0
    assert any("Building the graph without dense" in line for line in said)
    # Where the machine is busy nothing is simulated, and it is said.
    simulated = [each.simulated is not None for each in ceilings.kinds]
    assert all(simulated) != bool(ceilings.simulation_problem)


def test_a_step_that_lacks_other_work_is_refused(monkeypatch):
    class Answers:
        """A worker whose step without lookups lacks an op of the dense part, too."""

        def call(self, command):
            class Opened:
                left_out, kept = ("gather",), ("matmul", "loss")

            return Opened()

    monkeypatch.setattr(measuring, "_executed", lambda *_: {"loss": 1e3})
    with pytest.raises(UnsupportedError) as refusal:
        measuring._opened(Answers(), "lookups", {"gather": 1e6, "matmul": 1e6, "loss": 1e3})
    assert str(refusal.value) == (
        "a step without it lacks 100 % of the other op time, too, most of it 'matmul'"
    )


def test_a_step_that_fails_is_withheld(monkeypatch):
    class Opens:
        def call(self, command):
            return None

    def fails(worker, work, everything):
        raise RunError("Incompatible shapes: [3] vs. [4]\n  File model.py")

    monkeypatch.setattr(measuring, "_executed", lambda *_: {})
    monkeypatch.setattr(measuring, "_opened", fails)
    steps, withheld = measuring._open_steps(Opens(), Progress(False))
    assert steps == []
    assert withheld[0] == ("input", "a step without it fails: Incompatible shapes: [3] vs. [4]")
