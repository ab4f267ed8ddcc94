"""The owners of a buffer: one after the other, the end of an epoch, errors, events, a server."""

from __future__ import annotations

import threading
import time

import pytest
import tensorflow as tf

from tests.builders.buffers import LATER, OWNER, Stage, told
from workbench.core.staging import buffer

v1 = tf.compat.v1

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_a_new_owner_gets_nothing_of_the_earlier_one(clients):
    stage = Stage(timeout_millis=20)
    with v1.Session() as session:
        stage.resume(session)
        stage.put(session, 1)
        with pytest.raises(tf.errors.DeadlineExceededError):
            stage.put(session, 2)
        stage.resume(session, LATER)
        assert stage.size(session) == 0
        with pytest.raises(tf.errors.CancelledError) as caught:
            stage.put(session, 3)
        assert buffer.is_superseded(caught.value)
        stage.cancel(session, tf.errors.INTERNAL, "late")
        stage.close(session)
        stage.put(session, 4, LATER)
        assert stage.take(session) == 4


def test_close_is_the_end_of_an_epoch_and_resume_the_next():
    stage = Stage(capacity=2)
    with v1.Session() as session:
        for _ in range(2):
            stage.resume(session)
            stage.put(session, 1)
            stage.put(session, 2)
            stage.close(session)
            with pytest.raises(tf.errors.CancelledError) as caught:
                stage.put(session, 3)
            assert "is closed" in caught.value.message
            assert not buffer.is_superseded(caught.value)
            assert [stage.take(session), stage.take(session)] == [1, 2]
            with pytest.raises(tf.errors.OutOfRangeError, match="'clicks' has ended"):
                stage.take(session)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (tf.errors.DATA_LOSS, tf.errors.DataLossError),
        (tf.errors.INTERNAL, tf.errors.InternalError),
        (tf.errors.CANCELLED, tf.errors.CancelledError),
        (0, tf.errors.CancelledError),
    ],
)
def test_cancel_hands_its_error_to_the_consumer(code, kind):
    stage = Stage()
    with v1.Session() as session:
        stage.resume(session)
        stage.put(session, 1)
        stage.cancel(session, code, "shard 3 is damaged")
        assert stage.take(session) == 1
        with pytest.raises(kind, match="shard 3 is damaged"):
            stage.take(session)
        with pytest.raises(tf.errors.CancelledError, match="shard 3 is damaged"):
            stage.put(session, 2)


def test_events_are_recorded_on_demand_only():
    stage = Stage(capacity=2)
    with v1.Session() as session:
        stage.resume(session)
        stage.put(session, 1)
        assert stage.drain(session, True).shape == (0, 6)
        before = time.time_ns()
        stage.put(session, 2, [OWNER[0], 5])
        stage.take(session)
        after = time.time_ns()
        events = stage.drain(session, False)
        stage.take(session)
        assert stage.drain(session, False).shape == (0, 6)
    kind, item, who, start, end, size = events.T
    assert len(buffer.EVENT_COLUMNS) == events.shape[1]
    assert kind.tolist() == [buffer.EVENT_PUT, buffer.EVENT_TAKE]
    assert item.tolist() == [1, 0]
    assert who[0] == 5
    assert size.tolist() == [2, 1]
    assert (before <= start).all()
    assert (start <= end).all()
    assert (end <= after).all()


def test_a_server_keeps_the_buffer_between_sessions_but_not_its_items(clients):
    server = v1.train.Server.create_local_server()
    taking = threading.Event()
    stage = Stage()
    with tf.control_dependencies([told(taking, tf.constant(0))]):
        waiting = buffer.Buffer(capacity=1, shared_name="key/clicks").take([tf.int32])[0]
    with v1.Session(server.target) as session:
        stage.resume(session)
        stage.put(session, 1)
    session = v1.Session(server.target)
    stage.resume(session, LATER)
    stage.put(session, 2, LATER)
    assert stage.take(session) == 2
    taken = clients.submit(session.run, waiting)
    assert taking.wait(30)
    v1.Session.reset(server.target)
    with pytest.raises((tf.errors.CancelledError, tf.errors.AbortedError)):
        taken.result(30)
    with pytest.raises(tf.errors.AbortedError):  # The reset has ended the session, too.
        session.close()
