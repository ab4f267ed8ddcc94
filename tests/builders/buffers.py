"""A buffer of scalars with all of its ops, and a tensor that tells when a step gets to it."""

from __future__ import annotations

import threading

import numpy as np
import tensorflow as tf

from workbench.core.staging import buffer

v1 = tf.compat.v1

OWNER, LATER = [11, 0], [22, 0]


class Stage:
    """One buffer of scalars in the default graph, with all of its ops."""

    def __init__(self, capacity: int = 1, timeout_millis: int = 60_000, name: str = "clicks"):
        at = buffer.Buffer(capacity=capacity, shared_name=f"key/{name}", stage=name)
        self.owner = v1.placeholder(tf.int64, [2])
        self.value = v1.placeholder(tf.int32, [])
        self.code = v1.placeholder(tf.int32, [])
        self.message = v1.placeholder(tf.string, [])
        self.enable = v1.placeholder(tf.bool, [])
        self.put_op = at.put(self.owner, [self.value], timeout_millis=timeout_millis)
        self.flush_op = at.flush(self.owner, timeout_millis=timeout_millis)
        self.taken = at.take([tf.int32], start_timeout_millis=200)[0]
        self.resume_op = at.resume(self.owner)
        self.cancel_op = at.cancel(self.owner, self.code, self.message)
        self.close_op = at.close(self.owner)
        self.size_op = at.size()
        self.drain_op = at.drain(self.enable)

    def put(self, session, value, owner=OWNER, options=None):
        session.run(self.put_op, {self.owner: owner, self.value: value}, options=options)

    def flush(self, session, owner=OWNER):
        session.run(self.flush_op, {self.owner: owner})

    def take(self, session, options=None):
        return session.run(self.taken, options=options)

    def resume(self, session, owner=OWNER):
        session.run(self.resume_op, {self.owner: owner})

    def cancel(self, session, code, message, owner=OWNER):
        session.run(self.cancel_op, {self.owner: owner, self.code: code, self.message: message})

    def close(self, session, owner=OWNER):
        session.run(self.close_op, {self.owner: owner})

    def size(self, session):
        return session.run(self.size_op)

    def drain(self, session, enable):
        return session.run(self.drain_op, {self.enable: enable})


def told(event: threading.Event, value: tf.Tensor) -> tf.Tensor:
    """`value`, and the event is set when the step gets there."""

    def tell(passed: np.ndarray) -> np.ndarray:
        event.set()
        return passed

    return tf.ensure_shape(v1.py_func(tell, [value], value.dtype), value.shape)
