"""Lines of code of a real graph's ops, by the names under which they run."""

from __future__ import annotations

import tensorflow as tf

from workbench.core.tf_graph.op_sources import op_sources


def doubled(x: tf.Tensor) -> tf.Tensor:
    return tf.multiply(x, 2.0, name="m/doubled")


def summed(x: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(
        lambda i, _: i < 3, lambda i, total: (i + 1, total + x), (0, x), name="m/sum"
    )


def test_copies_and_bodies_of_loops_have_the_line_of_what_they_were_made_from():
    with tf.Graph().as_default() as graph:
        summed(doubled(tf.constant(1.0, name="one")))
    names = ["m/doubled", "smart_stage/m/doubled", "m/sum/body/_1/add", "Func/m/sum/cond/_2/Less"]
    functions = [source.rpartition(" ")[2] for source in op_sources(graph, names)]
    assert functions == ["doubled", "doubled", "summed", "summed"]
    assert op_sources(graph, ["_arg_prefetch/owner_0_0"]) == [""]
