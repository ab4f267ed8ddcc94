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
# On a put: what its producer feeds it, for the graph pass.
# In native/rewriting/restart/restart_stages.cc.
_FED = "_workbench_fed"
# What is fed to the ops of a buffer. Each op of a runner is named as the runner's field.
_PLACEHOLDERS = {
    "owner": (tf.int64, [2]),
    "cancel_code": (tf.int32, []),
    "message": (tf.string, []),
    "drain_enable": (tf.bool, []),
    "rest_reason": (tf.int32, []),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrefetchRunner:
    """The ops that produce, end and watch one stage, by name; a StageRun runs them in a session.

    Attributes:
      stage: name of the stage.
      puts: name of the put op of each thread.
      updates: names of the ops that each run does besides, behind what a step returns of its item.
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
    updates: tuple[str, ...] = ()


def build_runner(
    at: buffer.Buffer,
    records: Sequence[Sequence[tf.Tensor]],
    feeds: Sequence[tuple[tf.Tensor, tf.Tensor]],
    options: StageOptions,
    host_records: Sequence[Sequence[tf.Tensor]] = (),
    *,
    reserve: bool = False,
) -> PrefetchRunner:
    """Builds put, flush, rest, resume, cancel and drain of one buffer in the current graph.

    Args:
      at: the buffer.
      records: the tensors of one item; one record for all threads, or one for each thread.
      feeds: (placeholder, value tensor) pairs.
      options: the stage's options.
      host_records: for each record the rest of the item, which stays in host memory; none is empty.
      reserve: of the puts, see `Buffer.put`.
    """
    fed = {name: v1.placeholder(*kind, name=name) for name, kind in _PLACEHOLDERS.items()}
    owner = fed["owner"]
    puts = [
        at.put(
            owner,
            list(record),
            list(host),
            timeout_millis=options.timeout_millis,
            stream_id=options.stage_subgraph_stream_id,
            reserve=reserve,
            name="put",
        )
        for record, host in zip(records, host_records or [()] * len(records), strict=True)
    ]
    if feeds:
        values = [value.op.name.encode() for _, value in feeds]
        for put in puts:
            put._set_attr(_FED, attr_value_pb2.AttrValue(list={"s": values}))
    if len(puts) == 1:
        puts = puts * options.num_threads
    ops = {
        "flush": at.flush(owner, timeout_millis=options.timeout_millis, name="flush"),
        "rest": at.rest(owner, fed["rest_reason"], fed["message"], name="rest"),
        "resume": at.resume(owner, name="resume"),
        "cancel": at.cancel(owner, fed["cancel_code"], fed["message"], name="cancel"),
        "drain": at.drain(fed["drain_enable"], name="drain"),
    }
    return PrefetchRunner(
        stage=at.stage,
        puts=tuple(put.name for put in puts),
        feeds=tuple((target.name, value.name) for target, value in feeds),
        closed_codes=closed_codes(options),
        ignored_codes=error_codes(options.ignored_exception_types),
        options=options,
        **{field: built.name for field, built in (fed | ops).items()},
    )


def runner_in(
    scope: str, stage: str, options: StageOptions, updates: tuple[str, ...] = ()
) -> PrefetchRunner:
    """The runner of a buffer whose ops `build_runner` made in a scope of their own, one record.

    Args:
      scope: the scope.
      stage: name of the stage.
      options: the stage's options.
      updates: names of the ops that each run does besides.
    """
    tensors = (*_PLACEHOLDERS, "drain")
    return PrefetchRunner(
        stage=stage,
        puts=(f"{scope}/put",) * options.num_threads,
        feeds=(),
        closed_codes=closed_codes(options),
        ignored_codes=error_codes(options.ignored_exception_types),
        options=options,
        updates=updates,
        **{name: f"{scope}/{name}:0" for name in tensors},
        **{name: f"{scope}/{name}" for name in ("flush", "rest", "resume", "cancel")},
    )
