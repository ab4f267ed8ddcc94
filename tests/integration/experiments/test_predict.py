"""Predictions for a real program: graphs and ids from a child process, times from its trace."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import workbench as wb
from tests.builders.replays import every_replay_holds
from workbench.core.fusion.rules.dense_layer import kernel_is_faster
from workbench.errors import OptionError, TraceError
from workbench.experiments.what_if import known_graphs
from workbench.experiments.what_if.sampled_graphs import sampled_graphs
from workbench.experiments.worker.described_graph import describe_graph

ROWS, DIM, BATCH = 500, 8, 256


def build(optimizations, optimizer="AdagradOptimizer"):
    import tensorflow as tf

    v1 = tf.compat.v1
    data = tf.data.Dataset.range(10**6).map(lambda i: (tf.range(BATCH, dtype=tf.int64) + i) % ROWS)
    ids = v1.data.make_one_shot_iterator(data).get_next()
    if optimizations.stage:
        ids = wb.staged(ids, optimizations.stage)
    sparse = tf.sparse.from_dense(tf.reshape(ids + 1, [BATCH, 1]))
    table = v1.get_variable("table", [ROWS + 1, DIM])
    vectors = wb.safe_embedding_lookup_sparse(table, sparse)
    dense = tf.linalg.matmul(vectors, v1.get_variable("w", [DIM, 256]))
    loss = tf.reduce_mean(tf.square(dense))
    step = v1.train.get_or_create_global_step()
    train_op = getattr(v1.train, optimizer)(0.1).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss)


PROGRAM = wb.Program(name="tiny", build=build)


@pytest.fixture(scope="module")
def trace():
    return wb.trace(PROGRAM, steps=15, warm_up_steps=15, progress=False)


@pytest.fixture
def held(monkeypatch):
    """A busy machine must not withhold what is looked at here."""
    every_replay_holds(monkeypatch)


@pytest.mark.usefixtures("held")
def test_every_toggle_and_combination_is_predicted_from_one_trace(trace):
    said = []
    found = wb.predict(trace, PROGRAM, progress=said.append)
    assert len(found.predicted) == 45 and found.withheld == ()
    labels = {each.label for each in found.predicted}
    assert {
        "off",
        "stage",
        "smart stage",
        "fused V1",
        "stage + fused V2 + inline executor",
    } <= labels
    off = found.of("off")
    assert off is not None and off.ratio == 1
    assert off.step_ms == trace.meta.untraced.step_ns / 1e6
    assert all(each.low <= each.ratio <= each.high for each in found.predicted)
    assert [line.split(" ")[0] for line in said][:2] == ["Building", "Tracing"]


def build_wide(_optimizations):
    import tensorflow as tf

    v1 = tf.compat.v1
    data = tf.data.Dataset.from_tensors(tf.ones([256, 512])).repeat()
    x = v1.data.make_one_shot_iterator(data).get_next()
    loss = tf.reduce_mean(tf.square(tf.matmul(x, v1.get_variable("w", [512, 512]))))
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss)


@pytest.mark.usefixtures("held")
def test_a_fused_graph_takes_what_its_own_steps_took(monkeypatch):
    program = wb.Program(name="wide", build=build_wide)
    trace = wb.trace(program, steps=5, warm_up_steps=15, progress=False)
    if not kernel_is_faster(transposed=True):
        assert wb.predict(trace, program, ["auto_fused"], progress=False).of("auto fused") is None
        return
    kept = []

    def sampled(*given):
        kept.append(sampled_graphs(*given))
        return kept[-1]

    monkeypatch.setattr(known_graphs, "sampled_graphs", sampled)
    found = wb.predict(trace, program, ["auto_fused"], progress=False).of("auto fused")
    (known,) = kept[0].values()
    (sample,) = known.samples.values()
    untraced_ms = sample.trace.meta.untraced.step_ns / 1e6
    assert "WorkbenchMatMul" in set(sample.trace.nodes["op"])
    # As long as its own steps, and compared with those that ran beside them.
    assert found.ratio == pytest.approx(sample.beside_ns / 1e6 / untraced_ms, rel=0.1)


@pytest.mark.usefixtures("held")
def test_what_goes_through_whole_tables_is_predicted_too():
    adam = functools.partial(build, optimizer="AdamOptimizer")
    program = wb.Program(name="adam", build=adam)
    trace = wb.trace(program, steps=5, warm_up_steps=15, progress=False)
    found = wb.predict(trace, program, ["auto_fused"], progress=False)
    assert found.withheld == ()
    assert {each.label for each in found.predicted} == {"off", "auto fused"}


def build_two_inputs(_optimizations):
    import tensorflow as tf

    v1 = tf.compat.v1
    data = tf.data.Dataset.from_tensors([1.0]).repeat()
    one, other = (v1.data.make_one_shot_iterator(data).get_next() for _ in range(2))
    loss = tf.reduce_sum((one + other) * v1.get_variable("w", [1]))
    tf.identity(loss * 2.0, name="unread")
    return wb.Built(train_op=v1.train.GradientDescentOptimizer(0.1).minimize(loss), loss=loss)


def test_a_graph_of_which_nothing_may_run_ahead_has_only_what_its_step_runs():
    program = wb.Program(name="two", build=build_two_inputs)
    found = describe_graph(program, wb.Optimizations(), wb.SmartStageOptions())
    assert "the step has 2 inputs" in found.problem
    runs = dict(zip(found.boundary.view.names, found.boundary.step.tolist(), strict=True))
    # Of a fused graph only what a step runs has costs: stock nodes stay there beside fused ones.
    assert runs["w"] and not runs["unread"]


def make():
    """Its variable is held by nothing but the step itself."""
    import tensorflow as tf

    table = tf.Variable(tf.random.normal([ROWS, DIM]))

    @tf.function
    def step(ids):
        vectors = tf.gather(table, ids % ROWS)
        table.assign_sub(0.1 * table)
        return tf.reduce_mean(tf.square(vectors))

    return step, tf.data.Dataset.range(10**6).batch(8)


@pytest.mark.executors
@pytest.mark.usefixtures("held")
def test_a_function_is_predicted_from_its_graph():
    program = wb.FunctionProgram(name="function", make=make)
    trace = wb.trace(program, steps=5, warm_up_steps=15, progress=False)
    found = wb.predict(trace, program, ["smart_stage", "fused_v1"], progress=False)
    assert {each.label for each in found.predicted} == {"off", "smart stage"}
    assert [each.reason for each in found.withheld] == [
        "the program builds no embedding lookup through Workbench"
    ]


def make_of_keras():
    import keras
    import tensorflow as tf

    ids = [keras.Input((1,), dtype="int64", name=f"ids{number}") for number in range(3)]
    vectors = [keras.layers.Embedding(ROWS, DIM)(each) for each in ids]
    x = keras.layers.Flatten()(keras.layers.Concatenate()(vectors))
    model = keras.Model(ids, keras.layers.Dense(1)(x))
    model.compile(optimizer=keras.optimizers.Adagrad(0.05), loss="mse")
    batch = (tuple(np.arange(4096)[:, None] % ROWS for _ in ids), np.ones([4096, 1], np.float32))
    return model, tf.data.Dataset.from_tensors(batch).repeat()


@pytest.mark.executors
@pytest.mark.usefixtures("held")
def test_fused_lookups_of_a_keras_model_are_predicted():
    program = wb.FunctionProgram(name="keras", make=make_of_keras)
    trace = wb.trace(program, steps=5, warm_up_steps=15, progress=False)
    found = wb.predict(trace, program, ["auto_fused", "smart_stage+auto_fused"], progress=False)
    assert found.withheld == ()
    assert {each.label for each in found.predicted} == {
        "off",
        "auto fused",
        "smart stage + auto fused",
    }


@pytest.mark.usefixtures("held")
def test_chosen_toggles_and_another_machine(trace):
    setting = wb.Optimizations(stage=wb.StageOptions())
    found = wb.predict(trace, PROGRAM, setting, cores=8, batch_ratio=2, progress=False)
    assert {each.label for each in found.predicted} == {
        "off",
        "8 cores + batch × 2",
        "stage + 8 cores + batch × 2",
    }


@pytest.mark.usefixtures("held")
def test_threads_that_a_name_joins_are_predicted_as_those_of_the_call(trace):
    named = wb.predict(trace, toggles=["inter_op_threads=1"], progress=False)
    given = wb.predict(trace, toggles=[], inter_op_threads=1, progress=False)
    (one, other) = (found.of("1 inter-op thread") for found in (named, given))
    assert one is not None and one == other


@pytest.mark.executors
@pytest.mark.usefixtures("held")
def test_a_trace_alone_says_what_executors_give_and_not_what_stages_do(trace):
    found = wb.predict(trace, toggles=["inline_executor", "stage"], progress=False)
    assert {each.label for each in found.predicted} == {"off", "inline executor"}
    assert [(each.label, each.reason) for each in found.withheld] == [
        ("stage", "what the program builds for it is not known without the program; give it")
    ]


@pytest.mark.usefixtures("held")
def test_stock_lookups_are_predicted_beside_traced_fused_ones():
    fused = wb.Optimizations(fused_embeddings="v1")
    trace = wb.trace(PROGRAM, fused, steps=3, warm_up_steps=2, progress=False)
    found = wb.predict(trace, PROGRAM, ["fused_v2"], traced=fused, progress=False)
    assert {each.label for each in found.predicted} == {"off", "fused V1", "fused V2"}
    assert found.of("fused V1").ratio == 1


def build_ending(optimizations):
    import tensorflow as tf

    v1 = tf.compat.v1
    data = tf.data.Dataset.range(60 if optimizations.fused_embeddings else 10**6).batch(8)
    ids = v1.data.make_one_shot_iterator(data).get_next()
    table = v1.get_variable("table", [100, DIM])
    sparse = tf.sparse.from_dense(tf.reshape(ids % 99 + 1, [-1, 1]))
    loss = tf.reduce_mean(tf.square(wb.safe_embedding_lookup_sparse(table, sparse)))
    return wb.Built(train_op=v1.train.AdagradOptimizer(0.1).minimize(loss), loss=loss)


@pytest.mark.usefixtures("held")
def test_a_graph_whose_steps_cannot_be_traced_is_withheld_and_the_others_are_not():
    program = wb.Program(name="ends", build=build_ending)
    trace = wb.trace(program, steps=5, warm_up_steps=5, progress=False)
    found = wb.predict(trace, program, ["fused_v1", "smart_stage"], progress=False)
    assert {each.label for each in found.predicted} == {"off", "smart stage"}
    (withheld,) = found.withheld
    assert withheld.reason == (
        "its steps cannot be traced: the data ended before the steps to trace; repeat the dataset"
    )


@pytest.mark.usefixtures("held")
def test_ceilings_and_work_made_faster(trace):
    found = wb.ceilings(trace, PROGRAM, progress=False)
    assert {each.label for each in found.predicted} == {
        "off",
        "no input",
        "no ids",
        "no lookups",
        "no dense",
    }
    assert min(each.ratio for each in found.predicted) >= 0.999
    faster = wb.speed_up(trace, {"MatMul*": 2, "lookups": 3}, PROGRAM, progress=False)
    both = faster.of("MatMul* 2× as fast + lookups 3× as fast")
    one = faster.of("MatMul* 2× as fast")
    assert both is not None and one is not None
    # Where the input bounds the step both are 1, but for the last digit of a sum.
    assert one.ratio >= 0.999 and both.ratio >= one.ratio - 1e-9


def test_wrong_arguments_are_refused(trace):
    with pytest.raises(OptionError, match="expected a Trace, such as wb.trace"):
        wb.predict(PROGRAM)
    with pytest.raises(OptionError, match="expected a wb.Program"):
        wb.predict(trace, build)
    with pytest.raises(OptionError, match="there is no toggle 'stages'"):
        wb.predict(trace, PROGRAM, ["stages"])
    with pytest.raises(OptionError, match="a toggle is StageOptions"):
        wb.predict(trace, PROGRAM, [wb.StageOptions()])
    with pytest.raises(OptionError, match="has intra-op threads, of which nothing is predicted"):
        wb.predict(trace, PROGRAM, ["stage+intra_op_threads=1"])
    with pytest.raises(OptionError, match="batches of 9 rows"):
        wb.predict(trace, PROGRAM, wb.Optimizations(batch_size=9))
    with pytest.raises(OptionError, match="cores is 0"):
        wb.predict(trace, PROGRAM, cores=0)
    with pytest.raises(OptionError, match="work is empty"):
        wb.speed_up(trace, {}, PROGRAM)


@pytest.mark.executors
def test_a_trace_of_a_stage_needs_the_program():
    staged = wb.trace(
        PROGRAM, wb.Optimizations(stage=wb.StageOptions()), steps=3, warm_up_steps=2, progress=False
    )
    with pytest.raises(TraceError, match="the trace has a stage"):
        wb.predict(staged, toggles=["inline_executor"], progress=False)
