"""The toggles of serving, and which settings a served model can have."""

from __future__ import annotations

from typing import Any

from workbench.core.optimizations import AUTO, Optimizations
from workbench.core.options import ExecutorPolicy, SmartStageOptions, StageOptions
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Toggle, Training
from workbench.errors import OptionError
from workbench.experiments.program.refusals import refusal_of
from workbench.experiments.program.toggles import optimizations_of, own_choices
from workbench.usable import usable_cores

# What is said where auto_fused has no effect on a model.
NOTHING_TO_FUSE = "auto_fused finds nothing to fuse"
_UNLIMITED, _BY_EXECUTOR = "none", "by_executor"
_CORES = usable_cores()


class _Sessions(Toggle):
    def configure(self, choice: Any, config: Any) -> None:
        if config.inter_op_parallelism_threads < 0:
            # Ops run on the thread that calls, which a pool of the session's own would prevent.
            return
        config.use_per_session_threads = True
        # Together they have as many threads as one session.
        if not config.inter_op_parallelism_threads:
            config.inter_op_parallelism_threads = threads_of_each(int(choice), _CORES)


SESSIONS = _Sessions(
    name="sessions",
    choices=(1, 2, 3, 4, 6, 8, 12, 16),
    label="sessions",
    help="The model is loaded so many times, each with inter-op threads and variables of its own.",
    training=Training.SAME,
)
STEPS_AT_ONCE = Toggle(
    name="steps_at_once",
    choices=(_BY_EXECUTOR, _UNLIMITED, *range(1, 33), 48, 64, 96, 128),
    label="steps at once",
    help="So many requests run at one time, others wait in line. By executor: the cores under "
    "inline, and any number under others.",
    training=Training.SAME,
)
SERVING = (SESSIONS, STEPS_AT_ONCE)


def threads_of_each(sessions: int, cores: int) -> int:
    """Inter-op threads of each of several sessions, where none are asked for."""
    return max(1, cores // sessions)


def sessions_of(optimizations: Optimizations) -> int:
    """How many sessions a setting loads."""
    return int(optimizations[SESSIONS])


def steps_at_once_of(optimizations: Optimizations) -> int:
    """The most steps that run at one time; 0 is any number.

    Under inline a step runs on its client's thread. More steps than cores would take turns there,
    which all of their latencies would show.
    """
    choice = optimizations[STEPS_AT_ONCE]
    if choice == _BY_EXECUTOR:
        return _CORES if optimizations.executor == ExecutorPolicy.INLINE else 0
    return 0 if choice == _UNLIMITED else int(choice)


def setting_of(name: str) -> Optimizations:
    """The setting that a name stands for, such as "auto_fused+sessions=2".

    Raises:
      OptionError: an unknown toggle, or one that no served model can have.
    """
    setting = optimizations_of(name, StageOptions(), SmartStageOptions(), SERVING)
    require_servable(setting)
    return setting


def require_servable(setting: Optimizations) -> None:
    """Requires that a served model can have a setting.

    Raises:
      OptionError: it cannot; says why.
    """
    reason = _refused(setting) or refusal_of(setting, is_function=False)
    if reason:
        raise OptionError(f"a served model cannot have {setting.label()!r}: {reason}")


def _refused(setting: Optimizations) -> str:
    if setting.stage or setting.smart_stage:
        return "a request is fed, so it has no input that could run ahead"
    if setting.fused_embeddings not in (None, AUTO):
        return "its graph is finished, so auto_fused alone can fuse its lookups"
    if setting.batch_size is not None:
        return "rows says how many rows requests have"
    for choice in setting.switched:
        if choice.toggle.is_of_data:
            return f"{choice.label} is of input pipelines, and a request is fed"
    others = [choice for choice in own_choices(setting) if choice.toggle not in SERVING]
    unknown = next(
        (choice for choice in others if not choice.toggle.environment(choice.value)), None
    )
    if unknown is not None:
        return f"no code reads the toggle {unknown.toggle.name!r} when a saved model is loaded"
    return ""


def names() -> str:
    """Toggles that a served model can have, as the command line names them."""
    stock = [each for each in STOCK if not each.is_of_data]
    joined = [f"{each.name}={'|'.join(map(str, each.choices[1:]))}" for each in stock]
    serving = [f"{each.name}=N" for each in SERVING]
    plain = ["auto_fused", "inline_executor", "cost_model_executor"]
    return ", ".join([*plain, "inter_op_threads=N", "intra_op_threads=N", *serving, *joined])
