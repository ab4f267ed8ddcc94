"""What a setting is called in the panel: by what differs from all off."""

from __future__ import annotations

from workbench.core.options import SmartStageOptions
from workbench.core.toggles.built_in import (
    BATCH_SIZE,
    EXECUTOR,
    FUSION,
    INTER_OP_THREADS,
    INTRA_OP_THREADS,
    STAGE,
)
from workbench.number_words import steps_stale
from workbench.viz.panel.settings.setting import NORMAL, OFF, PanelSetting, cut_names

ALL_OFF = "All off"


def name_of(setting: PanelSetting, *, inside: bool = False) -> str:
    """The name of a setting: "SmartStage, 2 threads + fused V1"; "All off" without any.

    Args:
      setting: where the toggles stand.
      inside: as it stands inside a sentence: "all off".
    """
    text = " + ".join(_parts(setting)) or ALL_OFF.lower()
    # Names such as oneDNN keep their letters.
    large = not inside and text.split(" ", 1)[0].rstrip(",").islower()
    return text[:1].upper() + text[1:] if large else text


def _parts(setting: PanelSetting) -> list[str]:
    parts = []
    if setting.stage != OFF:
        stage = f"{STAGE.name(setting.stage)} {_moved_to(setting)}".rstrip()
        parts.append(", ".join([stage, *_of_stage(setting)]))
    if setting.fusion != OFF:
        parts.append(FUSION.name(setting.fusion))
    if setting.executor != NORMAL:
        parts.append(EXECUTOR.name(setting.executor))
    numbers = (
        (f"{setting.inter_op_threads} {INTER_OP_THREADS.short}", setting.inter_op_threads),
        (f"{setting.intra_op_threads} {INTRA_OP_THREADS.short}", setting.intra_op_threads),
        (f"{BATCH_SIZE.short} {setting.batch_size}", setting.batch_size),
    )
    parts += [words for words, given in numbers if given]
    return [*parts, *(choice.label for choice in setting.chosen)]


def _moved_to(setting: PanelSetting) -> str:
    include, exclude = cut_names(setting.cut)
    return SmartStageOptions(include=include, exclude=exclude).moved_boundary


def _of_stage(setting: PanelSetting) -> list[str]:
    said = []
    if setting.threads:
        said.append(f"{setting.threads} thread" + "s" * (setting.threads != 1))
    if setting.capacity > 1:
        said.append(f"capacity {setting.capacity}")
    if setting.thread_pool:
        said.append("own pool")
    if setting.stale_lookups:
        said.append(steps_stale(setting.stale_lookups))
    return said
