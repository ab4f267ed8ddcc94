"""The toggles of the panel: their names, a sentence of help each, and what a program refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.core.toggles.built_in import (
    BATCH_SIZE,
    EXECUTOR,
    FUSION,
    INTER_OP_THREADS,
    INTRA_OP_THREADS,
    STAGE,
    BuiltInToggle,
)
from workbench.core.toggles.toggle import Toggle
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    own_batch_size,
)
from workbench.experiments.session.session import Session
from workbench.viz.panel.settings.group import Flag, Group, Number, Option
from workbench.viz.panel.settings.setting import (
    AUTO,
    FOUND_STAGES,
    GROUPED,
    MOVED,
    OWN,
    V1,
    V2,
)
from workbench.viz.panel.settings.toggle_groups import toggle_groups

_FUNCTION_STAGE = (
    "Mine: the program is a function, which is staged as a whole; a stage of one's own stands in a "
    "graph that a session runs."
)
_FUNCTION_POOL = (
    "Thread pool of its own: the program is a function; only sessions have thread pools."
)
_MOST_THREADS = 256
_NO_BATCH = "The program does not say how its batches can have another size."


def groups_of(
    program: AnyProgram | None,
    unfit: dict[str, str] | None = None,
    *,
    cut: str = "",
    toggles: Sequence[Toggle] = (),
) -> tuple[Group, ...]:
    """The toggles of a program.

    Args:
      program: what is run; None where only what was saved is shown.
      unfit: options that its graph has no use for, such as "own", with the reason; what is known
        before anything ran is among them in any case.
      cut: where the boundary was moved to, as of `PanelSetting`; "" where it was not.
      toggles: those of the program's author.
    """
    refused = dict(unfit or {})
    is_function = isinstance(program, FunctionProgram)
    if is_function:
        refused[OWN] = _FUNCTION_STAGE
    return (
        _stage_group(program, refused, moved=bool(cut)),
        dataclasses.replace(_choice_group(FUSION, refused), listed=True),
        _choice_group(EXECUTOR, refused),
        _threads_group(INTER_OP_THREADS),
        _threads_group(INTRA_OP_THREADS),
        _batch_group(own_batch_size(program) if program is not None else None),
        *toggle_groups(toggles, is_function=is_function),
    )


def _choice_group(toggle: BuiltInToggle, refused: dict[str, str]) -> Group:
    return Group(
        key=toggle.key, title=toggle.title, help=toggle.help, options=_options(toggle, refused)
    )


def _threads_group(toggle: BuiltInToggle) -> Group:
    numbers = (Number(key=toggle.key, most=_MOST_THREADS),)
    return Group(key=toggle.key, title=toggle.title, help=toggle.help, numbers=numbers, more=True)


def _stage_group(program: AnyProgram | None, refused: dict[str, str], *, moved: bool) -> Group:
    """Of the toggle Stage; a boundary that nobody moved is no choice yet."""
    capacity = Number(key="capacity", label="Capacity", title="Most items that the buffer holds")
    threads = Number(key="threads", label="Threads", title="Threads that fill the buffer")
    stale = Number(
        key="stale_lookups",
        label="Steps stale",
        auto="exact",
        title="Most steps whose updates the rows of lookups may lack",
        warns="Rows may lack the updates of so many steps: this is another training.",
        stages=FOUND_STAGES,
    )
    whole = _choice_group(STAGE, refused)
    return dataclasses.replace(
        whole,
        options=tuple(each for each in whole.options if moved or each.value != MOVED),
        folded="Buffer of the stage",
        numbers=(capacity, threads, stale),
        needs_stage=True,
        flag=Flag(
            key="thread_pool",
            label="Thread pool of its own",
            title="The staged side shares no threads with the step.",
            refused=_FUNCTION_POOL if isinstance(program, FunctionProgram) else "",
        ),
    )


def _batch_group(rows: int | None) -> Group:
    """Of a program whose batches have `rows` rows; None where they can have no other size."""
    number = Number(
        key=BATCH_SIZE.key, auto=str(rows) if rows else "own", most=1 << 20, step=rows or 1
    )
    return Group(
        key=BATCH_SIZE.key,
        title=BATCH_SIZE.title,
        help=BATCH_SIZE.help if rows else _NO_BATCH,
        numbers=(number,),
        refused="" if rows else _NO_BATCH,
        more=True,
    )


def unfit_options(session: Session) -> dict[str, str]:
    """Options that the program's graph has no use for, each with the reason, as far as is known."""
    stage = session.no_use(Optimizations(stage=StageOptions()))
    lookups = session.no_use(Optimizations(fused_embeddings=V2))
    stock = session.no_use(Optimizations(fused_embeddings=AUTO))
    reasons = {OWN: stage, V1: lookups, V2: lookups, GROUPED: lookups, AUTO: stock}
    titles = {each.value: each.title for each in (*FUSION.positions, *STAGE.positions)}
    alike: dict[str, list[str]] = {}
    for option, why in reasons.items():
        alike.setdefault(why, []).append(titles[option])
    return {option: f"{', '.join(alike[why])}: {why}." for option, why in reasons.items() if why}


def _options(toggle: BuiltInToggle, refused: dict[str, str]) -> tuple[Option, ...]:
    return tuple(
        Option(
            value=each.value,
            label=each.title,
            refused=refused.get(each.value, ""),
            help=each.help,
        )
        for each in toggle.positions
    )
