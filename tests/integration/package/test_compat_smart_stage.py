"""DeepRec's SmartStage scripts through `import workbench.compat.v1 as tf`, each in a process."""

from __future__ import annotations

import textwrap

import pytest
import tensorflow as tf

from tests.builders.scripts import printed, run_compat
from workbench.compat.config import ConfigProto
from workbench.compat.smart_stage import SmartStageOptions
from workbench.core.session.rewrite import applied_in

v1 = tf.compat.v1

CLICKS = "".join(f"a{i},b{i}\n" for i in range(12))
MODEL = """
x = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
{stage}
y = tf.cast(x * 2, tf.float32)
w = tf.get_variable("w", [], initializer=tf.ones_initializer())
loss = y * w
config = tf.ConfigProto()
options = config.graph_options.optimizer_options
"""
RUN = """
with tf.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as sess:
    print([float(sess.run(loss)) for _ in range(3)])
    from workbench.core.session.rewrite import applied_in
    applied = applied_in(sess._tf_sess()._config)
    print([(s.name, s.options.capacity, s.options.num_threads)
           for s in applied.plan.stages] if applied else applied)
"""


def script(settings: str, stage: str = "") -> str:
    return MODEL.format(stage=stage) + textwrap.dedent(settings) + RUN


def test_the_example_of_smart_stage_runs_and_leaves_the_graph_as_it_is(tmp_path):
    (tmp_path / "1.txt").write_text(CLICKS)
    lines = printed(
        """
        filename_queue = tf.train.string_input_producer(['1.txt'], shuffle=False)
        reader = tf.TextLineReader()
        k, v = reader.read(filename_queue)

        var = tf.get_variable("var", shape=[100, 3], initializer=tf.ones_initializer())
        v = tf.train.batch([v], batch_size=2, capacity=20 * 3)
        v0, v1 = tf.decode_csv(v, record_defaults=[[''], ['']], field_delim=',')
        xx = tf.staged([v0, v1])

        xx[0]=tf.string_to_hash_bucket(xx[0],num_buckets=10)
        xx[0] = tf.nn.embedding_lookup(var, xx[0])
        xx[1]=tf.concat([xx[1], ['xxx']], axis = 0)
        target = tf.concat([tf.as_string(xx[0]), [xx[1], xx[1]]], 0)

        config = tf.ConfigProto()
        config.graph_options.optimizer_options.do_smart_stage = True
        tf.train.mark_target_node([target])

        with tf.train.MonitoredTrainingSession(config=config,
                                               hooks=[tf.make_prefetch_hook()]) as sess:
            before = tf.get_default_graph().as_graph_def().SerializeToString(deterministic=True)
            for i in range(5):
                print(sess.run([target])[0][2].tolist())
            after = tf.get_default_graph().as_graph_def().SerializeToString(deterministic=True)
            print(before == after)
            from workbench.core.session.rewrite import applied_in
            plan = applied_in(sess._tf_sess()._config).plan
            print([s.start for s in plan.stages], "StringToHashBucket" in plan.stages[0].moved_ops)
        """,
        tmp_path,
    )
    assert lines == [
        *(f"[b'b{2 * i}', b'b{2 * i + 1}', b'xxx']" for i in range(5)),
        "True",
        "[('prefetch/take',)] True",
    ]


@pytest.mark.parametrize("stage", ["", "x = tf.staged(x)"])
def test_do_smart_stage_finds_the_stage_or_the_input(stage, tmp_path):
    lines = printed(script("options.do_smart_stage = True", stage), tmp_path)
    names = ["smart_stage"] if stage else ["smart_stage_input", "smart_stage"]
    assert lines == ["[0.0, 2.0, 4.0]", str([(name, 1, 1) for name in names])]


def test_smart_stage_options_reach_the_stage(tmp_path):
    lines = printed(
        script(
            """
            options.do_smart_stage = True
            options.smart_stage_options.CopyFrom(tf.SmartStageOptions(capacity=5, name="ahead"))
            other = tf.ConfigProto()
            other.CopyFrom(config)
            config = other
            """
        ),
        tmp_path,
    )
    assert lines == ["[0.0, 2.0, 4.0]", "[('ahead_input', 5, 1), ('ahead', 5, 1)]"]


def test_every_option_of_a_stage_reaches_it():
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(9)).get_next()
    v1.get_variable("w", [], tf.int64, initializer=v1.zeros_initializer()).assign(batch * 2)
    asked = {
        "capacity": 3,
        "num_threads": 2,
        "timeout_millis": 1000,
        "closed_exception_types": (tf.errors.DATA_LOSS,),
        "ignored_exception_types": (tf.errors.INVALID_ARGUMENT,),
        "use_stage_subgraph_thread_pool": True,
        "stage_subgraph_thread_pool_id": 1,
        "stage_subgraph_stream_id": 2,
    }
    config = ConfigProto()
    config.graph_options.optimizer_options.do_smart_stage = True
    config.graph_options.optimizer_options.smart_stage_options.CopyFrom(SmartStageOptions(**asked))
    applied = applied_in(config.to_stock(v1.get_default_graph()))
    options = applied.plan.stages[-1].options
    for name, value in asked.items():
        found = getattr(options, name)
        if name == "closed_exception_types":
            # The stage that reads the input before it ends so.
            value = (*sorted({*value, tf.errors.OUT_OF_RANGE}),)
        assert found == value, name


def test_without_the_switch_the_options_do_nothing(tmp_path):
    lines = printed(
        script("options.smart_stage_options = tf.SmartStageOptions(capacity=5)"), tmp_path
    )
    assert lines == ["[0.0, 2.0, 4.0]", "None"]


def test_the_gpu_switch_without_a_gpu_is_the_plain_one_and_warns_once(tmp_path):
    done = run_compat(
        script(
            """
            options.do_smart_stage_gpu = True
            with tf.Session(config=config), tf.Session(config=config):
                pass
            """
        ),
        tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[1] == "[('smart_stage_input', 1, 1), ('smart_stage', 1, 1)]"
    assert done.stderr.count("do_smart_stage_gpu: this machine has no GPU") == 1


def test_a_graph_without_input_is_left_alone_with_a_warning(tmp_path):
    done = run_compat(
        """
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.do_smart_stage = True
        x = tf.placeholder(tf.float32)
        with tf.Session(config=config) as sess:
            print(sess.run(x * 2, {x: 3.0}))
        """,
        tmp_path,
    )
    assert done.stdout.splitlines() == ["6.0"]
    assert "do_smart_stage: the graph is left as it is: no stage and no input" in done.stderr


def test_several_inputs_are_refused_by_name(tmp_path):
    done = run_compat(
        """
        data = tf.data.Dataset.range(9)
        a = tf.data.make_one_shot_iterator(data).get_next()
        b = tf.data.make_one_shot_iterator(data).get_next()
        w = tf.get_variable("w", [], tf.int64, initializer=tf.ones_initializer())
        loss = a + b + w
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.do_smart_stage = True
        tf.Session(config=config)
        """,
        tmp_path,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "PlanError: the step has 2 inputs, and which one to stage is not clear" in last
    assert "'IteratorGetNext'" in last and "'IteratorGetNext_1'" in last


def test_every_kind_of_session_plans_for_its_graph(tmp_path):
    body = textwrap.indent(MODEL.format(stage=""), "        ")
    lines = printed(
        f"""
import contextlib, workbench
from workbench.core.session.rewrite import applied_in
hook = tf.make_prefetch_hook
kinds = {{
    "Singular": lambda c: tf.train.SingularMonitoredSession(config=c, hooks=[hook()]),
    "Creator": lambda c: tf.train.MonitoredSession(
        tf.train.ChiefSessionCreator(config=c), hooks=[hook()]),
    "Server": lambda c: tf.train.MonitoredTrainingSession(
        tf.train.Server.create_local_server().target, config=c, hooks=[hook()]),
    "Supervisor": lambda c: tf.train.Supervisor().managed_session(config=c),
    "Session": lambda c: tf.Session(config=c),
}}
for kind, opened in kinds.items():
    with tf.Graph().as_default():
{body}
        options.do_smart_stage = True
        raw = kind in ("Supervisor", "Session")
        init = tf.global_variables_initializer()
        with opened(config) as sess:
            if raw:
                sess.run(init)
            with workbench.prefetching(sess) if raw else contextlib.nullcontext():
                values = [float(sess.run(loss)) for _ in range(3)]
            under = sess if raw else sess._tf_sess() if hasattr(sess, "_tf_sess") else sess
            under = under.raw_session() if hasattr(under, "raw_session") else under
            print(kind, values, len(applied_in(under._config).plan.stages))
""",
        tmp_path,
    )
    kinds = ("Singular", "Creator", "Server", "Supervisor", "Session")
    assert lines == [f"{kind} [0.0, 2.0, 4.0] 2" for kind in kinds]


def test_a_session_that_is_opened_twice_plans_for_what_the_graph_is_then(tmp_path):
    lines = printed(
        MODEL.format(stage="")
        + """
options.do_smart_stage = True
for _ in range(2):
    with tf.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as sess:
        print(float(sess.run(loss)), float(sess.run(loss)))
""",
        tmp_path,
    )
    assert lines == ["0.0 2.0"] * 2


def test_bad_values_are_said(tmp_path):
    lines = printed(
        MODEL.format(stage="")
        + """
def attempt(make):
    try:
        make()
        print("passed")
    except (ValueError, TypeError) as error:
        print(error)
attempt(lambda: tf.SmartStageOptions(capacity=0))
attempt(lambda: tf.SmartStageOptions(num_clients=0))
attempt(lambda: tf.SmartStageOptions(graph=tf.Graph()))
attempt(lambda: tf.SmartStageOptions(ignored_exception_types=[99]))
attempt(lambda: options.smart_stage_options.CopyFrom(3))
attempt(lambda: setattr(options, "do_smart_stage", "yes"))
""",
        tmp_path,
    )
    said = (
        "SmartStageOptions.capacity is 0",
        "SmartStageOptions.num_clients is 0",
        "another graph than the default one",
        "99 is not an exception type",
        "was given 3 of type int; expected tf.Smart",
        "do_smart_stage is 'yes'; expected a bool",
    )
    assert len(lines) == len(said)
    assert all(part in line for part, line in zip(said, lines, strict=True)), lines
