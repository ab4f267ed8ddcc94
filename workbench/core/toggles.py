"""Toggles: the names that switch optimizations on, one each or several joined by "+"."""

from __future__ import annotations

from workbench.core.options import Optimizations, SmartStageOptions, StageOptions
from workbench.errors import OptionError

STAGE, SMART_STAGE, FUSED_V1, FUSED_V2 = "stage", "smart_stage", "fused_v1", "fused_v2"
TOGGLES = (STAGE, SMART_STAGE, FUSED_V1, FUSED_V2)
# What is measured where nobody says what.
USUAL = (STAGE, SMART_STAGE)


def optimizations_of(
    toggle: str, stage: StageOptions, smart_stage: SmartStageOptions
) -> Optimizations:
    """What a toggle such as "stage+fused_v2" switches on, in any order.

    Args:
      toggle: one or more of TOGGLES, joined by "+".
      stage, smart_stage: options of these two, if they are switched on.

    Raises:
      OptionError: an unknown name, one twice, or both versions of fused lookups.
    """
    names = toggle.split("+")
    unknown = [name for name in names if name not in TOGGLES]
    if unknown:
        raise OptionError(
            f"there is no toggle {unknown[0]!r}; expected one of {', '.join(TOGGLES)}, or several "
            "joined by '+'"
        )
    if len(set(names)) < len(names):
        raise OptionError(f"toggle {toggle!r} names one optimization twice; name each once")
    if FUSED_V1 in names and FUSED_V2 in names:
        raise OptionError(f"toggle {toggle!r} has both versions of fused lookups; expected one")
    fused = {FUSED_V1: "v1", FUSED_V2: "v2"}
    return Optimizations(
        stage=stage if STAGE in names else None,
        smart_stage=smart_stage if SMART_STAGE in names else None,
        fused_embeddings=next((fused[name] for name in names if name in fused), None),
    )
