"""Grouped lookups of more than int32 counts, or than there is memory for: an error, no crash."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from workbench import _native

# Ids of a feature; all features of a test have the same ones.
IDS = 1 << 24


def gradient(features: int, table_of: list[int], **changed: Any) -> Any:
    """Of features of one example each, with `IDS` ids."""
    arguments = {
        "ids": [tf.zeros([IDS], tf.int32)] * features,
        "rows": [tf.constant([0, IDS], tf.int64)] * features,
        "dense_shapes": [tf.zeros([0], tf.int64)] * features,
        "weights": [],
        "gradients": [tf.ones([1, 2])] * features,
        "table_of": table_of,
        "combiners": ["sum"] * features,
        "prune_invalid_ids": [False] * features,
        "fill_empty_rows": [False] * features,
        "default_ids": [0] * features,
        "dims": [2] * (max(table_of) + 1),
        "features": ["clicks"] * features,
        "N": max(table_of) + 1,
        **changed,
    }
    return _native.library().workbench_grouped_look_up_grad(**arguments)


def test_ids_of_a_table_that_int32_does_not_count_are_an_error() -> None:
    said = "'clicks': its table is asked for 2164260864 ids in 129 rows, by 129 features together"
    with context.eager_mode(), pytest.raises(tf.errors.InvalidArgumentError, match=said):
        gradient(129, [0] * 129)


_LITTLE_MEMORY = """
    import resource
    import psutil
    import tensorflow as tf
    from tests.integration.embedding.test_grouped_limits import IDS, gradient

    gradient(1, [0], ids=[tf.zeros([9], tf.int32)], rows=[tf.constant([0, 9], tf.int64)])
    ids, rows = tf.zeros([IDS], tf.int32), tf.constant([0, IDS], tf.int64)
    held = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (held + (64 << 20), resource.RLIM_INFINITY))
    try:
        gradient(1, [0], ids=[ids], rows=[rows])
    except tf.errors.ResourceExhaustedError as error:
        print(error.message)
"""


@pytest.mark.slow
def test_an_op_without_memory_ends_with_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_LITTLE_MEMORY)],
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "out of memory; use smaller batches or tables" in done.stdout
