"""DeepRec's executor policies through `import workbench.compat.v1 as tf`, each in a process."""

from __future__ import annotations

import textwrap

import pytest

from tests.builders.scripts import printed, run_compat

pytestmark = pytest.mark.executors

MODEL = """
import os
step = tf.train.get_or_create_global_step()
w = tf.get_variable("w", [], initializer=tf.ones_initializer())
loss = tf.square(w - 3.0, name="loss")
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
sess_config = tf.ConfigProto()
"""
RUN = """
with tf.train.MonitoredTrainingSession(config=sess_config) as sess:
    for _ in range(8):
        sess.run(train_op)
    print(round(float(sess.run(loss)), 6))
    print(repr(sess._tf_sess()._config.experimental.executor_type))
"""
LOSS = "0.11259"
COST_MODEL = "WORKBENCH_COST_MODEL(start={},stop={},batch_ns=5000,batch_ops=100)"


def script(settings: str = "") -> str:
    return MODEL + textwrap.dedent(settings) + RUN


def test_the_documents_example_of_the_inline_executor_runs(tmp_path):
    lines = printed(
        script("sess_config.executor_policy = tf.ExecutorPolicy.USE_INLINE_EXECUTOR"), tmp_path
    )
    assert lines == [LOSS, "'WORKBENCH_INLINE'"]


def test_the_documents_example_of_the_cost_model_runs_with_its_steps(tmp_path):
    lines = printed(
        script(
            """
            os.environ['START_NODE_STATS_STEP'] = "200"
            os.environ['STOP_NODE_STATS_STEP'] = "500"
            sess_config.executor_policy = tf.ExecutorPolicy.USE_COST_MODEL_EXECUTOR
            """
        ),
        tmp_path,
    )
    assert lines == [LOSS, repr(COST_MODEL.format(200, 500))]


def test_the_cost_model_learns_in_the_steps_that_the_variables_name(tmp_path):
    lines = printed(
        """
        import os, workbench
        os.environ['START_NODE_STATS_STEP'] = "2"
        os.environ['STOP_NODE_STATS_STEP'] = "5"
        x = tf.square(tf.constant(3.0) + tf.random.uniform([]), name="squared")
        config = tf.ConfigProto(executor_policy=tf.ExecutorPolicy.USE_COST_MODEL_EXECUTOR)
        with tf.Session(config=config) as sess:
            for _ in range(9):
                sess.run(x)
            frame = workbench.costs.learned_costs().nodes.set_index("node")
            print(frame.loc["squared", "learned"], frame.loc["squared", "count"])
        """,
        tmp_path,
    )
    assert lines == ["True 3"]


def test_the_normal_policy_is_stock_tensorflows_own_executor(tmp_path):
    assert printed(script("sess_config.executor_policy = 0"), tmp_path) == [LOSS, "''"]


def test_steps_that_never_let_it_learn_warn_once_and_run_as_usual(tmp_path):
    done = run_compat(
        script(
            """
            os.environ['START_NODE_STATS_STEP'] = "200"
            os.environ['STOP_NODE_STATS_STEP'] = "100"
            sess_config.executor_policy = tf.ExecutorPolicy.USE_COST_MODEL_EXECUTOR
            with tf.Session(config=sess_config), tf.Session(config=sess_config):
                pass
            """
        ),
        tmp_path,
    )
    assert done.stdout.splitlines() == [LOSS, "''"], done.stderr[-2000:]
    said = (
        "USE_COST_MODEL_EXECUTOR stays inactive, and steps are scheduled as usual: "
        "START_NODE_STATS_STEP is 200 and STOP_NODE_STATS_STEP is 100, but costs are learned only "
        "if 0 < START < STOP (DeepRec's document says it the other way round); set for example "
        "START_NODE_STATS_STEP=100 and STOP_NODE_STATS_STEP=200"
    )
    assert done.stderr.count(said) == 1
    assert done.stderr.count("stays inactive") == 1


def test_the_environment_chooses_where_the_script_does_not(tmp_path):
    lines = printed(
        """
        import os
        def said(policy=None, executor_type="", **environment):
            os.environ.update(environment)
            config = tf.ConfigProto()
            config.experimental.executor_type = executor_type
            if policy is not None:
                config.executor_policy = policy
            print(config.to_stock().experimental.executor_type.partition("(")[0] or "stock's own")
            for name in environment:
                del os.environ[name]
        print(tf.ConfigProto(executor_policy=2).to_stock().experimental.executor_type)
        said()
        said(USE_INLINE_EXECUTOR="true")
        said(USE_COST_MODEL_EXECUTOR="1")
        said(USE_INLINE_EXECUTOR="False", USE_COST_MODEL_EXECUTOR="0")
        # DeepRec looks at the cost model first
        said(USE_INLINE_EXECUTOR="True", USE_COST_MODEL_EXECUTOR="TRUE")
        # the script's own word counts more
        said(tf.ExecutorPolicy.USE_INLINE_EXECUTOR, USE_COST_MODEL_EXECUTOR="1")
        said(tf.ExecutorPolicy.USE_NORMAL_EXECUTOR, USE_INLINE_EXECUTOR="1")
        said(executor_type="DEFAULT", USE_INLINE_EXECUTOR="1")
        # inactive in each of these
        policy = tf.ExecutorPolicy.USE_COST_MODEL_EXECUTOR
        said(policy, START_NODE_STATS_STEP="0")
        said(policy, START_NODE_STATS_STEP="5", STOP_NODE_STATS_STEP="5")
        said(policy, STOP_NODE_STATS_STEP="-1")
        said(policy, START_NODE_STATS_STEP="5", STOP_NODE_STATS_STEP="6")
        """,
        tmp_path,
    )
    inline, cost_model, stock = "WORKBENCH_INLINE", "WORKBENCH_COST_MODEL", "stock's own"
    assert lines == [
        # DeepRec's defaults
        COST_MODEL.format(100, 200),
        *[stock, inline, cost_model, stock, cost_model, inline, stock, "DEFAULT"],
        *[stock, stock, stock, cost_model],
    ]


def test_the_environment_reaches_sessions_without_a_config(tmp_path):
    lines = printed(
        """
        import os
        os.environ['USE_INLINE_EXECUTOR'] = '1'
        with tf.Session() as sess:
            print(sess.run(tf.constant(2)), sess._config.experimental.executor_type)
        """,
        tmp_path,
    )
    assert lines == ["2 WORKBENCH_INLINE"]


def test_bad_values_are_said(tmp_path):
    lines = printed(
        """
        import os
        def attempt(policy=None, executor_type="", **environment):
            os.environ.update(environment)
            config = tf.ConfigProto()
            config.experimental.executor_type = executor_type
            try:
                if policy is not None:
                    config.executor_policy = policy
                config.to_stock()
                print("passed")
            except ValueError as error:
                print(error)
            for name in environment:
                del os.environ[name]
        attempt(USE_INLINE_EXECUTOR="yes")
        attempt(2, STOP_NODE_STATS_STEP="late")
        attempt(7)
        attempt("USE_TURBO")
        attempt(tf.ExecutorPolicy.USE_INLINE_EXECUTOR, "DEFAULT")
        attempt(tf.ExecutorPolicy.USE_INLINE_EXECUTOR, "WORKBENCH_INLINE")
        """,
        tmp_path,
    )
    names = ("USE_NORMAL_EXECUTOR", "USE_INLINE_EXECUTOR", "USE_COST_MODEL_EXECUTOR")
    policies = ", ".join(f"tf.ExecutorPolicy.{name}" for name in names)
    assert lines == [
        "the environment variable USE_INLINE_EXECUTOR is 'yes'; expected true or false, 1 or 0",
        "the environment variable STOP_NODE_STATS_STEP is 'late'; expected the number of a step, "
        "such as 200",
        f"ConfigProto.executor_policy is 7; expected one of {policies}",
        f"ConfigProto.executor_policy is 'USE_TURBO'; expected one of {policies}",
        "ConfigProto.executor_policy is USE_INLINE_EXECUTOR, which is the executor "
        "'WORKBENCH_INLINE', but ConfigProto.experimental.executor_type is 'DEFAULT'; set one of "
        "the two",
        "passed",
    ]


def test_the_policy_is_a_field_like_any_other(tmp_path):
    lines = printed(
        """
        import copy
        config = tf.ConfigProto(executor_policy="USE_INLINE_EXECUTOR", allow_soft_placement=True)
        other = tf.ConfigProto()
        print(config.executor_policy.name, other.executor_policy.name, int(config.executor_policy))
        other.CopyFrom(config)
        print(other.executor_policy.name, copy.deepcopy(config).executor_policy.name)
        other.CopyFrom(config.to_stock())
        print(other.executor_policy.name, other.to_stock().experimental.executor_type)
        config.executor_policy = tf.ExecutorPolicy.USE_NORMAL_EXECUTOR
        print(repr(config.to_stock().experimental.executor_type))
        """,
        tmp_path,
    )
    assert lines == [
        "USE_INLINE_EXECUTOR USE_NORMAL_EXECUTOR 1",
        "USE_INLINE_EXECUTOR USE_INLINE_EXECUTOR",
        "USE_NORMAL_EXECUTOR WORKBENCH_INLINE",
        "''",
    ]


def test_a_policy_goes_with_a_smart_stage(tmp_path):
    lines = printed(
        """
        x = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        y = tf.cast(x * 2, tf.float32) * w
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.do_smart_stage = True
        config.executor_policy = tf.ExecutorPolicy.USE_COST_MODEL_EXECUTOR
        hooks = [tf.make_prefetch_hook()]
        with tf.train.MonitoredTrainingSession(config=config, hooks=hooks) as sess:
            print([float(sess.run(y)) for _ in range(3)])
            found = sess._tf_sess()._config
            print(found.experimental.executor_type.partition("(")[0])
            print(len(found.graph_options.rewrite_options.custom_optimizers))
        """,
        tmp_path,
    )
    assert lines == ["[0.0, 2.0, 4.0]", "WORKBENCH_COST_MODEL", "1"]


@pytest.mark.parametrize("policy", ["USE_INLINE_EXECUTOR", "USE_COST_MODEL_EXECUTOR"])
def test_the_examples_run_against_a_server_too(policy, tmp_path):
    lines = printed(
        f"""
        server = tf.train.Server.create_local_server()
        step = tf.train.get_or_create_global_step()
        train_op = tf.assign_add(step, 1)
        sess_config = tf.ConfigProto()
        sess_config.executor_policy = tf.ExecutorPolicy.{policy}
        with tf.train.MonitoredTrainingSession(master=server.target, config=sess_config) as sess:
            print([int(sess.run(train_op)) for _ in range(3)])
        """,
        tmp_path,
    )
    assert lines == ["[1, 2, 3]"]
