"""An executor type of any length is one short error, at once."""

from __future__ import annotations

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.scripts import run_script
from workbench.compat.executor_policy import ExecutorPolicy, set_executor_type
from workbench.errors import OptionError

_SESSION = """
    import sys, time
    import tensorflow as tf
    import workbench as wb

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    config = wb.executor_options("inline")
    config.experimental.executor_type = sys.argv[1] + "X" * 1_000_000
    began = time.monotonic()
    with v1.Session(config=config) as session:
        try:
            session.run(tf.constant(1.0) + 1.0)
        except tf.errors.InvalidArgumentError as error:
            print(len(str(error)) < 2000, time.monotonic() - began < 30, error.message[:400])
"""


@pytest.mark.parametrize("begins", ["", "WORKBENCH_"])
def test_a_session_refuses_a_type_of_a_million_characters(begins, tmp_path):
    """In a process of its own: stock TensorFlow would look through the message for hours."""
    done = run_script(_SESSION, tmp_path, begins)
    assert done.stdout.startswith("True True "), done.stdout + done.stderr[-2000:]
    assert f"executor_type has {1_000_000 + len(begins)} characters" in done.stdout
    assert "'WORKBENCH_INLINE'" in done.stdout


def test_a_long_type_beside_a_policy_is_told_short():
    config = tf.compat.v1.ConfigProto()
    config.experimental.executor_type = "X" * 1_000_000
    with pytest.raises(OptionError, match="of 1000000 characters; set one of the two") as caught:
        set_executor_type(config, ExecutorPolicy.USE_INLINE_EXECUTOR)
    assert len(str(caught.value)) < 1000


def test_the_longest_type_of_ours_is_no_long_name():
    most = 2**63 - 1
    config = wb.executor_options(
        "cost_model", start_step=1, stop_step=most, batch_ns=most, batch_ops=most
    )
    assert len(config.experimental.executor_type) < 200
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        assert [session.run(tf.constant(1.0) + 1.0) for _ in range(3)] == [2.0] * 3
