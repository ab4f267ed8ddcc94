"""A user's own model: a graph, a tf.function or a Keras model, in a script and in a notebook."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys

import cloudpickle
import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import workbench as wb
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.errors import OptionError, RunError
from workbench.experiments.worker.process import started_workers
from workbench.experiments.worker.wire.messages import Open, RunSteps

# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

ROWS, DIM = 1000, 4
SMART = Optimizations(smart_stage=SmartStageOptions())


def batches(tf, count=50):
    """Batches of eight pairs of ids as text, and a label; they end."""

    def batch(i):
        ids = tf.random.stateless_uniform([8, 2], [1, i], maxval=10**6, dtype=tf.int32)
        text = tf.strings.reduce_join(tf.strings.as_string(ids), axis=1, separator=",")
        return text, tf.cast(tf.reduce_sum(ids, axis=1) % 2, tf.float32)

    return tf.data.Dataset.range(count).map(batch)


def make(*, lookup=None, returns=lambda loss, text: loss, count=50):
    """Sums of two vectors of a table, without a seed, trained towards the label."""
    import tensorflow as tf

    table = tf.Variable(tf.random.normal([ROWS, DIM]))

    @tf.function
    def step(text, label):
        ids = tf.strings.to_hash_bucket_fast(tf.strings.split(text, ",").to_tensor(), ROWS)
        with tf.GradientTape() as tape:
            vectors = lookup(table, ids) if lookup else tf.gather(table, ids[:, :2])
            logit = tf.reduce_sum(vectors, axis=list(range(1, vectors.shape.rank)))
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(label, logit))
        table.scatter_sub(tape.gradient(loss, table))
        return returns(loss, text)

    return step, batches(tf, count)


def sparse_lookup(table, ids):
    return wb.safe_embedding_lookup_sparse(table, __import__("tensorflow").sparse.from_dense(ids))


def make_sparse():
    return make(lookup=sparse_lookup)


def told_apart(loss, text):
    import tensorflow as tf

    return {"loss": loss, "fingerprint": tf.strings.to_hash_bucket_fast(text[0], 2**62)}


def make_told_apart():
    return make(returns=told_apart)


def make_keras():
    import keras
    import tensorflow as tf

    model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    data = np.random.default_rng(0).random((64, 5)).astype("float32")
    return model, tf.data.Dataset.from_tensor_slices((data, data[:, :1])).batch(8)


@pytest.fixture(scope="module")
def comparison():
    return wb.compare(
        wb.FunctionProgram(name="mine", make=make_told_apart, settings={"batch": 8}),
        ["smart_stage", "inline_executor", "smart_stage+cost_model_executor"],
        budget_s=0.5,
        trace_steps=5,
        equivalence_steps=60,
        progress=False,
    )


@pytest.mark.slow
@pytest.mark.executors
def test_a_function_is_compared_as_a_graph_is(comparison):
    assert [variant.label for variant in comparison.variants] == [
        "off",
        "smart stage",
        "inline executor",
        "smart stage + cost model executor",
    ]
    assert comparison.settings["batch"] == 8
    assert len(comparison.ratios) == 3
    plan = comparison.variants[1].plan
    assert any("StringToHashBucketFast" in name for name in plan.stages[0].moved)
    assert "stays" in plan.explain(plan.targets[0])
    # what cannot be had of a function is left out
    assert comparison.bounds == ()
    assert [ratio.predicted for ratio in comparison.ratios] == [None, None, None]


@pytest.mark.executors
def test_its_losses_and_batches_are_compared_beyond_the_end_of_the_data(comparison):
    found = [(check.kind, check.passed) for check in comparison.equivalence]
    assert found == [("bit-equal losses", True)] * 3 + [("same batches", True)] * 3
    assert comparison.equivalence[0].steps == 60


@pytest.mark.executors
def test_its_traces_show_input_ops_and_the_stage(comparison):
    off, smart, inline, _ = (variant.trace for variant in comparison.variants)
    for each in (off, smart, inline):
        each.self_check()
        assert len(each.steps()) == 5
        assert each.meta.source == "executor"
        assert each.meta.untraced.run_ns > 0
    assert (off.nodes["op"] == "IteratorGetNext").any()
    assert "prefetch" in set(smart.tracks["kind"])
    staged_ops = smart.nodes["op"][smart.events["node"][smart.events["track"] == 1].unique()]
    assert "StringToHashBucketFast" in set(staged_ops)
    taken = smart.items[smart.items["take_step"] > 0]
    assert len(taken) >= 4
    assert (taken["put_end_ns"] <= taken["take_end_ns"]).all()
    assert (smart.items["put_run"] > 0).any()


@pytest.mark.slow
def test_fused_lookups_of_a_function():
    found = wb.compare(
        wb.FunctionProgram(name="fused", make=make_sparse),
        ["fused_v1", "fused_v2"],
        budget_s=0.2,
        trace_steps=0,
        equivalence_steps=30,
        progress=False,
    )
    assert [check.passed for check in found.equivalence] == [True, True]
    assert found.equivalence[0].steps == 30


# Data of unknown length show it too, below.
@pytest.mark.slow
@pytest.mark.executors
def test_a_compiled_keras_model_is_a_step_too():
    found = wb.compare(
        wb.FunctionProgram(name="keras", make=make_keras),
        ["smart_stage", "inline_executor"],
        budget_s=0.2,
        trace_steps=2,
        equivalence_steps=20,
        progress=False,
    )
    assert [check.passed for check in found.equivalence] == [True, True]
    assert [len(variant.trace.steps()) for variant in found.variants] == [2, 2, 2]


def make_keras_of_unknown_length():
    model, dataset = make_keras()
    return model, dataset.filter(lambda x, y: True)


@pytest.mark.slow
@pytest.mark.executors
def test_the_receipt_says_that_fit_counts_the_end_of_data_of_unknown_length():
    found = wb.compare(
        wb.FunctionProgram(name="keras", make=make_keras_of_unknown_length),
        ["smart_stage", "inline_executor"],
        budget_s=0.2,
        trace_steps=2,
        equivalence_steps=20,
        progress=False,
    )
    assert [len(variant.trace.steps()) for variant in found.variants] == [2, 2, 2]
    staged, executor = found.equivalence
    assert staged.passed and executor.passed
    assert "plain fit counts one more step in optimizer.iterations" in staged.detail
    assert "optimizer.iterations" not in executor.detail


@pytest.mark.executors
def test_one_trace_of_a_function():
    program = wb.FunctionProgram(name="mine", make=make)
    found = wb.trace(program, Optimizations(executor="cost_model"), steps=3, progress=False)
    assert len(found.steps()) == 3
    assert found.meta.source == "executor"
    assert found.meta.untraced.run_ns > 0


class InTurn:
    """A `make` that is another one each time that it is called in its process."""

    def __init__(self, *makes):
        self.makes = list(makes)

    def __call__(self):
        return self.makes.pop(0)()


@contextlib.contextmanager
def worker_of(*makes):
    """A child process in which every opened session has the next make."""
    program = wb.FunctionProgram(name="mine", make=InTurn(*makes))
    with started_workers([("mine", program)]) as (worker,):
        yield worker


def open_main(worker, optimizations=SMART):
    worker.call(Open(session="main", optimizations=optimizations))


def make_without_lookup():
    return make()


def test_toggles_that_a_function_cannot_have():
    with pytest.raises(OptionError) as caught:
        wb.compare(wb.FunctionProgram(name="mine", make=make), ["stage"], progress=False)
    assert str(caught.value).startswith(
        "program 'mine' is a FunctionProgram, and the toggle 'stage'"
    )
    assert "toggles=['smart_stage']" in str(caught.value)
    with pytest.raises(OptionError, match="'mine' builds no embedding lookup through Workbench"):
        wb.compare(
            wb.FunctionProgram(name="mine", make=make_without_lookup), ["fused_v2"], progress=False
        )


def wrong(what):
    """Makes that are refused, and what is said of each."""
    import tensorflow as tf

    step, dataset = make()
    if what == "plain":
        return step.python_function, dataset
    if what == "one":
        return step
    if what == "data":
        return step, [1, 2]
    if what == "vector":
        return make(returns=lambda loss, text: tf.stack([loss, loss]))
    if what == "text":
        return make(returns=lambda loss, text: {"loss": loss, "fingerprint": text})
    if what == "graph":
        tf.compat.v1.disable_eager_execution()
        return step, dataset
    import keras

    model = keras.Sequential([keras.layers.Dense(1)])
    if what == "eagerly":
        model.compile("sgd", "mse", run_eagerly=True)
    return model, dataset


REFUSED = {
    "plain": "returned a step of type function; expected (train_step, dataset)",
    "one": "make returned a value of type Function; expected",
    "data": "returned a dataset of type list",
    "vector": "the step returns a float32 tensor of shape (2,); expected the loss",
    "text": "the step returns a string tensor of shape (8,) as 'fingerprint'",
    "uncompiled": "which is not compiled; call model.compile(",
    "eagerly": "compiled with run_eagerly=True",
    # the last one, as no function can be called after it
    "graph": "make switched eager execution off",
}


def test_what_make_must_return():
    makes = [functools.partial(wrong, what) for what in REFUSED]
    with worker_of(*makes) as worker:
        for said in REFUSED.values():
            with pytest.raises(OptionError) as caught:
                open_main(worker)
            assert said in str(caught.value)


def test_a_make_that_cannot_travel():
    lock = __import__("threading").Lock()
    with pytest.raises(RunError, match="make models, tf.functions, datasets .* inside its make"):
        wb.compare(
            wb.FunctionProgram(name="held", make=lambda: lock), "smart_stage", progress=False
        )


def raises_in_make():
    raise ValueError("no such column\nand more")


def raises_while_traced():
    import tensorflow as tf

    def bad(loss, text):
        return tf.matmul(tf.zeros([2, 3]), tf.zeros([5, 5]))

    return make(returns=bad)


def fails_in_a_step():
    import tensorflow as tf

    def bad(loss, text):
        return loss + tf.gather([1.0, 2.0], tf.strings.length(text[0]) + 7)

    return make(returns=bad)


def fails_in_the_data():
    import tensorflow as tf

    def rows():
        yield 1.0
        raise KeyError("row 2 is bad")

    @tf.function
    def step(row):
        return row

    return step, tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([]))


def line_of(function, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


ERRORS = [
    (raises_in_make, "raise ValueError", "ValueError: no such column"),
    (raises_while_traced, "tf.matmul", "ValueError: Dimensions must be equal, but are 3 and 5"),
    (fails_in_a_step, "tf.gather", "InvalidArgumentError: indices = "),
    (fails_in_the_data, "raise KeyError", "KeyError: 'row 2 is bad'"),
]


@pytest.mark.parametrize("optimizations", [Optimizations(), SMART], ids=["off", "smart"])
def test_the_users_error_comes_with_their_own_line(optimizations):
    with worker_of(*(error[0] for error in ERRORS)) as worker:
        for program_make, text, said in ERRORS:
            with pytest.raises(RunError) as caught:
                open_main(worker, optimizations)
                worker.call(RunSteps(session="main", steps=60, fetch="loss"))
            place = f"`{os.path.relpath(__file__)}`, line {line_of(program_make, text)}: "
            assert str(caught.value).startswith(place + said)
            assert "\n" not in str(caught.value)


CELL = """
import tensorflow as tf
import workbench as wb

def make():
    weight = tf.Variable(tf.random.normal([]))

    @tf.function
    def step(x):
        # AutoGraph: needs the source of the cell
        if x > 0.5:
            loss = tf.square(weight - tf.sin(x))
        else:
            loss = tf.square(weight)
        weight.assign_sub(0.1 * weight)
        return loss

    data = tf.data.Dataset.range(100).map(lambda i: tf.cast(i % 2, tf.float32))
    return step, data

found = wb.compare(
    wb.FunctionProgram(name="cell", make=make), ["smart_stage"],
    budget_s=0.2, trace_steps=0, equivalence_steps=10, progress=False,
)
print([check.passed for check in found.equivalence])
"""
GRAPH_CELL = """
def build(optimizations):
    v1 = tf.compat.v1
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(10**9)).get_next()
    if optimizations.stage:
        batch = wb.staged(batch, optimizations.stage)
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer())
    loss = tf.square(weight - tf.sin(tf.cast(batch, tf.float32)))
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss)

staged = wb.Optimizations(stage=wb.StageOptions())
found = wb.trace(wb.Program(name="graph", build=build), staged, steps=3, progress=False)
print(len(found.steps()), "prefetch" in set(found.tracks["kind"]))
"""
BAD_CELL = """
def bad():
    step, data = make()
    return step, data.no_such_method()
try:
    wb.trace(wb.FunctionProgram(name="bad", make=bad), progress=False)
except wb.WorkbenchError as error:
    print(error)
"""


# The third notebook does so, too.
@pytest.mark.slow
def test_both_work_from_a_notebook_cell():
    cells = [nbformat.v4.new_code_cell(source) for source in (CELL, GRAPH_CELL, BAD_CELL)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=200, kernel_name="python3").execute()
    said = [
        "".join(out.get("text", "") for out in cell.outputs if out.get("name") == "stdout")
        for cell in notebook.cells
    ]
    assert said[:2] == ["[True]\n", "3 True\n"]
    assert said[2].startswith("notebook cell, line 3: AttributeError: ")


def graph_of(optimizations, initializer):
    import tensorflow as tf

    v1 = tf.compat.v1
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(10**9)).get_next()
    if optimizations.stage:
        batch = wb.staged(batch, optimizations.stage)
    weight = v1.get_variable("w", initializer=initializer(tf))
    loss = tf.reduce_sum(tf.square(weight - tf.cast(batch, tf.float32)))
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return wb.Built(train_op=train_op, loss=loss)


def without_seeds(optimizations):
    return graph_of(
        optimizations,
        lambda tf: tf.random.normal([3]) + np.random.random(3).astype("float32"),
    )


def with_a_generator_of_its_own(optimizations):
    return graph_of(optimizations, lambda tf: np.random.default_rng().random(3, dtype="float32"))


@pytest.mark.parametrize("build", [without_seeds, with_a_generator_of_its_own])
def test_a_graph_without_seeds_begins_alike_or_is_told_what_to_do(build):
    (check,) = wb.compare(
        wb.Program(name="unseeded", build=build),
        ["stage"],
        budget_s=0.2,
        trace_steps=0,
        equivalence_steps=10,
        progress=False,
    ).equivalence
    assert check.passed == (build is without_seeds)
    assert ("generator of its own without a seed" in check.detail) != check.passed
