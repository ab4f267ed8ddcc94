"""Predictions and checks of them with numbers chosen by hand."""

from __future__ import annotations

import itertools
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy, SmartStageOptions, StageOptions
from workbench.core.prediction.replay import Replay
from workbench.core.what_if.calibration import Check
from workbench.core.what_if.ceilings import Ceiling, Ceilings, MeasuredStep
from workbench.core.what_if.predictions import Predicted, Predictions
from workbench.core.what_if.scenario import Scenario

STAGE = Optimizations(stage=StageOptions())
SMART = Optimizations(smart_stage=SmartStageOptions())
FUSED = Optimizations(fused_embeddings="v1")
INLINE = Optimizations(executor=ExecutorPolicy.INLINE)
SMART_FUSED = Optimizations(smart_stage=SmartStageOptions(), fused_embeddings="v1")
TRACED_MS = 23.4


def predicted(on: Optimizations, ratio: float, half: float = 0.1, **more: Any) -> Predicted:
    """A setting of a trace of 23.4 ms a step: `half` is its interval's, as a share."""
    fields = ("cores", "inter_op_threads", "batch_ratio")
    scenario = Scenario(optimizations=on, **{k: more.pop(k) for k in fields if k in more})
    step_ms = TRACED_MS / ratio * scenario.batch_ratio
    values = {
        "scenario": scenario,
        "step_ms": step_ms,
        "low_ms": step_ms * (1 - half),
        "high_ms": step_ms * (1 + half),
        "ratio": ratio,
        "low": ratio / (1 + half),
        "high": ratio / (1 - half),
        "limited_by": "the step",
        "bound_ms": step_ms * 0.9,
    }
    return Predicted(**{**values, **more})


TRACED = predicted(Optimizations(), 1.0, 0.0)


def predictions(*found: Predicted, **changes: Any) -> Predictions:
    """These and the traced setting, the fastest first; the simulation is 3.8 % too long."""
    values = {
        "title": "dlrm",
        "traced": TRACED.scenario,
        "replay": Replay(measured_ms=TRACED_MS, simulated_ms=24.29, untraced_ms=TRACED_MS),
        "predicted": tuple(sorted([TRACED, *found], key=lambda each: -each.ratio)),
    }
    return Predictions(**{**values, **changes})


def every_toggle() -> Predictions:
    """27 settings: what each toggle gives multiplies."""
    stages = ((None, None, 1.0), (StageOptions(), None, 1.12), (None, SmartStageOptions(), 1.3))
    lookups = ((None, 1.0), ("v1", 1.08), ("v2", 1.15))
    executors = ((None, 1.0), (ExecutorPolicy.INLINE, 0.8), (ExecutorPolicy.COST_MODEL, 1.02))
    found = []
    for (stage, smart, by_stage), (fused, by_fused), (executor, by_executor) in itertools.product(
        stages, lookups, executors
    ):
        on = Optimizations(
            stage=stage, smart_stage=smart, fused_embeddings=fused, executor=executor
        )
        if on != Optimizations():
            ratio = by_stage * by_fused * by_executor
            plan = "widest in two chained stages, 1 thread" if smart else "your stage"
            found.append(predicted(on, ratio, plan=plan if smart or stage else ""))
    return predictions(*found)


def check(label: str, ratio: float, measured: float, half: float = 0.02, **more: Any) -> Check:
    """A setting predicted within a tenth, and measured."""
    values = {
        "program": "dlrm",
        "label": label,
        "predicted": ratio,
        "predicted_low": ratio * 0.9,
        "predicted_high": ratio * 1.1,
        "measured": measured,
        "measured_low": measured - half,
        "measured_high": measured + half,
    }
    return Check(**{**values, **more})


def measured_step(steps_per_s: float) -> MeasuredStep:
    """A step whose rate is known to 5 %."""
    return MeasuredStep(
        steps_per_s=steps_per_s,
        low=steps_per_s * 0.95,
        high=steps_per_s * 1.05,
        step_ms_median=1e3 / steps_per_s,
    )


def ceiling(work: str, ratio: float, half: float = 0.05, simulated: float | None = None) -> Ceiling:
    """A step of 50 steps/s without some work: `half` is its interval's, as a share."""
    return Ceiling(
        work=work,
        step=measured_step(50.0 * ratio),
        ratio=ratio,
        low=ratio * (1 - half),
        high=ratio * (1 + half),
        ops=120,
        simulated=None if simulated is None else predicted(Optimizations(), simulated),
    )


def ceilings(*kinds: Ceiling, **changes: Any) -> Ceilings:
    """Ceilings of a step that takes 1.25 times as long where batches differ."""
    values = {
        "program": "dlrm",
        "as_it_is": measured_step(40.0),
        "one_batch": measured_step(50.0),
        "one_batch_ratio": 1.25,
        "one_batch_low": 1.2,
        "one_batch_high": 1.3,
        "kinds": kinds,
    }
    return Ceilings(**{**values, **changes})
