"""Optimizations: a setting, the position of every toggle; frozen, validated on construction."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from workbench.core.options import (
    ExecutorPolicy,
    SmartStageOptions,
    StageOptions,
    require_at_least,
)
from workbench.core.toggles.built_in import (
    BATCH_SIZE,
    EXECUTOR,
    FUSION,
    INTER_OP_THREADS,
    INTRA_OP_THREADS,
    STAGE,
)
from workbench.core.toggles.toggle import Choice, Toggle
from workbench.errors import OptionError
from workbench.named_fields import named_fields
from workbench.number_words import counted

# How embedding lookups may be fused: as they are built, and AUTO in the finished graph.
AUTO = "auto"
FUSIONS = FUSION.values[1:]


@named_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class Optimizations:
    """The toggles: which optimizations a program is built with; all off by default.

    Attributes:
      stage: put the user's own stage in, with these options; None leaves it out.
      smart_stage: let a plan run ahead what may, with these options; None leaves the graph as the
        program builds it. Together with `stage` the plan starts from the user's own stage.
      fused_embeddings: "v1", "v2" or "grouped" fuses every embedding lookup that the program builds
        through Workbench. With "auto" it finds stock lookups, batch normalizations and interactions
        of vectors in the graph that the program built, and fuses them there. It also hashes columns
        of text in one op, and has other kernels multiply matrices and decode lines. None leaves
        stock ones.
      executor: the executor policy of the program's session, or its name; None takes TensorFlow's
        own executor.
      inter_op_threads, intra_op_threads: threads that run ops, and threads inside one op; None
        leaves what the program's config says.
      batch_size: rows of a batch, of a program that can be built with another one; None leaves
        the program's own.
      chosen: where other toggles stand, those of your own and TensorFlow's; a program reads them
        as `optimizations["name"]`.
    """

    stage: StageOptions | None = None
    smart_stage: SmartStageOptions | None = None
    fused_embeddings: str | None = None
    executor: ExecutorPolicy | str | None = None
    inter_op_threads: int | None = None
    intra_op_threads: int | None = None
    batch_size: int | None = None
    chosen: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "chosen", _each_once(self.chosen))
        for name in ("inter_op_threads", "intra_op_threads", "batch_size"):
            if getattr(self, name) is not None:
                require_at_least(f"Optimizations.{name}", getattr(self, name), 1)
        if self.fused_embeddings not in (None, *FUSIONS):
            raise OptionError(
                f"Optimizations.fused_embeddings is {self.fused_embeddings!r}; expected one of "
                f"{', '.join(map(repr, FUSIONS))}, or None"
            )
        if self.executor is not None:
            object.__setattr__(self, "executor", ExecutorPolicy(self.executor))

    def __getitem__(self, toggle: str | Toggle) -> Any:
        """Where a toggle stands: its choice here; of one that is given itself, its usual one.

        Raises:
          OptionError: a name of which no choice is here.
        """
        name = toggle.name if isinstance(toggle, Toggle) else toggle
        here = next((each for each in self.chosen if each.toggle.name == name), None)
        if here is not None:
            return here.value
        if isinstance(toggle, Toggle):
            return toggle.choices[0]
        names = ", ".join(repr(each.toggle.name) for each in self.chosen) or "none"
        raise OptionError(
            f"this setting has no toggle {name!r}, only {names}; hand wb.Toggle({name!r}, […]) to "
            "what measures the program"
        )

    @property
    def switched(self) -> tuple[Choice, ...]:
        """The toggles among `chosen` that do not stand at their usual choice."""
        return tuple(each for each in self.chosen if not each.is_usual)

    @property
    def is_all_off(self) -> bool:
        """Whether nothing is switched: a program runs as it is."""
        return dataclasses.replace(self, chosen=self.switched) == Optimizations()

    @property
    def built_fusion(self) -> str | None:
        """How lookups are fused while they are built; None builds stock ones."""
        return None if self.fused_embeddings == AUTO else self.fused_embeddings

    @property
    def fuses_graph(self) -> bool:
        """Whether stock lookups and more are fused in the finished graph."""
        return self.fused_embeddings == AUTO

    @property
    def groups_lookups(self) -> bool:
        """Whether lookups are grouped, as they are built or in the finished graph."""
        return self.fused_embeddings in ("grouped", AUTO)

    def label(self, *, in_full: bool = False) -> str:
        """A short name of this setting, as tables and lanes show it.

        Args:
          in_full: with the capacities and threads of its stages, where they are not the default.
        """
        fused = FUSION.at(self.fused_embeddings).label if self.fused_embeddings else ""
        executor = EXECUTOR.at(str(self.executor)).label if self.executor else ""
        own, smart = "", ""
        if in_full:
            own = _of_stage(self.stage, StageOptions())
            smart = _of_stage(self.smart_stage, SmartStageOptions())
        on = [
            (f"{STAGE.at('own').label}{own}", self.stage),
            (f"{_smart_name(self.smart_stage)}{smart}", self.smart_stage),
            (fused, self.fused_embeddings),
            (executor, self.executor),
            (counted(self.inter_op_threads or 0, INTER_OP_THREADS.label), self.inter_op_threads),
            (counted(self.intra_op_threads or 0, INTRA_OP_THREADS.label), self.intra_op_threads),
            (f"{BATCH_SIZE.label} {self.batch_size}", self.batch_size),
        ]
        names = [name for name, options in on if options is not None]
        return " + ".join([*names, *(each.label for each in self.switched)]) or "off"


def _each_once(chosen: Iterable[Choice]) -> tuple[Choice, ...]:
    """Choices by the names of their toggles."""
    choices = tuple(chosen)
    for each in choices:
        if not isinstance(each, Choice):
            raise OptionError(
                f"Optimizations.chosen has {each!r:.80}; expected choices: toggle.at(…)"
            )
    ordered = sorted(choices, key=lambda each: each.toggle.name)
    names = [each.toggle.name for each in ordered]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"toggle {twice!r} stands at two choices; expected one")
    return tuple(ordered)


def _smart_name(options: SmartStageOptions | None) -> str:
    if options is None:
        return ""
    name = STAGE.at("moved" if options.moved_boundary else "smart").label
    return f"{name}, {options.staleness}" if options.stale_lookups else name


def _of_stage(
    options: StageOptions | SmartStageOptions | None,
    usual: StageOptions | SmartStageOptions,
) -> str:
    """What of a stage's options is not as usual, in brackets: " (capacity 2, 2 threads)"."""
    if options is None or options == usual:
        return ""
    said = []
    if isinstance(options, SmartStageOptions) and options.moved_boundary:
        said.append(options.moved_boundary)
    if options.capacity != usual.capacity:
        said.append(f"capacity {options.capacity}")
    if options.num_threads != usual.num_threads:
        said.append(counted(options.num_threads or 0, "thread"))
    if options.use_stage_subgraph_thread_pool:
        said.append("own thread pool")
    return f" ({', '.join(said)})" if said else ""
