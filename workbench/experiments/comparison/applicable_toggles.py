"""Effective: which toggles a program has a use for, found by building it with each."""

from __future__ import annotations

from workbench import _native
from workbench.core.optimizations import AUTO, Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import OptionError, PlanError, UnsupportedError
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.toggles import (
    AUTO_FUSED,
    COST_MODEL_EXECUTOR,
    FUSED,
    INLINE_EXECUTOR,
    SMART_STAGE,
    STAGE,
)
from workbench.experiments.worker.process import Worker, started_workers
from workbench.experiments.worker.wire.messages import Close, Open, Opened

# Why a program has no use for a toggle.
NO_STAGE = "the program builds no stage when optimizations.stage is set"
NO_LOOKUP = "the program builds no embedding lookup through Workbench"
NO_STOCK_LOOKUP = (
    "the program's graph has no stock lookup, batch normalization or interaction of vectors that "
    "one op can do, and no product of matrices that another kernel does faster; "
    "wb.plan_fusion(graph).describe() says why not"
)


def no_lookup(wish: Optimizations) -> str:
    """Why a program has no use for this way to fuse lookups, where none are fused: a clause."""
    return NO_STOCK_LOOKUP if wish.fuses_graph else NO_LOOKUP


def without_effect(
    program: AnyProgram, stage: StageOptions, smart_stage: SmartStageOptions, progress: Progress
) -> dict[str, str]:
    """The toggles that a program has no use for, each with the reason.

    Executors run every program, so they are not tried; a library for an older TensorFlow has none.
    The child process that tries is gone before this returns.

    Raises:
      RunError: the program's own code failed.
    """
    progress.phase(f"Trying which optimizations {program.name} has a use for")
    reasons: dict[str, str] = {}
    for toggle in (INLINE_EXECUTOR, COST_MODEL_EXECUTOR):
        try:
            _native.require_executors("it")
        except UnsupportedError as refusal:
            reasons[toggle] = str(refusal)
    with started_workers([(program.name, program)]) as workers:
        opened = _tried(workers[0], Optimizations(stage=stage))
        if isinstance(opened, str) or not opened.stages:
            reasons[STAGE] = opened if isinstance(opened, str) else NO_STAGE
        opened = _tried(workers[0], Optimizations(smart_stage=smart_stage))
        if isinstance(opened, str):
            reasons[SMART_STAGE] = opened
        built = [name for name in FUSED if name != AUTO_FUSED]
        for wish, toggles in (
            (Optimizations(fused_embeddings="v2"), built),
            (Optimizations(fused_embeddings=AUTO), [AUTO_FUSED]),
        ):
            opened = _tried(workers[0], wish)
            if isinstance(opened, str) or not opened.fused_ops:
                why = opened if isinstance(opened, str) else no_lookup(wish)
                reasons |= dict.fromkeys(toggles, why)
    return reasons


def _tried(worker: Worker, wish: Optimizations) -> Opened | str:
    """What its graph has, or why there is none."""
    try:
        opened = worker.call(Open(session="trial", optimizations=wish))
    except (OptionError, PlanError, UnsupportedError) as refusal:
        return str(refusal)
    worker.call(Close(session="trial"))
    return opened
