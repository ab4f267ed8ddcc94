"""A finished graph as a program: it runs as it stands, and what cannot run says why."""

from __future__ import annotations

import cloudpickle
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.finished_graphs import finished, with_collections, without_collections
from tests.builders.grids import every_value
from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.viz.panel.program_of import program_of

v1 = tf.compat.v1
KINDS = {"graph": lambda graph: graph, "def": without_collections, "meta": with_collections}


def losses(program, steps=3):
    """The first losses of a program that has travelled to another process and back."""
    program = cloudpickle.loads(cloudpickle.dumps(program))
    with tf.Graph().as_default():
        built = program.build(Optimizations())
        v1.train.get_or_create_global_step()
        with v1.train.MonitoredTrainingSession() as session:
            return [float(session.run([built.train_op, built.loss])[1]) for _ in range(steps)]


@every_value(kind=list(KINDS), use_resource=[True, False], table=[True, False])
def test_a_finished_graph_trains_alike_in_every_process(kind, use_resource, table):
    graph = KINDS[kind](finished(use_resource=use_resource, table=table))
    program = wb.graph_program(graph, train_op="train", loss="loss", fingerprint="which")
    first = losses(program)
    assert len(set(first)) == 3
    assert losses(program) == first


def test_objects_of_the_graph_will_do_for_names():
    graph = finished()
    train = graph.get_operation_by_name("train")
    loss = graph.get_tensor_by_name("loss:0")
    build = wb.graph_program(graph, train_op=train, loss=loss).build
    assert (build.train_op, build.loss) == ("train", "loss:0")


@pytest.mark.parametrize("kind", KINDS)
def test_the_only_train_op_is_found(kind):
    program = program_of(KINDS[kind](finished()))
    assert (program.name, program.build.train_op) == ("graph", "train")


def test_an_init_op_takes_the_place_of_those_found():
    graph = without_collections(finished(table=True))
    found = wb.graph_program(graph).build.init_ops
    assert len(found) == 2
    assert wb.graph_program(graph, init_op=found[0]).build.init_ops == found[:1]


def twice():
    graph = finished(table=True)
    with graph.as_default():
        made = next(op for op in graph.get_operations() if op.type == "MakeIterator")
        tf.raw_ops.MakeIterator(dataset=made.inputs[0], iterator=made.inputs[1], name="again")
    return graph


def two_optimizers():
    graph = finished()
    with graph.as_default():
        loss = graph.get_tensor_by_name("loss:0")
        v1.train.AdagradOptimizer(0.1).minimize(loss, name="other")
    return graph


def staged():
    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.range(10)
        wb.staged(v1.data.make_one_shot_iterator(data).get_next())
        tf.no_op("train")
    return graph


@pytest.mark.parametrize(
    ("make", "names", "words"),
    [
        (lambda: 3, {}, "graph is a int; expected a tf.Graph, a GraphDef or a MetaGraphDef"),
        (finished, {"train_op": "trian"}, "train_op is 'trian', and the graph of .* has none"),
        (finished, {"loss": 3}, "loss is 3, and the graph of .* nodes has none of that name"),
        (two_optimizers, {}, "several: 'train', 'other'.*; name it: wb.graph_program\\(graph"),
        (tf.Graph, {}, "graph of 0 nodes does not say what .* none\\); name it"),
        (lambda: finished(fed=True), {}, "reads the placeholder 'bias', and nothing is fed here"),
        (staged, {"train_op": "train"}, "has a stage of your own .* without wb.staged"),
        (twice, {}, "has two initializers, .* and 'again'; say which is run"),
    ],
)
def test_what_cannot_run_says_why(make, names, words):
    with pytest.raises(OptionError, match=words):
        wb.graph_program(make(), **names)


def test_a_variable_that_nothing_initializes_says_so():
    definition = without_collections(finished())
    nodes = [node for node in definition.node if node.name != "w/Assign"]
    del definition.node[:]
    definition.node.extend(nodes)
    program = wb.graph_program(definition, train_op="train")
    with (
        tf.Graph().as_default(),
        pytest.raises(OptionError, match="nothing in the graph initializes the variable 'w'"),
    ):
        program.build(Optimizations())


def test_what_compares_names_the_function_that_makes_a_program():
    with pytest.raises(OptionError, match="got a GraphDef; make a program of it: wb.graph_program"):
        wb.compare(without_collections(finished()), ["smart_stage"])
