"""What stages and hooks of a session held is free when it ends, without the garbage collector."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
import tensorflow as tf

import workbench as wb
from workbench.errors import TraceError

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def staged_sum() -> tf.Tensor:
    numbers = v1.data.make_one_shot_iterator(tf.data.Dataset.range(10**9).batch(4)).get_next()
    return tf.reduce_sum(wb.staged(numbers))


def test_a_stage_that_has_run_holds_no_session(graph):
    total = staged_sum()
    session = v1.Session(graph=graph)
    with wb.prefetching(session) as runs:
        assert session.run(total) == 6
    known = weakref.ref(session)
    session.close()
    del session
    assert known() is None
    for run in runs:
        run.stop()


@pytest.mark.parametrize("fails", [False, True], ids=["ends", "fails"])
def test_hooks_whose_session_has_ended_do_not_hold_it(graph, fails):
    total = staged_sum()
    if fails:
        total = tf.debugging.check_numerics(1.0 / tf.cast(total - 6, tf.float32), "divided")
    hooks = [wb.make_prefetch_hook(), wb.CaptureHook()]
    known = []

    def train() -> None:
        with v1.train.SingularMonitoredSession(hooks=hooks) as session:
            known.append(weakref.ref(session.raw_session()))
            session.run(total)

    if fails:
        with pytest.raises(tf.errors.InvalidArgumentError):
            train()
    else:
        train()
    assert known[0]() is None
    with pytest.raises(TraceError, match="the capture has no session"):
        hooks[1].start()
