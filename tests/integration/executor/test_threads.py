"""Which threads a step of the inline executor needs, beside its client's."""

from __future__ import annotations

import textwrap

import pytest

from tests.builders.thread_count import run_counted

_WAITS = """
    import ctypes, threading
    import tensorflow as tf
    import workbench as wb
    from workbench.core.staging import buffer

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    made = ctypes.CDLL(None).threads_made
    made.restype = ctypes.c_long
    at = buffer.Buffer(capacity=1, shared_name="key")
    owner = tf.constant([1, 0], tf.int64)
    value = v1.placeholder(tf.int32, [])
    put, taken, resume = at.put(owner, [value]), at.take([tf.int32])[0] + 1, at.resume(owner)
    config = wb.executor_options("inline")
    config.inter_op_parallelism_threads = 2
    config.use_per_session_threads = True
    with v1.Session(config=config) as session:
        session.run(resume)
        asked, put_it = threading.Semaphore(0), session.make_callable(put, [value])

        def produce():
            for i in range(300):
                asked.acquire()
                threading.Event().wait(0.002)  # The take waits by then.
                put_it(i)

        producer = threading.Thread(target=produce)
        producer.start()
        take = session.make_callable(taken)
        for i in range(300):
            if i == 20:
                before = made()
            asked.release()
            assert take() == i + 1
        print(made() - before)
        producer.join()
"""


@pytest.mark.slow
def test_takes_that_wait_make_no_threads(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text(textwrap.dedent(_WAITS))
    assert int(run_counted(script, tmp_path)) <= 8
