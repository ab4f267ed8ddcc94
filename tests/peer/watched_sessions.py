"""Runs the sessions and functions of another project's tests as a mode says."""

from __future__ import annotations

import atexit
import contextlib
from typing import Any

from tests.peer.modes import Mode
from tests.peer.product_counts import ProductCounts


def watch(mode: Mode, counts: ProductCounts) -> None:
    """Counts sessions, and puts the product of a mode underneath them.

    A session gets the executor where its config names none, and a plan for its graph. The functions
    that the main thread calls run under the same executor.
    """
    from tensorflow.python.client import session as sessions

    import workbench as wb

    plain = sessions.BaseSession.__init__

    def opened(session: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
        counts.sessions += 1
        if mode.policy and not target and _names_no_executor(config):
            config = wb.executor_options(mode.policy, config=config, **mode.policy_arguments)
            counts.on_executor += 1
        plain(session, target, graph, config)

    sessions.BaseSession.__init__ = opened
    if mode.fuses_graphs:
        _plan_runs(counts)
    if mode.version:
        from tests.peer.built_lookups import build_fused

        build_fused(mode.version, counts)
        _count_built(counts)
    if mode.policy:
        stack = contextlib.ExitStack()
        stack.enter_context(wb.executor(mode.policy, **mode.policy_arguments))
        atexit.register(stack.close)


def _names_no_executor(config: Any) -> bool:
    import tensorflow as tf

    if config is None:
        return True
    # A test may hand over something else, to see the error.
    return isinstance(config, tf.compat.v1.ConfigProto) and not config.experimental.executor_type


def _plan_runs(counts: ProductCounts) -> None:
    """Plans a session's graph before each run."""
    from tensorflow.python.client import session as sessions

    from tests.peer.session_plans import SessionPlans

    plans = SessionPlans(counts)
    kind = sessions.BaseSession
    run, setup, make = kind._run, kind.partial_run_setup, kind._make_callable_from_options

    def planned_run(session: Any, handle: Any, *arguments: Any) -> Any:
        if handle is None and _can_run(session):
            plans.before_run(session)
        return run(session, handle, *arguments)

    def planned_setup(session: Any, *arguments: Any, **named: Any) -> Any:
        if _can_run(session):
            plans.pin(session)
        return setup(session, *arguments, **named)

    def planned_make(session: Any, *arguments: Any, **named: Any) -> Any:
        if _can_run(session):
            plans.pin(session)
        return make(session, *arguments, **named)

    kind._run = planned_run
    kind.partial_run_setup = planned_setup
    kind._make_callable_from_options = planned_make


def _count_built(counts: ProductCounts) -> None:
    """Counts the sessions whose graph has ops of Workbench's."""
    import weakref

    from tensorflow.python.client import session as sessions

    kind = sessions.BaseSession
    run = kind._run
    known: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
    fused: weakref.WeakSet[Any] = weakref.WeakSet()

    def counted_run(session: Any, *arguments: Any) -> Any:
        version = session.graph.version
        if session not in fused and known.get(session) != version:
            known[session] = version
            if any(op.type.startswith("Workbench") for op in session.graph.get_operations()):
                fused.add(session)
                counts.fused += 1
        return run(session, *arguments)

    kind._run = counted_run


def _can_run(session: Any) -> bool:
    return not session._closed and session._session is not None and session.graph.version > 0
