"""A session with three made-up runs, of which other settings are predicted; a held phase of one."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from tests.builders.replays import every_replay_holds
from tests.builders.sessions import INLINE, OFF, PROGRAM, STAGE, learned, measured
from tests.builders.step_traces import chain, step_trace
from workbench.core.trace.meta import UntracedSteps
from workbench.core.trace.trace import Trace
from workbench.experiments.session import setting_predictions
from workbench.experiments.session.learned_graphs import LearnedGraphs
from workbench.experiments.session.session import Session

# name, type, lane, ready, begun and ended, in µs
_STEP = (
    ("next", "IteratorGetNext", 0, 0, 0, 10_000),
    ("parse", "DecodeCSV", 0, 10_000, 10_000, 12_000),
    ("hash", "StringToHashBucketFast", 0, 12_000, 12_000, 13_000),
    ("dense", "MatMul", 0, 13_000, 13_100, 20_100),
    ("train", "AssignVariableOp", 0, 20_100, 20_100, 20_600),
)


def linked_trace() -> Trace:
    """Twelve steps of five ops, each fed by the one before."""
    return step_trace(
        _STEP,
        chain(*(name for name, *_ in _STEP)),
        step_us=20_600,
        steps=12,
        title="tiny",
        untraced=UntracedSteps(steps=60, step_ns=20_600_000, cpu_ns=10_600_000),
        source_cores=0.0,
    )


def panel_session(
    monkeypatch: pytest.MonkeyPatch, traced: int = 1, trace: Trace | None = None
) -> Session:
    """All off at 40 steps/s, a stage at 60, the inline executor at 30; the first ones traced."""
    # The made-up trace need not hold.
    every_replay_holds(monkeypatch)
    session = Session(PROGRAM)
    wishes = [OFF, STAGE, INLINE]
    found = measured(wishes)
    variants = [
        dataclasses.replace(each, trace=(trace or linked_trace()) if i < traced else None)
        for i, each in enumerate(found.variants)
    ]
    session.add(dataclasses.replace(found, variants=tuple(variants)), wishes)
    session._foreseen.known = learned()
    return session


@dataclasses.dataclass(frozen=True)
class HeldLearning:
    """Graphs that a run learns: `begun` once it learns them, which ends with `go_on`."""

    begun: threading.Event = dataclasses.field(default_factory=threading.Event)
    go_on: threading.Event = dataclasses.field(default_factory=threading.Event)


def held_learning(monkeypatch: pytest.MonkeyPatch) -> HeldLearning:
    """Holds every run in the phase in which it learns the program's graphs."""
    held = HeldLearning()

    def learns(*_: object) -> LearnedGraphs:
        held.begun.set()
        held.go_on.wait(20)
        return learned()

    monkeypatch.setattr(setting_predictions, "learned_graphs", learns)
    return held
