"""Steps → what a session gives for them, and its variables after each."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import workbench as wb
from tests.fuzz.built import Built
from tests.fuzz.steps import Step

v1 = tf.compat.v1
# Lines of an error that say where the graph was built.
_PLACES = ("Graph execution", "Detected at", "File ", "Node: ", "Original stack")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What a step gave.

    Attributes:
      values: by the name of what was fetched; empty where it failed.
      error: the class of the error; "" without one. `message` is its first line.
      state: the variables after it, by name; empty where it failed.
    """

    values: dict[str, Any]
    error: str = ""
    message: str = ""
    state: dict[str, Any] = dataclasses.field(default_factory=dict)


def outcomes(
    built: Built, config: Any, steps: Sequence[Step], nudge: float = 0.0, *, ahead: bool = False
) -> list[Outcome]:
    """What a session with a config gives for each step, from freshly initialized variables.

    A step that fails may have changed anything: the next one runs in a new session.

    Args:
      built: the graph.
      config: of the sessions.
      steps: to run.
      nudge: by which part of themselves the trained variables begin off their values.
      ahead: whether the sessions have stages that run ahead.
    """
    found: list[Outcome] = []
    while len(found) < len(steps):
        with v1.Session(graph=built.graph, config=config) as session:
            begin(session, built, nudge)
            with wb.prefetching(session) if ahead else contextlib.nullcontext():
                for step in steps[len(found) :]:
                    found.append(attempt(session, step, built))
                    if found[-1].error:
                        break
    return found


def begin(session: Any, built: Built, nudge: float = 0.0) -> None:
    """Initializes the variables and the input."""
    values = {}
    if nudge:
        random = np.random.RandomState(0)
        for name, value in zip(built.starts, session.run(list(built.starts)), strict=True):
            factor = 1 + nudge * random.uniform(-1, 1, value.shape)
            values[name] = (value * factor).astype(value.dtype)
    for name in built.begin:
        session.run(name, values if name == built.begin[0] else None)


def attempt(session: Any, step: Step, built: Built) -> Outcome:
    """What a step gives, whether it fails or not."""
    try:
        values = _HOW[step.how](session, step.fetches, dict(step.feeds))
    except Exception as error:
        return failure(error)
    state = session.run(built.variables)
    return Outcome(values=dict(zip(step.fetches, values, strict=True)), state=state)


def failure(error: Exception) -> Outcome:
    """The outcome of a step that failed."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith(_PLACES)]
    return Outcome(values={}, error=type(error).__name__, message=" ".join(own or lines)[:500])


def _run(session: Any, fetches: Sequence[str], feeds: dict[str, Any]) -> list[Any]:
    return list(session.run(list(fetches), feeds))


def _callable(session: Any, fetches: Sequence[str], feeds: dict[str, Any]) -> list[Any]:
    called = session.make_callable(list(fetches), list(feeds))
    return list(called(*feeds.values()))


def _partial(session: Any, fetches: Sequence[str], feeds: dict[str, Any]) -> list[Any]:
    """All fetches but the last in the first part of the run, the last in the second."""
    handle = session.partial_run_setup(list(fetches), list(feeds))
    first, rest = list(fetches[:-1]), list(fetches[-1:])
    found = list(session.partial_run(handle, first, feeds)) if first else []
    return found + list(session.partial_run(handle, rest, {} if first else feeds))


_HOW = {"run": _run, "callable": _callable, "partial": _partial}
