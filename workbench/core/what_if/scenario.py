"""Scenario: settings under which a program could run."""

from __future__ import annotations

import dataclasses

from workbench.core.optimizations import Optimizations
from workbench.core.options import require_at_least
from workbench.core.simulation.dispatch import dispatch_of
from workbench.core.what_if.faster import Faster
from workbench.errors import OptionError
from workbench.number_words import counted


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scenario:
    """Settings under which a program could run; of what is None the traced setting stays.

    Attributes:
      optimizations: the toggles.
      cores: of the machine.
      inter_op_threads: of the session.
      batch_ratio: size of a batch against that of the trace.
      faster: work that takes less time than it does, which no setting gives: what more could be
        gained there.
    """

    optimizations: Optimizations = dataclasses.field(default_factory=Optimizations)
    cores: int | None = None
    inter_op_threads: int | None = None
    batch_ratio: float = 1.0
    faster: tuple[Faster, ...] = ()

    def __post_init__(self) -> None:
        for name in ("cores", "inter_op_threads"):
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        if not self.batch_ratio > 0:
            raise OptionError(f"batch_ratio is {self.batch_ratio!r}; expected a number above 0")

    @property
    def graph(self) -> GraphKey:
        """Which graph the program builds for it."""
        on = self.optimizations
        return GraphKey(staged=on.stage is not None, fused=on.fused_embeddings)

    @property
    def sample(self) -> SampleKey:
        """Which traced steps tell how long its ops take."""
        on = self.optimizations
        return SampleKey(fused=on.fused_embeddings, serial=dispatch_of(on.executor).serial)

    @property
    def effort(self) -> int:
        """How much it asks for: a setting more than none, a plan more than a stage of one's own."""
        on = self.optimizations
        given = [getattr(on, field.name) is not None for field in dataclasses.fields(on)]
        return 2 * sum(given) + (on.smart_stage is not None)

    @property
    def label(self) -> str:
        """A short name, as tables show it."""
        others = [
            (counted(self.cores or 0, "core"), self.cores),
            (counted(self.inter_op_threads or 0, "inter-op thread"), self.inter_op_threads),
            (f"batch × {self.batch_ratio:g}", self.batch_ratio != 1.0),
            *((each.label, True) for each in self.faster),
        ]
        named = [name for name, given in others if given]
        toggles = self.optimizations.label()
        return " + ".join(named if named and toggles == "off" else [toggles, *named])


def scenario_of(optimizations: Optimizations, traced_batch: int | None = None) -> Scenario:
    """The scenario of a setting: its threads and its batch are those of the session and the data.

    Intra-op threads are left out: nothing is predicted of them.

    Args:
      optimizations: the setting.
      traced_batch: rows of a batch of the trace; None where that is not known.

    Raises:
      OptionError: the setting has another size of a batch, and that of the trace is not known.
    """
    batch = optimizations.batch_size
    if batch and not traced_batch:
        raise OptionError(f"batches of {batch} rows: how many those of the trace have is not known")
    toggles = dataclasses.replace(
        optimizations, inter_op_threads=None, intra_op_threads=None, batch_size=None
    )
    return Scenario(
        optimizations=toggles,
        inter_op_threads=optimizations.inter_op_threads,
        batch_ratio=batch / traced_batch if batch and traced_batch else 1.0,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GraphKey:
    """What decides which graph a program builds.

    Attributes:
      staged: with the user's own stage.
      fused: version of its fused lookups; None for stock ones.
    """

    staged: bool = False
    fused: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleKey:
    """What decides how long the ops of a step take, as far as only traced steps tell.

    Attributes:
      fused: version of its fused lookups; None for stock ones.
      serial: whether its ops run one after the other, on one thread: none beside another, and each
        with what the one before has left in the core's caches.
    """

    fused: str | None = None
    serial: bool = False

    @property
    def beside_others(self) -> SampleKey:
        """The same lookups, where ops run beside each other."""
        return dataclasses.replace(self, serial=False)
