"""Which stage a take op is of, by the op's name."""

from __future__ import annotations

from collections.abc import Iterable


def buffer_scope(stage: str) -> str:
    """Where the ops of a stage's buffer are that a plan adds."""
    return f"{stage}_buffer"


def stages_of_takes(takes: Iterable[str], stages: Iterable[str]) -> dict[str, str]:
    """The stage of each take op; one of none of the stages is left out.

    Args:
      takes: names of ops that take from a stage's buffer.
      stages: names of stages: the user's, whose ops are in a scope of that name, or a plan's.
    """
    # The longest name that fits is the stage's.
    names = sorted(stages, key=len)
    ops = list(takes)
    stage_of = {
        op: stage
        for op in ops
        for stage in names
        if op.startswith((f"{stage}/", f"{buffer_scope(stage)}/"))
    }
    others = [op for op in ops if op not in stage_of]
    without = [stage for stage in names if stage not in stage_of.values()]
    # A plan that widens a stage gives it another take, in the plan's own scope.
    if len(others) == len(without) == 1:
        stage_of[others[0]] = without[0]
    return stage_of
