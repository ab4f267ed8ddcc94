"""PrefetchRunner: the ops that produce, end and watch one stage, built with its graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from workbench.core.options import StageOptions
from workbench.core.staging import buffer
from workbench.core.staging.error_codes import closed_codes, error_codes

v1 = tf.compat.v1
# On a put: what its producer feeds it, for the graph pass. In native/rewriting/restart_stages.cc.
_FED = "_workbench_fed"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrefetchRunner:
    """The ops that produce, end and watch one stage, by name; a StageRun runs them in a session.

    Attributes:
      stage: name of the stage.
      puts: name of the put op of each thread.
      owner: tensor fed with [token, thread].
      flush, rest, resume, cancel, drain: names of the other ops of the buffer.
      rest_reason, cancel_code, message, drain_enable: tensors fed to them.
      feeds: (fed tensor, value tensor) names; values are evaluated before each put.
      closed_codes, ignored_codes: error codes that end the epoch, or skip one batch.
      options: the stage's options.
    """

    stage: str
    puts: tuple[str, ...]
    owner: str
    flush: str
    rest: str
    rest_reason: str
    resume: str
    cancel: str
    cancel_code: str
    message: str
    drain: str
    drain_enable: str
    feeds: tuple[tuple[str, str], ...]
    closed_codes: frozenset[int]
    ignored_codes: frozenset[int]
    options: StageOptions


def build_runner(
    at: buffer.Buffer,
    records: Sequence[Sequence[tf.Tensor]],
    feeds: Sequence[tuple[tf.Tensor, tf.Tensor]],
    options: StageOptions,
    host_records: Sequence[Sequence[tf.Tensor]] = (),
) -> PrefetchRunner:
    """Builds put, flush, rest, resume, cancel and drain of one buffer in the current graph.

    Args:
      at: the buffer.
      records: the tensors of one item; one record for all threads, or one for each thread.
      feeds: (placeholder, value tensor) pairs.
      options: the stage's options.
      host_records: for each record the rest of the item, which stays in host memory; none is empty.
    """
    owner = v1.placeholder(tf.int64, [2], name="owner")
    code = v1.placeholder(tf.int32, [], name="cancel_code")
    message = v1.placeholder(tf.string, [], name="message")
    enable = v1.placeholder(tf.bool, [], name="drain_enable")
    reason = v1.placeholder(tf.int32, [], name="rest_reason")
    puts = [
        at.put(
            owner,
            list(record),
            list(host),
            timeout_millis=options.timeout_millis,
            stream_id=options.stage_subgraph_stream_id,
            name="put",
        )
        for record, host in zip(records, host_records or [()] * len(records), strict=True)
    ]
    if feeds:
        fed = [value.op.name.encode() for _, value in feeds]
        for put in puts:
            put._set_attr(_FED, attr_value_pb2.AttrValue(list={"s": fed}))
    if len(puts) == 1:
        puts = puts * options.num_threads
    return PrefetchRunner(
        stage=at.stage,
        puts=tuple(put.name for put in puts),
        owner=owner.name,
        flush=at.flush(owner, timeout_millis=options.timeout_millis, name="flush").name,
        rest=at.rest(owner, reason, message, name="rest").name,
        rest_reason=reason.name,
        resume=at.resume(owner, name="resume").name,
        cancel=at.cancel(owner, code, message, name="cancel").name,
        cancel_code=code.name,
        message=message.name,
        drain=at.drain(enable, name="drain").name,
        drain_enable=enable.name,
        feeds=tuple((target.name, value.name) for target, value in feeds),
        closed_codes=closed_codes(options),
        ignored_codes=error_codes(options.ignored_exception_types),
        options=options,
    )
