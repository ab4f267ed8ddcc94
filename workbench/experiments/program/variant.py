"""Variant: what is to be run, as a toggle says: its optimizations and, once made, its plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.boundary.candidates import UNSTAGED
from workbench.core.optimizations import Optimizations
from workbench.core.options import CostModelOptions, ExecutorPolicy, SmartStageOptions, StageOptions
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.toggles.toggle import Toggle, Training
from workbench.errors import OptionError
from workbench.experiments.program.toggles import (
    TOGGLES,
    optimizations_of,
    own_choices,
    require_free_names,
    with_usual,
)

# Processes that import TensorFlow anew, each for an environment of its own.
MOST_ENVIRONMENTS = 4
_EACH_GB = 0.4
# What a cost-model executor learns from while a variant warms up: early, so that it is over soon.
LEARNING = CostModelOptions(start_step=10, stop_step=40)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """A program with some optimizations, before it is measured.

    Attributes:
      label: its name in results.
      optimizations: what its program is built with.
      plan: of its smart stage, once that is made, with its boundary.
    """

    label: str
    optimizations: Optimizations
    plan: StagePlan | None = None

    @property
    def ahead(self) -> int:
        """Items it can hold ready when a block begins."""
        return sum(options.capacity + options.num_threads for options in self._stages())

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the process has which runs it, beside those of this one."""
        return environment_of(self.optimizations)

    @property
    def threads(self) -> int:
        """Most producers that one of its stages has; 0 without a stage."""
        return max((options.num_threads for options in self._stages()), default=0)

    @property
    def stale_lookups(self) -> int:
        """How many steps stale its lookups are; 0 for a smart stage that moves none."""
        planned = self.plan.stages if self.plan else ()
        smart = self.optimizations.smart_stage
        if self.plan is None and smart is not None:
            return smart.stale_lookups
        return max((stage.stale_lookups for stage in planned), default=0)

    @property
    def has_own_choice(self) -> bool:
        """Whether a toggle of the author's or the environment's is switched: it may do anything."""
        return any(not each.is_usual for each in own_choices(self.optimizations))

    def other_training(self, baseline: Variant) -> str:
        """Which toggles make it another training than the baseline, in words; "" where none do."""
        return other_training(self.optimizations, baseline.optimizations)

    @property
    def learning_steps(self) -> int:
        """Steps after which its executor runs as it will; 0 where it learns nothing."""
        learns = self.optimizations.executor == ExecutorPolicy.COST_MODEL
        return LEARNING.stop_step + CostModelOptions.TRIAL_STEPS if learns else 0

    @property
    def predicted(self) -> float | None:
        """How many times as fast as un-staged its plan says it is; None where it does not say."""
        # A plan does not say what else the variant gains.
        wish = self.optimizations
        gains_more = bool(wish.fused_embeddings or wish.executor or wish.switched)
        predictions = self.plan.predictions if self.plan and not gains_more else ()
        unstaged = [each.step_ms for each in predictions if each.label == UNSTAGED]
        chosen = [each.step_ms for each in predictions if each.chosen]
        # Several inputs have a prediction each, and none for the whole step.
        return unstaged[0] / chosen[0] if len(unstaged) == len(chosen) == 1 else None

    def with_threads(self, count: int) -> Variant:
        """The same stages with `count` producers each; more than one reorder batches."""
        stage, smart, plan = self.optimizations.stage, self.optimizations.smart_stage, self.plan
        if stage:
            stage = dataclasses.replace(stage, num_threads=count)
        if smart:
            smart = dataclasses.replace(smart, num_threads=count, reorder=count > 1)
        if plan:
            stages = (
                dataclasses.replace(
                    each, options=dataclasses.replace(each.options, num_threads=count)
                )
                # Its producers bound how stale lookups are.
                if not each.stale_lookups
                else each
                for each in plan.stages
            )
            plan = dataclasses.replace(plan, stages=tuple(stages))
        optimizations = dataclasses.replace(self.optimizations, stage=stage, smart_stage=smart)
        return dataclasses.replace(self, optimizations=optimizations, plan=plan)

    def notes(self) -> tuple[str, ...]:
        """What a reader of its numbers should know, a sentence each."""
        return (*self._notes_of_batch(), *self._notes_of_plan())

    def _notes_of_batch(self) -> tuple[str, ...]:
        if self.optimizations.batch_size is None:
            return ()
        return (
            f"{self.label[:1].upper()}{self.label[1:]}: its batches have "
            f"{self.optimizations.batch_size} rows, so its ratio is of samples a second, and "
            "neither losses nor batches were compared.",
        )

    def _notes_of_plan(self) -> tuple[str, ...]:
        if self.plan is None or self.plan.stages:
            return ()
        # The plan speaks of the smart stage alone, not of what else the variant switches on.
        others = dataclasses.replace(self.optimizations, smart_stage=None)
        differs = (
            "so this variant runs what all off runs"
            if others.is_all_off
            else f"so what it measures is {others.label()}"
        )
        return tuple(
            f"{self.label[:1].upper()}{self.label[1:]}: its plan moves nothing ahead of the step "
            f"({edit.name}: {edit.reason}), {differs}."
            for edit in self.plan.edits
        )

    def _stages(self) -> list[StageOptions]:
        planned = self.plan.stages if self.plan else ()
        stages = [stage.options for stage in planned]
        # A widened stage is the user's own: the plan has its options.
        if self.optimizations.stage and not any(stage.widens for stage in planned):
            stages.append(self.optimizations.stage)
        return stages


def variants_of(
    toggles: Sequence[str | Optimizations | Toggle],
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    baseline: Optimizations | None = None,
) -> list[Variant]:
    """The baseline and one variant for each toggle's name, setting, and choice of a toggle.

    Args:
      toggles: names as of `compare`, settings, or toggles with choices. A setting that does not
        say where one of the author's toggles stands has its usual choice.
      stage, smart_stage: options of what a name switches on.
      baseline: what the others are compared with; None is all off.

    Raises:
      OptionError: no toggle, an unknown one, some that exclude each other, or settings that have
        the same name.
    """
    if not toggles and baseline is None:
        raise OptionError(f"no toggle was given; expected one of {', '.join(TOGGLES)}")
    with_choices = [toggle for toggle in toggles if isinstance(toggle, Toggle)]
    wished: list[Optimizations] = []
    for toggle in toggles:
        if isinstance(toggle, Toggle):
            others = (toggle.at(choice) for choice in toggle.choices[1:])
            wished += [Optimizations(chosen=(choice,)) for choice in others]
        elif isinstance(toggle, Optimizations):
            wished.append(toggle)
        else:
            wished.append(optimizations_of(toggle, stage, smart_stage, with_choices))
    wishes = [baseline or Optimizations(), *wished]
    own = [choice.toggle for wish in wishes for choice in own_choices(wish)]
    own = list(dict.fromkeys([*with_choices, *own]))
    require_free_names(own)
    wishes = list(dict.fromkeys(with_usual(wish, own) for wish in wishes))
    labels = [wish.label() for wish in wishes]
    if len(set(labels)) < len(labels):
        labels = [wish.label(in_full=True) for wish in wishes]
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        raise OptionError(
            f"two settings are both called {twice[0]!r}: they differ only in options that names do "
            "not tell; compare them one after the other"
        )
    return [
        Variant(label=label, optimizations=wish) for label, wish in zip(labels, wishes, strict=True)
    ]


def environment_of(setting: Optimizations) -> dict[str, str]:
    """Variables that a process has which runs a setting, beside those of this one."""
    return {
        name: value
        for each in setting.chosen
        for name, value in each.toggle.environment(each.value).items()
    }


def other_training(setting: Optimizations, baseline: Optimizations) -> str:
    """Which toggles make a setting another training than the baseline, in words; "" where none."""
    beside = {choice.toggle: choice for choice in baseline.chosen}
    others = []
    for choice in setting.chosen:
        toggle = choice.toggle
        other = beside.get(toggle, toggle.at(toggle.choices[0]))
        if choice != other and Training.ANOTHER in (choice.training, other.training):
            others.append(f"{choice.label} beside {other.label}")
    return ", ".join(others)


def require_few_environments(variants: Sequence[Variant]) -> None:
    """Requires that not too many processes import TensorFlow, one for each environment.

    Raises:
      OptionError: more than `MOST_ENVIRONMENTS` beside the caller's own.
    """
    own = {tuple(sorted(each.environment.items())) for each in variants} - {()}
    if len(own) > MOST_ENVIRONMENTS:
        raise OptionError(
            f"the settings have {len(own)} environments, each of which takes a process that "
            f"imports TensorFlow, about {_EACH_GB} GB; compare at most {MOST_ENVIRONMENTS} at a "
            "time"
        )
