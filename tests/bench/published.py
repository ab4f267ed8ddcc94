"""What DeepRec publishes for its own features: on another machine, with other software.

Rates are global steps/s, times are ms of a step.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmartStageFigures:
    """One model of the SmartStage page; `off` has the script's own tf.staged in it."""

    off: float
    smart_stage: float
    smart_stage_gpu: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class FusedFigures:
    """One model of the fused embedding pages."""

    setting: str
    off_ms: float
    fused_ms: float


SMART_STAGE_SOURCE = (
    "DeepRec, docs/docs_en/Smart-Stage.md: one A100 80G with 64 cores of a Xeon 8369B; on a CPU, "
    "32 threads of a Xeon 8369HC. Its page wants a stage in the graph before, so its ratios are to "
    "a staged run: the column to set beside them is “smart stage to stage”."
)
SMART_STAGE = {
    "dlrm": SmartStageFigures(off=91.6982, smart_stage=67.735, smart_stage_gpu=188.105),
    "deepfm": SmartStageFigures(off=74.7011, smart_stage=62.1227, smart_stage_gpu=93.0858),
    "dssm": SmartStageFigures(off=92.4544, smart_stage=83.7194, smart_stage_gpu=101.352),
    "din": SmartStageFigures(off=137.584, smart_stage=132.619, smart_stage_gpu=165.069),
    "dien": SmartStageFigures(off=17.1673, smart_stage=16.918, smart_stage_gpu=17.2557),
}
# Without, with.
SMART_STAGE_CPU = {"dlrm": (201.0, 212.0)}

FUSED_SOURCE = (
    "DeepRec, modelzoo/features/GPUFusedEmbedding/{WDL,DeepFM,DLRM}/README.md: one A100 80G with "
    "8 cores of an EPYC 7232P."
)
FUSED = {
    "dlrm": FusedFigures(setting="v2, batch 512", off_ms=19.98, fused_ms=14.81),
    "deepfm": FusedFigures(setting="do_fusion=True", off_ms=37.24, fused_ms=30.98),
    "wdl": FusedFigures(setting="v2, batch 512", off_ms=41.3, fused_ms=38.4),
}

EXECUTOR_SOURCE = "DeepRec publishes no figures for its executors alone."
