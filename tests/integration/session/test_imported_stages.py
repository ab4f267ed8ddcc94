"""Stages of a graph that comes out of a meta graph."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.epochs import take_all
from workbench.core.options import StageOptions
from workbench.core.session.runner_registry import runners
from workbench.errors import UnsupportedError

v1 = tf.compat.v1
OPTIONS = StageOptions(
    capacity=3, timeout_millis=70_000, ignored_exception_types=(tf.errors.DataLossError,)
)


@pytest.fixture
def exported(tmp_path: Path) -> str:
    """A meta graph with a stage "clicks" of range(20) that is fed a variable, and a join."""
    with tf.Graph().as_default():
        iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(20))
        fed = v1.placeholder(tf.int64, [])
        offset = v1.get_variable("offset", initializer=tf.constant(100, tf.int64))
        batch = iterator.get_next()
        staged = wb.staged((batch, batch + fed), OPTIONS, feed_dict={fed: offset}, name="clicks")
        tf.identity_n(staged, name="out")
        ends = [tf.data.Dataset.range(n * 10, n * 10 + 3) for n in range(2)]
        nests = [v1.data.make_one_shot_iterator(each).get_next() for each in ends]
        tf.identity(wb.prefetch_join(nests, name="joined"), name="from_all")
        v1.add_to_collection("start", iterator.initializer)
        v1.add_to_collection("start", offset.initializer)
        path = str(tmp_path / "graph.meta")
        v1.train.export_meta_graph(path)
        return path


@pytest.mark.parametrize("scope", ["", "imported/here"])
def test_an_imported_stage_runs_as_the_one_that_was_built(exported, scope, graph):
    v1.train.import_meta_graph(exported, import_scope=scope or None)
    inside = f"{scope}/" if scope else ""
    clicks, joined = runners(graph)
    assert [clicks.stage, joined.stage] == [f"{inside}clicks", f"{inside}joined"]
    assert clicks.options.capacity == 3
    assert clicks.options.timeout_millis == 70_000
    assert clicks.ignored_codes == {tf.errors.DATA_LOSS}
    assert joined.puts == (f"{inside}joined/put", f"{inside}joined/put_1")
    with v1.Session() as session:
        session.run(v1.get_collection("start"))
        with wb.prefetching(session):
            for _ in range(2):
                rows = [session.run([f"{inside}out:0", f"{inside}out:1"]) for _ in range(4)]
                assert rows == [[i, i + 100] for i in range(4)]
                session.run(v1.get_collection("start"))
            assert sorted(take_all(session, f"{inside}from_all:0")) == [0, 1, 2, 10, 11, 12]


def test_a_monitored_session_runs_an_imported_stage(exported):
    v1.train.import_meta_graph(exported)
    scaffold = v1.train.Scaffold(local_init_op=v1.group(*v1.get_collection("start")))
    v1.train.get_or_create_global_step()
    creator = v1.train.ChiefSessionCreator(scaffold)
    with v1.train.MonitoredSession(creator, [wb.make_prefetch_hook()]) as session:
        assert [int(session.run("out:0")) for _ in range(3)] == [0, 1, 2]


def test_the_fed_variable_of_an_imported_stage_is_read_anew(exported, graph):
    v1.train.import_meta_graph(exported, import_scope="there")
    session = v1.Session()
    session.run(v1.get_collection("start"))
    with wb.prefetching(session):
        assert session.run("there/out:1") == 100


def test_a_graph_that_is_imported_twice_is_refused(exported):
    for scope in ("one", "two"):
        v1.train.import_meta_graph(exported, import_scope=scope)
    refused = pytest.raises(UnsupportedError, match="the graph has a stage twice")
    with v1.Session() as session, refused, wb.prefetching(session):
        pass


def test_a_part_of_a_stage_says_what_it_lacks(exported, graph, caplog):
    with tf.Graph().as_default() as whole:
        v1.train.import_meta_graph(exported)
        part = v1.graph_util.extract_sub_graph(whole.as_graph_def(), ["out", "clicks/put"])
    tf.import_graph_def(part, name="")
    refused = pytest.raises(UnsupportedError, match="lacks its ops")
    with v1.Session() as session, refused, wb.prefetching(session):
        pass


def test_a_take_without_its_stage_is_warned_of(exported, caplog):
    with tf.Graph().as_default() as whole:
        v1.train.import_meta_graph(exported)
        part = v1.graph_util.extract_sub_graph(whole.as_graph_def(), ["out"])
    tf.import_graph_def(part, name="")
    with v1.Session() as session, wb.prefetching(session) as started:
        assert started == ()
    assert "'clicks/take' takes from a stage that has no put in this graph" in caplog.text


def test_a_stage_of_another_version_is_refused(exported, graph):
    definition = tf.compat.v1.MetaGraphDef.FromString(Path(exported).read_bytes()).graph_def
    for node in definition.node:
        node.attr.pop("_workbench_stage", None)
    tf.import_graph_def(definition, name="")
    with pytest.raises(UnsupportedError, match="by another version of Workbench"):
        runners(graph)
