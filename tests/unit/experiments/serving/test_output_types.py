"""The types of what a signature answers: short ones come as float32, and are rounded otherwise."""

from __future__ import annotations

import tensorflow as tf

from workbench.experiments.serving.server.signature import signature_of

v1 = tf.compat.v1


def test_are_those_of_the_signature():
    with tf.Graph().as_default():
        outputs = {
            "b": tf.constant([1.0], tf.bfloat16),
            "h": tf.constant([1.0], tf.float16),
            "s": tf.sparse.from_dense(tf.constant([1.0], tf.float64)),
        }
        infos = {name: v1.saved_model.build_tensor_info(each) for name, each in outputs.items()}
        graph = v1.MetaGraphDef()
        graph.signature_def["own"].CopyFrom(v1.saved_model.build_signature_def(outputs=infos))
    found = signature_of(graph, "own")
    assert found.outputs == ("b", "h", "s/indices", "s/values", "s/dense_shape")
    assert found.output_types == ("bfloat16", "float16", "int64", "float64", "int64")
