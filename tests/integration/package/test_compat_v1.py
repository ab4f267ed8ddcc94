"""`import workbench.compat.v1 as tf`: DeepRec's scripts on stock TensorFlow.

Each script runs in a process of its own, because the import switches TensorFlow to v1 behaviour.
"""

from __future__ import annotations

import pytest

from tests.builders.scripts import printed, run_compat


def test_a_script_of_readers_queues_and_a_stage_runs(tmp_path):
    (tmp_path / "clicks.txt").write_text("a,b\nc,d\n")
    lines = printed(
        """
        files = tf.train.string_input_producer(["clicks.txt"])
        _, line = tf.TextLineReader().read(files)
        table = tf.get_variable("table", [10, 3], initializer=tf.ones_initializer())
        lines = tf.train.batch([line], batch_size=2, capacity=12)
        left, right = tf.decode_csv(lines, record_defaults=[[""], [""]], field_delim=",")
        parts = tf.staged([left, right])
        parts[0] = tf.string_to_hash_bucket(parts[0], num_buckets=10)
        parts[0] = tf.nn.embedding_lookup(table, parts[0])
        target = tf.concat([tf.as_string(parts[0])[:, 0], parts[1]], axis=0)
        tf.train.mark_target_node([target])
        with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
            for _ in range(5):
                print(sess.run([target])[0].tolist())
        """,
        tmp_path,
        fresh=True,
    )
    assert lines == ["[b'1.000000', b'1.000000', b'b', b'd']"] * 5


def test_deeprecs_thread_pools_reach_the_session(tmp_path):
    lines = printed(
        """
        config = tf.ConfigProto(allow_soft_placement=True)
        config.session_stage_subgraph_thread_pool.add()
        config.session_stage_subgraph_thread_pool[0].inter_op_threads_num = 8
        config.session_stage_subgraph_thread_pool[0].intra_op_threads_num = 8
        config.session_stage_subgraph_thread_pool[0].global_name = "StageThreadPool_1"
        x = tf.staged(tf.constant(7), num_client=2, use_stage_subgraph_thread_pool=True,
                      stage_subgraph_thread_pool_id=0, stage_subgraph_stream_id=1)
        with tf.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as s:
            print(s.run(x))
            pools = s._tf_sess()._config.session_inter_op_thread_pool
            print([pool.num_threads for pool in pools], s._tf_sess()._config.allow_soft_placement)
        with tf.Session(config=config) as s:
            print(len(s._config.session_inter_op_thread_pool))
        """,
        tmp_path,
    )
    assert lines == ["7", "[0, 8] True", "2"]


def test_fields_that_nothing_implements_are_refused_by_name(tmp_path):
    lines = printed(
        """
        config = tf.ConfigProto()
        def attempt(where, name, value):
            try:
                setattr(where(), name, value)
                print("passed", name)
            except NotImplementedError as error:
                print(str(error).split(":")[0])
        attempt(lambda: config.graph_options.optimizer_options, "do_op_fusion", True)
        attempt(lambda: config.graph_options.optimizer_options, "do_op_fusion", False)
        attempt(lambda: config.graph_options.optimizer_options, "micro_batch_num", 2)
        attempt(lambda: config.graph_options.optimizer_options, "opt_level", -1)
        print(config.to_stock().graph_options.optimizer_options.opt_level)
        """,
        tmp_path,
    )
    options = "ConfigProto.graph_options"
    assert lines == [
        f"{options}.optimizer_options.do_op_fusion = True",
        "passed do_op_fusion",
        f"{options}.optimizer_options.micro_batch_num = 2",
        "passed opt_level",
        "-1",
    ]


def test_unknown_fields_fail_as_in_tensorflow(tmp_path):
    done = run_compat("tf.ConfigProto().no_such_field = 1", tmp_path)
    assert done.returncode == 1
    assert "no_such_field" in done.stderr


def test_two_spellings_that_differ_are_refused(tmp_path):
    done = run_compat("tf.staged(tf.constant(1), num_client=1, num_clients=2)", tmp_path)
    assert "num_clients=2 and num_client=1 are two spellings" in done.stderr


@pytest.mark.parametrize(
    "creator",
    [
        "tf.train.ChiefSessionCreator(config=config)",
        "tf.train.ChiefSessionCreator(None, '', config)",
        "tf.train.WorkerSessionCreator(config=config)",
    ],
)
def test_session_creators_translate(creator, tmp_path):
    lines = printed(
        f"""
        config = tf.ConfigProto()
        config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=3)
        x = tf.constant(1)
        with tf.train.MonitoredSession({creator}) as s:
            print(len(s._tf_sess()._config.session_inter_op_thread_pool))
        """,
        tmp_path,
    )
    assert lines == ["2"]


def test_servers_and_supervisors_translate(tmp_path):
    lines = printed(
        """
        config = tf.ConfigProto()
        config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=3)
        server = tf.train.Server({"local": ["127.0.0.1:0"]}, job_name="local", config=config)
        print(server.server_def.default_session_config.session_inter_op_thread_pool[1].num_threads)
        x = tf.constant(1)
        with tf.train.Supervisor().managed_session(config=config) as s:
            print(len(s._config.session_inter_op_thread_pool))
        """,
        tmp_path,
    )
    assert lines == ["3", "2"]


def test_what_is_marked_must_be_a_node(tmp_path):
    done = run_compat("tf.train.mark_target_node([3])", tmp_path)
    assert "mark_target_node was given 3 of type int" in done.stderr


def test_marks_belong_to_their_graph(tmp_path):
    lines = printed(
        """
        from workbench.core.tf_graph.target_nodes import target_nodes
        tf.train.mark_target_node([tf.constant(1, name="a"), tf.no_op(name="b")])
        print(target_nodes(tf.get_default_graph()))
        with tf.Graph().as_default() as other:
            print(target_nodes(other))
        """,
        tmp_path,
    )
    assert lines == ["('a', 'b')", "()"]
