"""PutCall: the put of one producer, readied to be run again and again in its session."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from workbench.core.session.session_facts import server_of, trace_level
from workbench.core.staging import buffer

v1 = tf.compat.v1


class PutCall:
    """Runs one put op of a session; one thread alone calls it."""

    def __init__(
        self,
        session: Any,
        put: str,
        *,
        updates: Sequence[str] = (),
        owner: str,
        feeds: Sequence[tuple[str, str]],
        pool: int,
        timeout_ms: int,
    ) -> None:
        """Prepares nothing yet.

        Args:
          session: a raw `tf.compat.v1.Session`.
          put: name of the op.
          updates: names of ops that each run does besides.
          owner: tensor fed with [token, thread].
          feeds: (fed tensor, value tensor) names; values are evaluated before each put.
          pool: the session's inter-op pool for the runs.
          timeout_ms: of each run; 0 leaves it to the session.
        """
        self._session = session
        self._put = put
        self._updates = updates
        self._targets = [owner, *(target for target, _ in feeds)]
        self._values = [value for _, value in feeds]
        self._options = v1.RunOptions(inter_op_thread_pool=pool, timeout_in_ms=timeout_ms)
        self._callables: dict[tuple[bool, bool], Callable[..., Any]] = {}

    def ready(
        self, owner: Sequence[int], *, step_stats: bool = False, graphs: bool = False
    ) -> Callable[..., Any]:
        """The next put, with its feeds evaluated, as a function of `run_metadata`.

        Args:
          owner: token and thread.
          step_stats: whether the run returns step stats in its metadata.
          graphs: whether it returns what it executed as graphs, too.
        """
        kind = step_stats, graphs
        if kind not in self._callables:
            self._callables[kind] = self._callable(step_stats, graphs)
        values: Sequence[Any] = ()
        if self._values:
            values = self._session.run(self._values, options=self._options)
        return functools.partial(self._callables[kind], owner, *values)

    def _callable(self, step_stats: bool, graphs: bool) -> Callable[..., Any]:
        """The put as a callable of its feeds: a third of what session.run costs a call."""
        options = v1.RunOptions.FromString(self._options.SerializeToString())
        options.output_partition_graphs = graphs
        if step_stats:
            options.trace_level = trace_level(self._session)
            if server_of(self._session) and self._is_in_graph():
                # A server returns no step stats for a callable, but does for a run. They do not
                # say which op fed which.
                options.output_partition_graphs = True
                return buffer.again_where_refused(
                    lambda *values, run_metadata: self._session.run(
                        self._put,
                        dict(zip(self._targets, values, strict=True)),
                        options,
                        run_metadata,
                    ),
                    self._targets[0],
                )
        return buffer.prepared(
            self._session,
            feeds=self._targets,
            targets=[self._put, *self._updates],
            options=options,
        )

    def _is_in_graph(self) -> bool:
        """Whether the Python graph has the op; those of a stage plan are the session's alone."""
        try:
            self._session.graph.get_operation_by_name(self._put)
        except KeyError:
            return False
        return True
