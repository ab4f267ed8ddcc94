"""Runs of a buffer that a server refuses for their number, before it does anything."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from workbench.core.staging import buffer

v1 = tf.compat.v1

WORKER = "/job:worker/replica:0/task:0"
# As a server says it; what is fed stands behind it.
REFUSED = (
    f"From {WORKER}:\nThe same RunGraph (Worker) request was received twice. "
    f'graph_handle: "03" send {{ name: "{WORKER}/device:CPU:0;13508;{WORKER}/device:CPU:0;'
    'clicks_buffer/owner:0;0:0" tensor { dtype: DT_INT64 } } request_id: -1166'
)
NESTED = f"stage 'clicks', thread 0, failed to produce: {REFUSED}"


class Refusing:
    """A session whose prepared runs raise what a list has, one after the other, and then return."""

    def __init__(self, *errors: BaseException) -> None:
        self.runs = 0
        self._errors = list(errors)

    def _make_callable_from_options(self, spec: Any) -> Callable[..., Any]:
        del spec

        def run(*values: Any, run_metadata: Any) -> Any:
            self.runs += 1
            if self._errors:
                raise self._errors.pop(0)
            return values

        return run


def aborted(message: str) -> BaseException:
    return tf.errors.AbortedError(None, None, message)


def test_are_run_again():
    session = Refusing(aborted(REFUSED), aborted(REFUSED))
    run = buffer.prepared(session, feeds=["clicks_buffer/owner:0"], targets=["put"])
    (owner,) = run([7, 0])
    np.testing.assert_array_equal(owner, [7, 0])
    assert session.runs == 3


@pytest.mark.parametrize(
    "error",
    [
        # What the other server took in may be lost.
        aborted(REFUSED.replace("clicks_buffer/owner", "other/owner")),
        aborted(NESTED.replace("clicks_buffer/owner", "upstream_buffer/owner")),
        aborted("the step was aborted"),
        tf.errors.UnavailableError(None, None, "the server is gone"),
    ],
)
def test_others_fail(error):
    session = Refusing(error)
    run = buffer.prepared(session, feeds=["clicks_buffer/owner:0"], targets=["put"])
    with pytest.raises(type(error)):
        run([7, 0])
    assert session.runs == 1


@pytest.mark.slow
def test_a_stage_on_a_server_outlives_them_and_loses_nothing(monkeypatch: pytest.MonkeyPatch):
    """TensorFlow refuses one run of 45,000, of a step or, which is what is waited for, of a put."""
    refused, taken, left = [], [], 200
    is_refused = buffer.is_refused
    monkeypatch.setattr(
        buffer, "is_refused", lambda *given: is_refused(*given) and not refused.append(given)
    )
    server = tf.distribute.Server.create_local_server()
    data = v1.data.make_one_shot_iterator(tf.data.Dataset.range(1 << 40))
    number = wb.staged(data.get_next(), wb.StageOptions(capacity=4), name="clicks")
    end = time.monotonic() + 200
    with v1.Session(server.target) as session, wb.prefetching(session):
        step = session.make_callable(number)
        while left and time.monotonic() < end:
            with contextlib.suppress(tf.errors.AbortedError):
                taken.append(step())
            left -= bool(refused)
    assert taken == list(range(len(taken)))
