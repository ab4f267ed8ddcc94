"""Messages between a parent and its worker: commands, and what comes back for each.

They travel pickled between two processes of one user and are never saved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from workbench.core.analysis.embedding_lens.id_statistics import IdStatistics
from workbench.core.analysis.embedding_lens.tables import EmbeddingTable
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.toggles.toggle import Choice
from workbench.core.trace.trace import Trace
from workbench.experiments.program.own.program_file import FoundProgram
from workbench.experiments.program.own.program_place import ProgramPlace

Result = TypeVar("Result")
# What `RunSteps.fetch` may ask for, beside the two that are one value: the loss with labels and
# scores.
SCORES = "scores"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps:
    """What a run of steps gave.

    Attributes:
      ends_ns: int64 [steps + 1], monotonic: start of the first step, then the end of each.
      values: what was fetched with each step, or empty.
      ended: whether the data ended before all steps were run.
      scored: of the last steps, labels and scores, float64 [rows] each, where they were fetched.
    """

    ends_ns: np.ndarray
    values: np.ndarray
    ended: bool
    scored: tuple[tuple[np.ndarray, np.ndarray], ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Opened:
    """What is known of a graph once its session runs.

    Attributes:
      stages: stages that the program has put in.
      fused_ops: how many of its lookups, layers and columns are fused.
      threads: most producers that one stage has, those of its plan included; 0 without a stage.
      has_loss, has_fingerprint: what its steps can be asked for.
      has_scores: whether they can be asked for labels and scores, in a session opened for that.
      inject_prefetch: whether TensorFlow adds a prefetch by itself, in words.
      own_prefetch: whether the program's own pipeline prefetches.
      inter_op_threads, intra_op_threads: of the session; 0 is TensorFlow's default.
      end_counts: whether Keras's `fit` counts a step at each end of the data, because it does not
        know their length.
      left_out, kept: of a step without some work, names of the nodes of it, and of the others.
      gpus: names of the GPUs that TensorFlow may place ops on.
    """

    stages: int
    fused_ops: int
    threads: int
    has_loss: bool
    has_fingerprint: bool
    inject_prefetch: str
    own_prefetch: bool
    inter_op_threads: int
    intra_op_threads: int
    end_counts: bool = False
    left_out: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    has_scores: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan on its way to the parent, which has no TensorFlow.

    Attributes:
      plan: as JSON.
      boundary: what it was made from, as `boundary_file` writes it.
    """

    plan: str
    boundary: bytes

    @staticmethod
    def of(plan: StagePlan) -> Planned:
        """A plan that was just made, so that it has its boundary."""
        assert plan.boundary is not None
        return Planned(plan=plan.to_json(), boundary=boundary_to_bytes(plan.boundary))

    def to_plan(self) -> StagePlan:
        """The plan with its boundary."""
        plan = StagePlan.from_json(self.plan)
        return dataclasses.replace(plan, boundary=boundary_from_bytes(self.boundary))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verified:
    """What a verification of fused parts says.

    Attributes:
      right: whether nothing differs.
      detail: how many parts of each kind are right, on one line.
    """

    right: bool
    detail: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class DescribedGraph:
    """A graph on its way to the parent, which has no TensorFlow.

    Attributes:
      boundary: the graph, and what may run ahead in it.
      problem: why nothing may run ahead, a sentence; "" where something may.
      fused_ops: how many of its lookups, layers and columns are fused.
      stages: stages that the program has put in.
    """

    boundary: Boundary
    problem: str = ""
    fused_ops: int = 0
    stages: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampledIds:
    """What a program's graph and its first batches tell of its tables.

    Attributes:
      tables: of the graph.
      ids: of those whose ids could be fetched, by name.
    """

    tables: tuple[EmbeddingTable, ...]
    ids: Mapping[str, IdStatistics]


NO_STEPS = Steps(ends_ns=np.zeros(1, np.int64), values=np.empty(0), ended=True)
NOTHING_OPENED = Opened(
    stages=0,
    fused_ops=0,
    threads=0,
    has_loss=False,
    has_fingerprint=False,
    inject_prefetch="off",
    own_prefetch=False,
    inter_op_threads=0,
    intra_op_threads=0,
)


class Command(Generic[Result]):
    """What a parent asks for, and the type of what comes back.

    Attributes:
      unanswered: what stands for the answer of a child that failed, where that is tolerated.
    """

    unanswered: ClassVar[Any] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start(Command[None]):
    """Imports TensorFlow and takes the program: pickled, with the source of notebook cells."""

    program: bytes
    cells: dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Open(Command[Opened]):
    """Builds a part of the program and starts its session.

    Attributes:
      session: its name in later commands.
      part: the part of the program, one of `program.PARTS`.
      optimizations: what it is built with.
      sample: a trace for a smart stage to be planned on.
      plan: the smart stage's plan as JSON; None makes one.
      recorded: on an executor that records its ops: the normal one, where nothing else is chosen.
      without: the work that its step is left without, as of `stub_of`; "" runs all of it.
      rounding: by how many numbers of its type each trainable weight is moved, up or down.
      scored: its steps will be asked for labels and scores.
    """

    unanswered: ClassVar[Any] = NOTHING_OPENED

    session: str
    part: str = "build"
    optimizations: Optimizations
    sample: Trace | None = None
    plan: str | None = None
    recorded: bool = False
    without: str = ""
    rounding: int = 0
    scored: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class GetPlan(Command[Planned]):
    """Asks for the plan of a session with a smart stage."""

    session: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSteps(Command[Steps]):
    """Runs steps, fetching "loss", "fingerprint", SCORES or "nothing" with each."""

    unanswered: ClassVar[Any] = NO_STEPS

    session: str
    steps: int
    fetch: str = "nothing"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunBlock(Command[Steps]):
    """Runs the steps of a measured block.

    Attributes:
      after_rest: whether steps go first that use up what was read ahead while others ran.
      settles: whether to wait afterwards until the process has no more work of its own. One that
        stands still while others run need not.
    """

    unanswered: ClassVar[Any] = NO_STEPS

    session: str
    steps: int
    after_rest: bool = False
    settles: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class TraceSteps(Command[Trace]):
    """Traces steps of a session, with the time of untraced steps of `beside` in its notes.

    Attributes:
      beside: a session; None takes the traced one.
      step_stats: with TensorFlow's own step stats.
    """

    session: str
    steps: int
    beside: str | None = None
    step_stats: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifyFusion(Command[Verified]):
    """Compares what is fused in a session's graph with the graph's own nodes, on one batch."""

    session: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleIds(Command[SampledIds]):
    """Fetches the ids of a program's embedding lookups, of its first batches.

    Attributes:
      batches: how many.
      chosen: where toggles with choices stand in the program that is built.
    """

    batches: int
    chosen: tuple[Choice, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class DescribeGraph(Command[DescribedGraph]):
    """Builds the program's step and says what may run ahead in it; nothing runs.

    Attributes:
      optimizations: what it is built with.
      options: of the smart stage whose boundary it is.
    """

    optimizations: Optimizations
    options: SmartStageOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class FindProgram(Command[FoundProgram]):
    """Runs a file of the user's own and says what program stands there."""

    place: ProgramPlace


@dataclasses.dataclass(frozen=True, kw_only=True)
class Close(Command[None]):
    """Ends a session."""

    session: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stop(Command[None]):
    """Ends all sessions, then the process."""
