"""A concrete function is written to a SavedModel and served from it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from workbench.errors import OptionError
from workbench.experiments.serving.server.made_requests import id_limits
from workbench.experiments.serving.server.signature import read_meta_graph, signature_of

QUICK = {"clients": (2,), "p99_limit": None, "rounds": 2, "budget": "1s", "progress": False}


def test_a_toggle_that_has_nothing_to_do():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def double(x):
        return {"y": 2 * x}

    program = wb.served(double.get_concrete_function())
    with pytest.raises(OptionError, match="auto_fused finds nothing to fuse"):
        wb.serve_bench(program, ["auto_fused"], **QUICK)
    comparison = wb.serve_bench(program, ["inline_executor"], **QUICK)
    assert comparison.receipts[0].bit_equal and comparison.program.startswith("double")
    with pytest.raises(OptionError, match="get_concrete_function"):
        wb.served(double)


def test_a_rate_beyond_what_the_client_can_send_is_said():
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def same(x):
        return {"y": tf.identity(x)}

    comparison = wb.serve_bench(
        wb.served(same.get_concrete_function()), ["caller_thread=on"], rates=(2_000_000,), **QUICK
    )
    assert comparison.variants[1].points[-1].client_is_limit
    assert "the client is the limit" in str(comparison)


def test_a_function_with_variables_and_structured_outputs():
    weights = tf.Variable(np.arange(6.0).reshape(3, 2), dtype=tf.float32)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="rows")])
    def score(rows):
        return {"scores": rows @ weights, "rows": tf.shape(rows)[0]}

    program = wb.served(score.get_concrete_function(), rows=[2, 5])
    comparison = wb.serve_bench(program, ["sessions=2"], **QUICK)
    assert [receipt.rows for receipt in comparison.receipts] == [2, 5]
    assert all(receipt.bit_equal for receipt in comparison.receipts)
    assert comparison.program == "score"


def test_ids_are_drawn_of_tables_that_functions_look_up(tmp_path):
    module = tf.Module()
    module.table = tf.Variable(tf.ones([7, 2]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="ids")])
    def rows(ids):
        return {"rows": tf.gather(module.table, ids)}

    tf.saved_model.save(module, str(tmp_path), {"serving_default": rows})
    graph = read_meta_graph(str(tmp_path))
    assert id_limits(graph, signature_of(graph, "serving_default")) == {"ids": 7}
