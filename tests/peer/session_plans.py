"""Gives a session of a test a fusion plan for its graph, as the graph is when a run begins.

A plan belongs to the graph that it was made for, and travels in the config of a new session. A test
opens its session itself and goes on building the graph. So the native session inside TensorFlow's
object is replaced where the graph has changed since the last plan, and variables are carried over.
"""

from __future__ import annotations

import dataclasses
import re
import weakref
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.client import pywrap_tf_session as native

import workbench as wb
from tests.peer.product_counts import ProductCounts

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
# What these ops hold cannot be read from one session and put into another.
_OTHER_STATE = re.compile(
    "HashTable|Queue|Iterator|Barrier|Stage|Accumulator|TensorArray|Stack|Reader|Mutex|"
    "SummaryWriter|TemporaryVariable|RecordInput|GetSessionHandle"
)


@dataclasses.dataclass
class _State:
    """Of one session: for which version of its graph it was planned, and what it has done."""

    version: int = -1
    plan: Any = None
    has_run: bool = False
    pinned: bool = False
    busy: bool = False


class SessionPlans:
    """Plans the sessions of a process."""

    def __init__(self, counts: ProductCounts) -> None:
        self._counts = counts
        self._states: weakref.WeakKeyDictionary[Any, _State] = weakref.WeakKeyDictionary()

    def before_run(self, session: Any) -> None:
        """Plans the graph of a session that is about to run, where it has changed."""
        state = self._states.setdefault(session, _State())
        if state.busy or state.pinned or session._target:
            return
        state.busy = True
        try:
            self._plan(session, state)
        finally:
            state.busy, state.has_run = False, True

    def pin(self, session: Any) -> None:
        """Plans a session for the last time: something will hold its native session."""
        self.before_run(session)
        self._states[session].pinned = True

    def _plan(self, session: Any, state: _State) -> None:
        graph = session.graph
        if graph.version == state.version:
            return
        self._counts.planned += state.version == -1
        state.version = graph.version
        try:
            plan = wb.plan_fusion(graph)
        except Exception as error:
            # Whatever a test builds, planning must not fail.
            self._counts.plan_errors[f"{type(error).__name__}: {str(error)[:160]}"] += 1
            return
        if not plan.count and state.plan is None:
            self._counts.refusals.update(str(each.reason)[:160] for each in plan.refusals)
            return
        if plan == state.plan:
            return
        reason = self._replaced(session, state, plan)
        if reason:
            self._counts.not_replaced[reason] += 1
            return
        self._counts.fused += state.plan is None
        self._counts.parts += plan.count - (state.plan.count if state.plan else 0)
        state.plan = plan

    def _replaced(self, session: Any, state: _State, plan: Any) -> str:
        """Replaces the native session; says why not where it cannot."""
        values: list[tuple[Any, Any]] = []
        if state.has_run:
            reason = _state_that_stays(session.graph)
            if reason:
                return reason
            values = _values(session)
            unfit = next((v.name for v, value in values if not _fits(v, value)), None)
            if unfit:
                return "a variable has another shape than its initial value"
        config = tf.compat.v1.ConfigProto()
        if session._config is not None:
            config.CopyFrom(session._config)
        try:
            _open_anew(session, wb.apply(plan, config) if plan.count else config)
        except wb.WorkbenchError as error:
            return str(error)[:160]
        for variable, value in values:
            session.run(variable.initializer, {variable.initializer.inputs[1]: value})
        return ""


def _open_anew(session: Any, config: Any) -> None:
    """Replaces the native session of a `tf.compat.v1.Session`."""
    options = native.TF_NewSessionOptions(target=session._target, config=config)
    try:
        with session.graph._c_graph.get() as graph:
            opened = native.TF_NewSessionRef(graph, options)
    finally:
        native.TF_DeleteSessionOptions(options)
    native.TF_CloseSession(session._session)
    native.TF_DeleteSession(session._session)
    session._session = opened


def _variables(graph: Any) -> list[Any]:
    keys = (tf.compat.v1.GraphKeys.GLOBAL_VARIABLES, tf.compat.v1.GraphKeys.LOCAL_VARIABLES)
    listed = {id(each): each for key in keys for each in graph.get_collection(key)}
    return list(listed.values())


def _state_that_stays(graph: Any) -> str:
    """What of a graph's state cannot be carried to another session, "" where all can."""
    variables = {each.op.name for each in _variables(graph) if hasattr(each, "op")}
    for op in graph.get_operations():
        if op.type in _VARIABLES and op.name not in variables:
            return "a variable outside the collections holds state"
        if op.op_def.is_stateful and _OTHER_STATE.search(op.type):
            return f"{op.type} holds state"
    return ""


def _values(session: Any) -> list[tuple[Any, Any]]:
    """The variables that are initialized, with their values."""
    found = []
    for variable in _variables(session.graph):
        try:
            found.append((variable, session.run(variable)))
        except tf.errors.OpError:
            # It has no value yet.
            continue
    return found


def _fits(variable: Any, value: Any) -> bool:
    inputs = variable.initializer.inputs
    return len(inputs) > 1 and inputs[1].shape.is_compatible_with(np.shape(value))
