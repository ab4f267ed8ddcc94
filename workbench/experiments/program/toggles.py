"""Toggles: the names that switch optimizations on, one each or several joined by "+"."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles import built_in as table
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Choice, Toggle
from workbench.errors import OptionError

STAGE, SMART_STAGE = table.STAGE.named
# What fuses lookups, and as which version; the last fuses what else it finds.
FUSED = table.FUSION.named
FUSED_V1, FUSED_V2, GROUPED, AUTO_FUSED = FUSED
EXECUTORS = table.EXECUTOR.named
INLINE_EXECUTOR, COST_MODEL_EXECUTOR = EXECUTORS
TOGGLES = tuple(name for toggle in table.WITH_POSITIONS for name in toggle.named)
# What may be joined with a number, as "intra_op_threads=1".
THREADS = (table.INTER_OP_THREADS.key, table.INTRA_OP_THREADS.key)
# What may be joined with a choice, as "name=choice".
_STOCK = ", ".join(f"{each.name}={'|'.join(map(str, each.choices[1:]))}" for each in STOCK)
JOINED = (
    f"{_STOCK}, or several joined by +, also with {' or '.join(f'{name}=N' for name in THREADS)}"
)
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


# What a caller may ask for.
Wish: TypeAlias = str | Optimizations | Toggle


def listed(toggles: Wish | Iterable[Wish]) -> tuple[Wish, ...]:
    """One name of toggles, setting or toggle, or several, as a tuple.

    Raises:
      OptionError: something else is among them.
    """
    if isinstance(toggles, str | Optimizations | Toggle):
        return (toggles,)
    found = tuple(toggles) if isinstance(toggles, Iterable) else (toggles,)
    for each in found:
        if not isinstance(each, str | Optimizations | Toggle):
            raise OptionError(
                f"a toggle is {each!r:.80}; expected a name, an Optimizations or a wb.Toggle"
            )
    return found


def optimizations_of(
    toggle: str,
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    with_choices: Sequence[Toggle] = (),
) -> Optimizations:
    """What a toggle such as "stage+fused_v2+intra_op_threads=1" switches on, in any order.

    Args:
      toggle: one or more of TOGGLES, joined by "+", and of THREADS, each with "=" and a number, and
        of STOCK and `with_choices`, each with "=" and a choice.
      stage, smart_stage: options of these two, if they are switched on.
      with_choices: toggles of the program's author.

    Raises:
      OptionError: an unknown name, one twice, two ways to fuse lookups, two executors, no number of
        threads, or no such choice.
    """
    parts = [part.partition("=") for part in toggle.split("+")]
    names = [name for name, _, _ in parts]
    threads = {name: _threads(name, number) for name, _, number in parts if name in THREADS}
    toggles = {known.name: known for known in (*STOCK, *with_choices)}
    chosen = [
        _choice(toggles[name], text, equals) for name, equals, text in parts if name in toggles
    ]
    valued = next((name for name, equals, _ in parts if equals and name in TOGGLES), None)
    if valued:
        raise OptionError(f"toggle {valued!r} has no number; expected its name alone")
    unknown = [name for name in names if name not in (*TOGGLES, *THREADS, *toggles)]
    if unknown:
        named = ", ".join((*TOGGLES, *(toggle.name for toggle in with_choices)))
        raise OptionError(f"there is no toggle {unknown[0]!r}; expected one of {named}, {JOINED}")
    if len(set(names)) < len(names):
        raise OptionError(f"toggle {toggle!r} names one optimization twice; name each once")
    if sum(name in FUSED for name in names) > 1:
        raise OptionError(f"toggle {toggle!r} fuses lookups in two ways; expected one")
    if sum(name in EXECUTORS for name in names) > 1:
        raise OptionError(
            f"toggle {toggle!r} has two executors; a session has one, so expected one of them"
        )
    return Optimizations(
        stage=stage if STAGE in names else None,
        smart_stage=smart_stage if SMART_STAGE in names else None,
        fused_embeddings=next((FUSED[name] for name in names if name in FUSED), None),
        executor=next((EXECUTORS[name] for name in names if name in EXECUTORS), None),
        chosen=tuple(chosen),
        **threads,
    )


def require_free_names(toggles: Sequence[Toggle]) -> None:
    """Requires that toggles of an author have names that no other toggle has.

    Raises:
      OptionError: a name is taken.
    """
    taken = {*TOGGLES, *THREADS, "batch_size", "fused_embeddings", "executor"}
    taken |= {known.name for known in STOCK if known not in toggles}
    names = [toggle.name for toggle in toggles]
    clash = next((name for name in names if name in taken or names.count(name) > 1), None)
    if clash is not None:
        raise OptionError(f"another toggle is named {clash!r}; expected another name")


def own_choices(setting: Optimizations) -> tuple[Choice, ...]:
    """The choices of an author's toggles, with which a program may build another graph."""
    return tuple(each for each in setting.chosen if each.toggle not in STOCK)


def with_usual(wish: Optimizations, toggles: Sequence[Toggle]) -> Optimizations:
    """A setting in which each of these toggles stands somewhere."""
    names = {each.toggle.name for each in wish.chosen}
    usual = (each.at(each.choices[0]) for each in toggles if each.name not in names)
    return dataclasses.replace(wish, chosen=(*wish.chosen, *usual))


def _choice(toggle: Toggle, text: str, equals: str) -> Choice:
    if not equals:
        choices = ", ".join(f"{toggle.name}={each}" for each in toggle.choices)
        raise OptionError(f"toggle {toggle.name!r} has choices; expected one of {choices}")
    return toggle.named(text)


def _threads(name: str, number: str) -> int:
    if not number.isdecimal() or int(number) < 1:
        given = f"{name}={number}" if number else name
        raise OptionError(f"toggle {given!r} says no number of threads; expected {name}=1 or more")
    return int(number)
