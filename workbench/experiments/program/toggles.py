"""Toggles: the names that switch optimizations on, one each or several joined by "+"."""

from __future__ import annotations

from collections.abc import Collection

from workbench.core.options import (
    AUTO,
    ExecutorPolicy,
    Optimizations,
    SmartStageOptions,
    StageOptions,
)
from workbench.errors import OptionError

STAGE, SMART_STAGE = "stage", "smart_stage"
FUSED_V1, FUSED_V2, GROUPED, AUTO_FUSED = "fused_v1", "fused_v2", "grouped", "auto_fused"
INLINE_EXECUTOR, COST_MODEL_EXECUTOR = "inline_executor", "cost_model_executor"
# What fuses lookups, and as which version; the last fuses what else it finds.
FUSED = {FUSED_V1: "v1", FUSED_V2: "v2", GROUPED: "grouped", AUTO_FUSED: AUTO}
TOGGLES = (STAGE, SMART_STAGE, *FUSED, INLINE_EXECUTOR, COST_MODEL_EXECUTOR)
# What may be joined with a number, as "intra_op_threads=1".
THREADS = ("inter_op_threads", "intra_op_threads")
JOINED = f"or several joined by +, also with {' or '.join(f'{name}=N' for name in THREADS)}"
# What is measured where nobody says what.
USUAL = (STAGE, SMART_STAGE)
# Of those that exclude each other, what suits most models together with all others.
_SUIT = (STAGE, SMART_STAGE, FUSED_V2, COST_MODEL_EXECUTOR)


def every_toggle(left_out: Collection[str] = ()) -> tuple[str, ...]:
    """What "all" measures: each of TOGGLES alone, then together those that suit each other.

    Args:
      left_out: toggles that a program has no use for.
    """
    alone = tuple(name for name in TOGGLES if name not in left_out)
    together = "+".join(name for name in _SUIT if name not in left_out)
    return tuple(dict.fromkeys([*alone, *([together] if together else [])]))


def optimizations_of(
    toggle: str, stage: StageOptions, smart_stage: SmartStageOptions
) -> Optimizations:
    """What a toggle such as "stage+fused_v2" switches on, in any order.

    Args:
      toggle: one or more of TOGGLES, joined by "+", and of THREADS, each with "=" and a number.
      stage, smart_stage: options of these two, if they are switched on.

    Raises:
      OptionError: an unknown name, one twice, two ways to fuse lookups, two executors, or no number
        of threads.
    """
    parts = [each.partition("=") for each in toggle.split("+")]
    names = [name for name, _, _ in parts]
    threads = {name: _threads(name, number) for name, _, number in parts if name in THREADS}
    valued = next((name for name, equals, _ in parts if equals and name in TOGGLES), None)
    if valued:
        raise OptionError(f"toggle {valued!r} has no number; expected its name alone")
    unknown = [name for name in names if name not in (*TOGGLES, *THREADS)]
    if unknown:
        raise OptionError(
            f"there is no toggle {unknown[0]!r}; expected one of {', '.join(TOGGLES)}, {JOINED}"
        )
    if len(set(names)) < len(names):
        raise OptionError(f"toggle {toggle!r} names one optimization twice; name each once")
    if sum(name in FUSED for name in names) > 1:
        raise OptionError(f"toggle {toggle!r} fuses lookups in two ways; expected one")
    if INLINE_EXECUTOR in names and COST_MODEL_EXECUTOR in names:
        raise OptionError(
            f"toggle {toggle!r} has two executors; a session has one, so expected one of them"
        )
    executors = {
        INLINE_EXECUTOR: ExecutorPolicy.INLINE,
        COST_MODEL_EXECUTOR: ExecutorPolicy.COST_MODEL,
    }
    return Optimizations(
        stage=stage if STAGE in names else None,
        smart_stage=smart_stage if SMART_STAGE in names else None,
        fused_embeddings=next((FUSED[name] for name in names if name in FUSED), None),
        executor=next((executors[name] for name in names if name in executors), None),
        **threads,
    )


def _threads(name: str, number: str) -> int:
    if not number.isdecimal() or int(number) < 1:
        given = f"{name}={number}" if number else name
        raise OptionError(f"toggle {given!r} says no number of threads; expected {name}=1 or more")
    return int(number)
