"""Contenders: the settings among which the best one is searched."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy, SmartStageOptions, StageOptions
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Choice, Toggle
from workbench.core.what_if.predictions import Predicted
from workbench.errors import OptionError
from workbench.experiments.program.toggles import (
    COST_MODEL_EXECUTOR,
    FUSED,
    INLINE_EXECUTOR,
    SMART_STAGE,
    STAGE,
    TOGGLES,
    optimizations_of,
)

# Capacities that are tried for the best setting's stage, if it has one.
_CAPACITIES = (1, 2, 4)
_THREADS = (1, 2, 4)
_Stage = TypeVar("_Stage", StageOptions, SmartStageOptions)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contender:
    """A setting that may be the best.

    Attributes:
      optimizations: the setting.
      predicted: what it would give against the baseline; None where nothing is predicted.
      refusal: why the program cannot have it, a clause; "" where it can.
    """

    optimizations: Optimizations
    predicted: Predicted | None = None
    refusal: str = ""

    @property
    def label(self) -> str:
        """Its name; no other contender has the same one."""
        return self.optimizations.label(in_full=True)

    @property
    def predicted_log(self) -> float | None:
        """Logarithm of the predicted ratio."""
        return math.log(self.predicted.ratio) if self.predicted else None

    @property
    def predicted_half(self) -> float:
        """How far above its logarithm the interval of the prediction reaches."""
        return math.log(self.predicted.high / self.predicted.ratio) if self.predicted else math.inf


def settings_of(
    toggles: Sequence[str | Optimizations | Toggle] | None,
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    baseline: Optimizations,
) -> list[Optimizations]:
    """The settings to search among, without the baseline.

    Args:
      toggles: names that switch one optimization on stand for all combinations of them; several
        joined by "+", also with numbers of threads and choices, and `Optimizations`, for
        themselves; a toggle with choices for each other choice alone. None takes every name.
      stage, smart_stage: options of these two.
      baseline: its threads and its choices, where nothing says others, and its size of a batch are
        those of all.

    Raises:
      OptionError: an unknown toggle, settings of another batch size, or of one name, or nothing to
        search among.
    """
    given = TOGGLES if toggles is None else tuple(toggles)
    with_choices = [toggle for toggle in given if isinstance(toggle, Toggle)]
    own = own_toggles(given)
    names = [toggle for toggle in given if isinstance(toggle, str) and not set(toggle) & set("+=")]
    joined = [toggle for toggle in given if isinstance(toggle, str) and set(toggle) & set("+=")]
    wishes = [
        *_combinations(names, stage, smart_stage),
        *(optimizations_of(toggle, stage, smart_stage, own) for toggle in joined),
        *(
            Optimizations(chosen=(toggle.at(choice),))
            for toggle in with_choices
            for choice in toggle.choices
            if choice != baseline[toggle]
        ),
    ]
    settings = [
        dataclasses.replace(
            wish,
            inter_op_threads=wish.inter_op_threads or baseline.inter_op_threads,
            intra_op_threads=wish.intra_op_threads or baseline.intra_op_threads,
            batch_size=baseline.batch_size,
            chosen=_choices(wish, baseline),
        )
        for wish in wishes
    ]
    settings += [
        dataclasses.replace(setting, chosen=_choices(setting, baseline))
        for setting in given
        if isinstance(setting, Optimizations)
    ]
    _require_exact([baseline, *settings])
    distinct = [setting for setting in dict.fromkeys(settings) if setting != baseline]
    _require_comparable(distinct, baseline)
    return distinct


def own_toggles(toggles: Iterable[object]) -> list[Toggle]:
    """Those of the program's author among what is searched."""
    return [each for each in toggles if isinstance(each, Toggle) and each not in STOCK]


def _combinations(
    names: Sequence[str], stage: StageOptions, smart_stage: SmartStageOptions
) -> Iterator[Optimizations]:
    for name in names:
        optimizations_of(name, stage, smart_stage)  # refuses what is no toggle
    axes = (
        [None, *(name for name in (STAGE, SMART_STAGE) if name in names)],
        [None, *(name for name in FUSED if name in names)],
        [None, *(name for name in (INLINE_EXECUTOR, COST_MODEL_EXECUTOR) if name in names)],
    )
    for chosen in itertools.product(*axes):
        on = [name for name in chosen if name is not None]
        yield optimizations_of("+".join(on), stage, smart_stage) if on else Optimizations()


def _choices(wish: Optimizations, baseline: Optimizations) -> tuple[Choice, ...]:
    """The choices of a setting, and the baseline's of toggles of which the setting says nothing."""
    names = {choice.toggle.name for choice in wish.chosen}
    kept = (choice for choice in baseline.chosen if choice.toggle.name not in names)
    return (*wish.chosen, *kept)


def _require_exact(settings: Sequence[Optimizations]) -> None:
    """Requires lookups that are not stale: what trains another way is nothing to choose among."""
    for each in settings:
        if each.smart_stage is not None and each.smart_stage.stale_lookups:
            raise OptionError(
                f"{each.label()!r} has stale_lookups={each.smart_stage.stale_lookups}, so it "
                "trains another way, and a search chooses among settings that train the same; "
                "measure it beside the exact one with compare"
            )


def _require_comparable(settings: Sequence[Optimizations], baseline: Optimizations) -> None:
    if not settings:
        raise OptionError(
            f"there is no setting to search among beside the baseline; expected toggles out of "
            f"{', '.join(TOGGLES)}, or settings"
        )
    labels = [setting.label(in_full=True) for setting in (baseline, *settings)]
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        raise OptionError(
            f"two settings are both called {twice[0]!r}: they differ only in options that names do "
            "not tell; search among one of them"
        )
    for setting in settings:
        if setting.batch_size != baseline.batch_size:
            raise OptionError(
                f"setting {setting.label(in_full=True)!r} has another size of a batch than the "
                "baseline, so it does not train the same; search among settings of one size, or "
                "compare them with wb.compare"
            )


def refinements(best: Optimizations, cores: int) -> list[Optimizations]:
    """Variations of the best setting: capacity and threads of its stage, threads of its session.

    Threads of a stage are varied only where several were allowed, as they reorder batches.
    """
    varied: list[Optimizations] = []
    if best.stage is not None:
        varied += [
            dataclasses.replace(best, stage=stage)
            for stage in _varied_stages(best.stage, several=best.stage.num_threads > 1)
        ]
    if best.smart_stage is not None:
        varied += [
            dataclasses.replace(best, smart_stage=stage)
            for stage in _varied_stages(best.smart_stage, several=best.smart_stage.reorder)
        ]
    # An inline executor runs a step on one thread.
    if best.inter_op_threads is None and best.executor != ExecutorPolicy.INLINE:
        counts = {max(1, cores // 2), 2 * cores} - {cores}
        varied += [dataclasses.replace(best, inter_op_threads=count) for count in sorted(counts)]
    # Fewer threads inside ops leave more to ops that run beside each other.
    if best.intra_op_threads is None:
        counts = {1, max(1, cores // 2)} - {cores}
        varied += [dataclasses.replace(best, intra_op_threads=count) for count in sorted(counts)]
    return varied


def _varied_stages(stage: _Stage, *, several: bool) -> Iterable[_Stage]:
    for capacity in _CAPACITIES:
        if capacity != stage.capacity:
            yield dataclasses.replace(stage, capacity=capacity)
    if several:
        for threads in _THREADS:
            if threads != stage.num_threads:
                yield dataclasses.replace(stage, num_threads=threads)
