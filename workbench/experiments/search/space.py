"""SearchSpace: what is searched; choices of toggles are tried one by one on the best setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Choice, Toggle, Training
from workbench.errors import OptionError, UnsupportedError
from workbench.experiments.program.function_program import AnyProgram, require_possible
from workbench.experiments.program.toggles import TOGGLES, require_free_names
from workbench.experiments.program.variant import other_training, with_usual
from workbench.experiments.search.contenders import Contender, own_toggles, settings_of

_ALLOWANCE = "allow_another_training=True"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchSpace:
    """What is searched.

    Attributes:
      baseline: what the others are compared with; each toggle of the author stands somewhere in it.
      settings: those that may race from the beginning.
      choices: are tried one by one on the best setting so far.
      notes: what is not tried, a sentence each.
    """

    baseline: Optimizations
    settings: tuple[Optimizations, ...]
    choices: tuple[Choice, ...] = ()
    notes: tuple[str, ...] = ()

    def neighbors(self, best: Optimizations, program: AnyProgram) -> list[Contender]:
        """Settings that differ from the best one in one choice.

        Where a choice excludes one of Workbench's own toggles, it is tried without that, too. Where
        the best has choices that the baseline has not, these are also settings that differ from it
        in one of Workbench's own toggles.
        """
        wishes = [
            _with_choice(best, choice, self.baseline)
            for choice in self.choices
            if choice.value != best[choice.toggle]
        ]
        if best.chosen != self.baseline.chosen:
            wishes += [
                dataclasses.replace(setting, chosen=best.chosen)
                for setting in self.settings
                if _apart(setting, best) == 1
            ]
        contenders = []
        for wish in dict.fromkeys(wishes):
            refusal = impossibility(program, wish) or ""
            contenders.append(Contender(optimizations=wish, refusal=refusal))
            if refusal:
                contenders += [
                    Contender(optimizations=other)
                    for other in self._with_one_less(wish)
                    if impossibility(program, other) is None
                ]
        return contenders

    def _with_one_less(self, wish: Optimizations) -> Iterator[Optimizations]:
        """A setting with one of the toggles that others exclude as the baseline has it."""
        for name in ("executor", "fused_embeddings", "inter_op_threads"):
            usual = getattr(self.baseline, name)
            if getattr(wish, name) != usual:
                yield dataclasses.replace(wish, **{name: usual})


def search_space(
    toggles: Sequence[str | Optimizations | Toggle] | None,
    stage: StageOptions,
    smart_stage: SmartStageOptions,
    baseline: Optimizations,
    *,
    allow_another_training: bool,
) -> SearchSpace:
    """What a search with these arguments tries.

    Args:
      toggles: as of `find_best`.
      stage, smart_stage: options of these two.
      baseline: what the others are compared with.
      allow_another_training: whether choices may be the best that train another model.

    Raises:
      OptionError: as `settings_of`; a name that another toggle has; or a setting that trains
        another way, which is not allowed.
    """
    of_author = own_toggles(toggles or ())
    require_free_names(of_author)
    everything = toggles is None or (bool(of_author) and len(of_author) == len(toggles))
    given: list[str | Optimizations | Toggle] = list(toggles or ())
    given = [*TOGGLES, *of_author] if everything else given
    stock = [toggle for toggle in STOCK if everything or toggle in given]
    choices = [toggle.at(value) for toggle in (*of_author, *stock) for value in toggle.choices]
    left_out = [
        choice
        for choice in choices
        if choice.toggle in stock
        and choice.training == Training.ANOTHER
        and not (choice.is_usual or allow_another_training)
    ]
    first = with_usual(baseline, of_author)
    settings = settings_of(given, stage, smart_stage, first)
    if not allow_another_training:
        _require_same_training(settings, first)
    _require_distinct(choices)
    return SearchSpace(
        baseline=first,
        settings=tuple(settings),
        choices=tuple(choice for choice in choices if choice not in left_out),
        notes=tuple(
            f"Not tried: {choice.label}, which trains another way; {_ALLOWANCE} lets it be tried."
            for choice in left_out
        ),
    )


def impossibility(program: AnyProgram, setting: Optimizations) -> str | None:
    """Why a program cannot have a setting, a clause; None where it can."""
    try:
        require_possible(program, setting)
    except (OptionError, UnsupportedError) as error:
        return str(error)
    return None


def _require_same_training(settings: Sequence[Optimizations], baseline: Optimizations) -> None:
    for each in settings:
        others = other_training(each, baseline)
        if others:
            raise OptionError(
                f"{each.label(in_full=True)!r} trains another way ({others}), and a search chooses "
                f"among settings that train the same; {_ALLOWANCE} lets it choose this one, and a "
                "toggle that trains the same says so: training='same' or training='rounded'"
            )


def _require_distinct(choices: Sequence[Choice]) -> None:
    labels = [choice.label for choice in choices]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise OptionError(f"two choices are both called {twice!r}; give a toggle another label")


def _with_choice(best: Optimizations, choice: Choice, baseline: Optimizations) -> Optimizations:
    """The best setting with another choice; the usual one of TensorFlow's need not be there."""
    others = [each for each in best.chosen if each.toggle != choice.toggle]
    named = choice.toggle in STOCK and choice.is_usual
    kept = not named or any(each.toggle == choice.toggle for each in baseline.chosen)
    return dataclasses.replace(best, chosen=(*others, choice) if kept else tuple(others))


def _apart(setting: Optimizations, best: Optimizations) -> int:
    """In how many of Workbench's own toggles two settings differ; its two stages are one."""
    pairs = [
        ((setting.stage, setting.smart_stage), (best.stage, best.smart_stage)),
        *(
            (getattr(setting, name), getattr(best, name))
            for name in ("fused_embeddings", "executor", "inter_op_threads", "intra_op_threads")
        ),
    ]
    return sum(own != other for own, other in pairs)
