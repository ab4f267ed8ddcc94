"""Which choices exclude each other or do the same: what all who combine them read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy
from workbench.core.toggles.stock import CALLER_THREAD, PRECISION, XLA
from workbench.errors import OptionError, UnsupportedError


@contextlib.contextmanager
def refusals_named(program: str, choice: str) -> Iterator[None]:
    """Has what a toggle refuses in the block say of which program that is.

    Args:
      program: its name.
      choice: what the program cannot have, as labels call it.

    Raises:
      OptionError: in place of an UnsupportedError, whose message is a clause.
    """
    try:
        yield
    except UnsupportedError as error:
        raise OptionError(f"program {program!r} cannot have {choice}: {error}") from None


def refusal_of(optimizations: Optimizations, *, is_function: bool) -> str:
    """Why a setting cannot be had, as a clause; "" where it can."""
    on = {each.toggle: each for each in optimizations.switched}
    for toggle, choice in on.items():
        refused = toggle.refusal(choice.value, is_function=is_function)
        if refused:
            return f"{choice.label}: {refused}"
    for toggle, choices, others in _EXCLUDED:
        if toggle not in on or on[toggle].value not in choices:
            continue
        for name, reason in others.items():
            if getattr(optimizations, name):
                words = _WORDS.get(name, name)
                return f"{on[toggle].label} and {words} exclude each other: {reason}"
    return ""


# What has a client's own thread run the steps.
ON_CALLER = f"inline_executor or {CALLER_THREAD.name}"


def is_on_caller(optimizations: Optimizations) -> bool:
    """Whether a client's own thread runs the steps, as either of these two lets it."""
    return optimizations.executor is ExecutorPolicy.INLINE or has_no_pool(optimizations)


def has_no_pool(optimizations: Optimizations) -> bool:
    """Whether TensorFlow's own executor has no pool of threads for the ops of a session."""
    return any(each.toggle == CALLER_THREAD for each in optimizations.switched)


# What a field or property of Optimizations is called.
_WORDS = {
    "executor": "an executor",
    "inter_op_threads": "inter-op threads",
    "fuses_graph": "auto fused",
    "built_fusion": "fused lookups",
}
_NO_FUSED_OPS = "XLA compiles the step as one piece, and has no fused ops"
# A toggle, its choices, and with what they do not go.
_EXCLUDED = (
    (
        CALLER_THREAD,
        ("on",),
        {
            "executor": "an executor of Workbench's hands ops to threads itself",
            "inter_op_threads": "the calling thread is the only one",
        },
    ),
    (
        PRECISION,
        ("bfloat16",),
        {"fuses_graph": "fused layers multiply in float32, so 16 bits would not act"},
    ),
    (
        XLA,
        ("clusters",),
        {"built_fusion": "XLA has no fused lookups, and would leave them out of its clusters"},
    ),
    (
        XLA,
        ("function",),
        {
            "smart_stage": "XLA compiles the step as one piece, so it is not cut",
            "fuses_graph": _NO_FUSED_OPS,
            "built_fusion": _NO_FUSED_OPS,
        },
    ),
)
