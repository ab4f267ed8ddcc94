"""Executor policies in real sessions and calls of functions; their toggles in child processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import cloudpickle
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import workbench as wb
from workbench.core.executor.learned_costs import LearnedCosts
from workbench.core.executor.policy import executor_type
from workbench.core.graph.longest_paths import longest_paths
from workbench.core.options import CostModelOptions, ExecutorPolicy
from workbench.core.tf_graph.import_graph import graph_view
from workbench.errors import OptionError
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.trace import trace
from workbench.experiments.program.program import Built, Program

v1 = tf.compat.v1
# The child cannot import a test module by name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

POLICIES = list(ExecutorPolicy)
TYPES = {
    "normal": "WORKBENCH_NORMAL",
    "inline": "WORKBENCH_INLINE",
    "cost_model": "WORKBENCH_COST_MODEL(start=100,stop=200,batch_ns=5000,batch_ops=100)",
}


def branches(count: int = 8) -> tf.Tensor:
    """A sum of products that can run side by side."""
    x = tf.fill([16, 16], 1.5)
    return tf.add_n([tf.reduce_sum(tf.matmul(x, x * i)) for i in range(1, count + 1)])


def train() -> tuple[tf.Tensor, tf.Operation]:
    """A small model; every step has another batch."""
    step = v1.train.get_or_create_global_step()
    x = tf.random.stateless_normal([8, 4], seed=tf.stack([step, tf.constant(7, tf.int64)]))
    w = v1.get_variable("w", [4, 1], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(x @ w - tf.reduce_sum(x, axis=1, keepdims=True)))
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)


@pytest.mark.parametrize("policy", [*POLICIES, *TYPES])
def test_a_policy_is_an_executor_type_of_the_session(policy):
    config = wb.executor_options(policy)
    assert config.experimental.executor_type == TYPES[str(policy)]
    total = branches()
    with v1.Session() as plain, v1.Session(config=config) as session:
        assert session.run(total) == plain.run(total)


def test_the_given_config_is_copied():
    given = v1.ConfigProto(inter_op_parallelism_threads=3)
    made = wb.executor_options("inline", config=given)
    assert made.inter_op_parallelism_threads == 3
    assert given.experimental.executor_type == ""


def test_numbers_reach_the_cost_model():
    made = wb.executor_options(
        "cost_model", start_step=5, stop_step=9, batch_ns=20_000, batch_ops=7
    )
    assert made.experimental.executor_type == (
        "WORKBENCH_COST_MODEL(start=5,stop=9,batch_ns=20000,batch_ops=7)"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "turbo"}, "there is no executor policy 'turbo'; expected one of 'normal'"),
        (
            {"policy": "cost_model", "start_step": 200, "stop_step": 100},
            "active only if 0 < START < STOP",
        ),
        ({"policy": "inline", "config": 3}, "config is 3 of type int; expected a tf.compat.v1.Con"),
    ],
)
def test_mistakes_are_said_at_once(arguments, said):
    with pytest.raises(OptionError, match=said):
        wb.executor_options(**arguments)


def test_mistakes_in_a_with_statement_are_said_too():
    with pytest.raises(OptionError, match="0 < START < STOP"), wb.executor("inline", start_step=0):
        pass


@pytest.mark.parametrize("policy", POLICIES)
def test_training_is_the_same_to_the_bit(policy):
    runs = []
    for config in (None, wb.executor_options(policy, start_step=3, stop_step=6)):
        with tf.Graph().as_default():
            loss, train_op = train()
            with v1.train.MonitoredTrainingSession(config=config) as session:
                runs.append([session.run([loss, train_op])[0] for _ in range(20)])
    assert np.array(runs[0]).tobytes() == np.array(runs[1]).tobytes()
    assert runs[0][0] > runs[0][-1]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_calls_of_a_function_go_through_it(policy):
    with context.eager_mode():

        @tf.function
        def inner(x):
            return tf.reduce_sum(x * 2.0)

        @tf.function
        def outer(x):
            return inner(x) + inner(x + 1.0)

        x = tf.ones([3])
        expected = outer(x)
        with wb.executor(policy):
            assert context.context().function_call_options.executor_type == TYPES[str(policy)]
            assert outer(x) == expected
        assert not context.context().function_call_options.executor_type
        assert outer(x) == expected


def test_executors_of_calls_nest_and_end_with_an_error():
    def now():
        return context.context().function_call_options.executor_type or ""

    with wb.executor("inline"):
        with pytest.raises(ZeroDivisionError), wb.executor("normal"):
            assert now() == "WORKBENCH_NORMAL"
            raise ZeroDivisionError
        assert now() == "WORKBENCH_INLINE"
    assert now() == ""


def test_other_threads_keep_their_own_executor():
    seen = []
    with wb.executor("inline"):
        thread = threading.Thread(
            target=lambda: seen.append(context.context().function_call_options.executor_type)
        )
        thread.start()
        thread.join()
    assert not seen[0]


def learned_of(name: str) -> LearnedCosts:
    """What was learned by executors that have a node of this name: others may be alive."""
    found = wb.costs.learned_costs()
    with_it = found.nodes.loc[found.nodes["node"] == name, "executor"]
    return LearnedCosts(found.nodes[found.nodes["executor"].isin(with_it)])


def test_costs_are_learned_saved_given_and_learned_again(tmp_path):
    slow = tf.matmul(tf.random.normal([300, 300]), tf.random.normal([300, 300]), name="slow_one")
    total = tf.add(tf.reduce_sum(slow), branches(), name="total_one")
    config = wb.executor_options("cost_model", start_step=2, stop_step=6)
    with v1.Session(config=config) as session:
        for _ in range(4):
            session.run(total)
        assert not learned_of("slow_one").nodes["learned"].any()
        for _ in range(6):
            session.run(total)
        costs = learned_of("slow_one")
        frame = costs.nodes.set_index("node")
        assert frame["learned"].all()
        assert "MatMul" in frame.loc["slow_one", "op"]
        assert frame.loc["slow_one", "count"] == 4
        assert frame.loc["slow_one", "average_ns"] > 20_000
        assert frame.loc["slow_one", "critical_path_ns"] >= frame.loc["total_one", "average_ns"]
        assert frame["slack_ns"].min() == 0
        assert costs.executors()["critical_path_ns"].iloc[0] <= frame["average_ns"].sum()
        wb.costs.relearn_costs()
        session.run(total)
        costs.save(tmp_path / "costs")
    read = wb.costs.load_learned_costs(tmp_path / "costs")
    assert read.average_ns() == costs.average_ns()
    try:
        wb.costs.preload_costs(read)
        with v1.Session(config=wb.executor_options("cost_model")) as session:
            session.run(total)
            given = learned_of("slow_one").nodes.set_index("node")
            assert given.loc["slow_one", "average_ns"] == frame.loc["slow_one", "average_ns"]
    finally:
        wb.costs.preload_costs(None)


def test_the_native_critical_path_is_that_of_python():
    whole = v1.ConfigProto()
    whole.graph_options.rewrite_options.disable_meta_optimizer = True
    whole.graph_options.optimizer_options.opt_level = -1
    x = tf.random.uniform([40, 40], name="drawn")
    total = tf.add_n([tf.reduce_sum(tf.matmul(x, x * float(i))) for i in range(4)], name="all_sums")
    config = wb.executor_options("cost_model", start_step=2, stop_step=5, config=whole)
    with v1.Session(config=config) as session:
        for _ in range(7):
            session.run(total)
        native = learned_of("all_sums").nodes.set_index("node")
    view = graph_view(tf.compat.v1.get_default_graph())
    # what the session adds: a node that returns the fetched tensor
    names = [*view.names, "_retval_all_sums_0_0"]
    edges = [*view.data[:, [0, 2]].tolist(), [view.number("all_sums"), len(view)]]
    found = longest_paths(native["average_ns"].reindex(names).to_numpy(), edges)
    assert found.to_sink_ns.tolist() == native["critical_path_ns"].reindex(names).tolist()
    assert found.slack_ns.tolist() == native["slack_ns"].reindex(names).tolist()
    assert found.length_ns > 0


def test_a_loop_counts_with_all_its_rounds():
    x = tf.random.uniform([40, 40])
    last = tf.while_loop(lambda i, c: i < 20, lambda i, c: (i + 1, tf.matmul(c, x)), [0, x])[1]
    total = tf.reduce_sum(last, name="of_the_last_round")
    with v1.Session(config=wb.executor_options("cost_model", start_step=2, stop_step=5)) as session:
        for _ in range(7):
            session.run(total)
        nodes = learned_of("of_the_last_round").nodes
    (product,) = nodes[nodes["op"].isin(["MatMul", "_MklMatMul"])].itertuples()
    assert product.count == 20 * product.steps
    assert product.critical_path_ns >= 19 * product.average_ns > 0


def test_an_executor_of_given_settings_is_registered_once():
    options = CostModelOptions(start_step=11, stop_step=12)
    names = {executor_type("cost_model", options) for _ in range(3)}
    assert len(names) == 1


@pytest.mark.slow
def test_a_policy_needs_no_import_of_anything_else():
    code = """
        import workbench as wb
        config = wb.executor_options("inline")
        import tensorflow as tf
        with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
            print(session.run(tf.constant(2) + 3))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "5\n", done.stderr[-2000:]


def build(optimizations):
    """One weight, trained towards a number that is worked out of the batch."""
    import tensorflow as tf

    v1 = tf.compat.v1
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    dataset = tf.data.Dataset.range(10_000_000).with_options(plain)
    batch = v1.data.make_one_shot_iterator(dataset).get_next()
    wanted = tf.sin(tf.cast(batch, tf.float32) * 1e-3)
    weight = v1.get_variable("w", [], initializer=v1.zeros_initializer(), use_resource=False)
    loss = tf.square(wanted - weight, name="loss")
    step = v1.train.get_or_create_global_step()
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return Built(train_op=train_op, loss=loss, fingerprint=tf.identity(batch, name="which"))


PROGRAM = Program(name="tiny", build=build)


def test_toggles_put_the_session_on_the_executor_and_training_stays_the_same():
    found = compare(
        PROGRAM,
        ("inline_executor", "smart_stage+cost_model_executor"),
        budget_s=0.5,
        trace_steps=5,
        equivalence_steps=80,
        progress=False,
    )
    labels = ["off", "inline executor", "smart stage + cost model executor"]
    assert [variant.label for variant in found.variants] == labels
    losses = [check for check in found.equivalence if check.kind == "bit-equal losses"]
    assert [(check.label, check.passed) for check in losses] == [(n, True) for n in labels[1:]]
    assert all(check.passed for check in found.equivalence), found.equivalence
    assert found.settings["cost_model_executor.start_step"] == 10
    assert found.settings["cost_model_executor.stop_step"] == 40
    assert [ratio.predicted for ratio in found.ratios] == [None, None]
    assert all(len(variant.trace.steps()) == 5 for variant in found.variants)


def reports_learning(optimizations):
    """`build`, whose hook leaves a file once an executor of this process has learned."""
    import tensorflow as tf

    import workbench as wb

    class Reporting(tf.compat.v1.train.SessionRunHook):
        def end(self, session):
            costs = wb.costs.learned_costs().nodes
            learned = costs[(costs["node"] == "loss") & costs["learned"]]
            orders = [order for order in learned["order"] if order != "trying"]
            said = f"{len(learned)} {learned['steps'].max()} {len(orders)}"
            tf.io.gfile.GFile(PLACE[0], "w").write(said)

    built = build(optimizations)
    # not the baseline, whose process may end last
    hooks = [Reporting()] if optimizations.executor else []
    return Built(train_op=built.train_op, loss=built.loss, hooks=hooks)


PLACE: list[str] = []


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["compare", "trace"])
def test_learning_is_over_before_anything_is_measured_or_traced(ask, tmp_path):
    PLACE[:] = [str(tmp_path / "said")]
    program = Program(name="learning", build=reports_learning)
    if ask == "trace":
        wish = wb.Optimizations(executor="cost_model")
        trace(program, wish, steps=2, warm_up_steps=1, progress=False)
    else:
        compare(
            program,
            "cost_model_executor",
            budget_s=0.3,
            trace_steps=0,
            equivalence_steps=0,
            progress=False,
        )
    # the fetches that are measured, over all the steps it may learn from, in the order it keeps
    assert (tmp_path / "said").read_text() == "1 30 1"
