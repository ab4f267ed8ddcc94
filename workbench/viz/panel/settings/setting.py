"""PanelSetting: the state of the panel's toggles, as values that a browser and Python both know."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.built_in import EXECUTOR, FUSION, STAGE, WITH_POSITIONS
from workbench.core.toggles.toggle import Choice
from workbench.errors import OptionError
from workbench.viz.panel.settings.choices import text_of

OFF, OWN, SMART, MOVED = STAGE.values
_, V1, V2, GROUPED, AUTO = FUSION.values
NORMAL = EXECUTOR.values[0]
CHOICES = {toggle.key: toggle.values for toggle in WITH_POSITIONS}
NOT_MOVED = (
    "stage is 'moved' and no boundary was moved; move ops across the line of the Boundary tab, or "
    "set panel.optimizations to wb.Optimizations(smart_stage=wb.SmartStageOptions(exclude=(…,)))"
)
STAGE_FIELDS = ("capacity", "threads", "thread_pool", "stale_lookups")
# Whose lookups may be stale.
FOUND_STAGES = (SMART, MOVED)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PanelSetting:
    """Where the toggles stand; a number of 0 leaves the choice to the plan or the program.

    Attributes:
      stage: OFF, OWN for the program's own stage, SMART, or MOVED for a boundary moved by hand.
      capacity, threads: of the stage.
      thread_pool: the staged side runs on a thread pool of its own.
      stale_lookups: how many steps stale lookups may be, as of `SmartStageOptions`; 0 where they
        are exact, and of other stages than SMART and MOVED.
      fusion: OFF, V1, V2, GROUPED or AUTO.
      executor: NORMAL, which is TensorFlow's own, INLINE or COST_MODEL.
      inter_op_threads, intra_op_threads, batch_size: as of `Optimizations`.
      cut: where the boundary was moved to, as `cut_text` writes it; "" unless the stage is MOVED.
      chosen: toggles with choices that do not stand at their usual one.
    """

    stage: str = OFF
    capacity: int = 0
    threads: int = 0
    thread_pool: bool = False
    stale_lookups: int = 0
    fusion: str = OFF
    executor: str = NORMAL
    inter_op_threads: int = 0
    intra_op_threads: int = 0
    batch_size: int = 0
    cut: str = ""
    chosen: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        switched = Optimizations(chosen=self.chosen).switched
        object.__setattr__(self, "chosen", switched)
        for name, values in CHOICES.items():
            if getattr(self, name) not in values:
                expected = ", ".join(map(repr, values))
                raise OptionError(f"{name} is {getattr(self, name)!r}; expected one of {expected}")
        if self.stage == MOVED and not self.cut:
            raise OptionError(NOT_MOVED)
        if cut_text(*cut_names(self.cut)) != self.cut:
            raise OptionError(
                f"cut is {self.cut!r}; expected names of nodes, such as '-a -b' or '+c'"
            )
        if self.stage != MOVED:
            object.__setattr__(self, "cut", "")
        if self.stage not in FOUND_STAGES:
            object.__setattr__(self, "stale_lookups", 0)
        if self.stage == OFF:
            # Options of a stage that is not there make no other setting.
            for name in STAGE_FIELDS:
                object.__setattr__(self, name, type(getattr(self, name))())

    @property
    def key(self) -> str:
        """Its values in the order of the fields; a browser makes the same of its toggles.

        Two settings that are measured as one have one key.
        """
        known = self
        if self.stage == OWN:
            known = self.changed(capacity=self.capacity or 1, threads=self.threads or 1)
        *plain, chosen = known.state().values()
        texts = json.dumps([*chosen.items()], ensure_ascii=False, separators=(",", ":"))
        words = [str(int(value) if isinstance(value, bool) else value) for value in plain]
        return "|".join([*words, texts if chosen else ""])

    def changed(self, **values: Any) -> PanelSetting:
        """The same with some toggles elsewhere."""
        return dataclasses.replace(self, **values)

    def state(self) -> dict[str, Any]:
        """The fields in their order, as a browser has them: choices are texts by name."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**plain, "chosen": {each.toggle.name: text_of(each.value) for each in self.chosen}}

    def optimizations(self) -> Optimizations:
        """What a program is built and run with."""
        stage = smart = None
        if self.stage == OWN:
            stage = StageOptions(
                capacity=self.capacity or 1,
                num_threads=self.threads or 1,
                use_stage_subgraph_thread_pool=self.thread_pool,
            )
        if self.stage in FOUND_STAGES:
            include, exclude = cut_names(self.cut)
            smart = SmartStageOptions(
                include=include,
                exclude=exclude,
                capacity=self.capacity or None,
                num_threads=self.threads or None,
                # Several producers bring batches in another order, which whoever sets them wants.
                reorder=self.threads > 1,
                use_stage_subgraph_thread_pool=self.thread_pool,
                stale_lookups=self.stale_lookups,
            )
        return Optimizations(
            stage=stage,
            smart_stage=smart,
            fused_embeddings=None if self.fusion == OFF else self.fusion,
            executor=None if self.executor == NORMAL else self.executor,
            inter_op_threads=self.inter_op_threads or None,
            intra_op_threads=self.intra_op_threads or None,
            batch_size=self.batch_size or None,
            chosen=self.chosen,
        )


def setting_of(optimizations: Optimizations) -> PanelSetting:
    """Where the toggles stand for a setting; what they cannot show is left out."""
    own, smart = optimizations.stage, optimizations.smart_stage
    options = smart or own
    cut = cut_text(smart.include, smart.exclude) if smart else ""
    return PanelSetting(
        stage=(MOVED if cut else SMART) if smart else OWN if own else OFF,
        capacity=(options.capacity or 0) if options else 0,
        threads=(options.num_threads or 0) if options else 0,
        thread_pool=bool(options and options.use_stage_subgraph_thread_pool),
        stale_lookups=smart.stale_lookups if smart else 0,
        fusion=optimizations.fused_embeddings or OFF,
        executor=str(optimizations.executor) if optimizations.executor else NORMAL,
        inter_op_threads=optimizations.inter_op_threads or 0,
        intra_op_threads=optimizations.intra_op_threads or 0,
        batch_size=optimizations.batch_size or 0,
        cut=cut,
        chosen=optimizations.switched,
    )


def cut_text(include: tuple[str, ...] | None, exclude: tuple[str, ...]) -> str:
    """A boundary moved by hand as text: "-a -b" without these, "+c" up to this, "+" the input."""
    upto = [] if include is None else [f"+{name}" for name in include or ("",)]
    return " ".join([*upto, *(f"-{name}" for name in exclude)])


def cut_names(text: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The `include` and `exclude` that `cut_text` wrote."""
    words = text.split()
    include = tuple(word[1:] for word in words if word[0] == "+" and word != "+")
    exclude = tuple(word[1:] for word in words if word[0] == "-")
    return (include if any(word[0] == "+" for word in words) else None), exclude
