"""What a user may wish for: frozen, keyword-only, validated on construction."""

from __future__ import annotations

import dataclasses
import enum
import re
from typing import Any, ClassVar

from workbench.errors import OptionError
from workbench.named_fields import named_fields
from workbench.number_words import steps_stale

# Up to this many bytes a message from task to task takes longer to be handled than its bytes take
# to travel: at 10 Gbit/s 64 kB are 52 µs, and a message over gRPC takes more than 100 µs.
SMALL_TRANSFER_BYTES = 64_000


def require_at_least(name: str, value: object, least: int) -> None:
    """Requires an integer of at least `least`; bool is not an integer here.

    Raises:
      OptionError: another value; the message calls it `name`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name} is {value!r}; expected an integer of at least {least}")


def _at_least(owner: object, name: str, least: int) -> None:
    """Requires an integer field of at least `least`."""
    require_at_least(f"{type(owner).__name__}.{name}", getattr(owner, name), least)


@named_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class StageOptions:
    """How a stage runs ahead of the step that consumes it.

    Attributes:
      capacity: most items the buffer holds. Raise it when batches take unevenly long.
      num_threads: producers running put. At least T_stage / T_step keeps the step fed; each
        thread beyond one makes the order of batches non-deterministic.
      num_clients: consumers calling take at the same time. Take holds no thread here, so any
        number is served whatever this says; kept because DeepRec's scripts give it.
      timeout_millis: how long one put waits for room before the runner warns and waits on.
      closed_exception_types: exception classes or integer codes that end the epoch; None means
        OUT_OF_RANGE alone.
      ignored_exception_types: exception classes or integer codes that skip one batch.
      use_stage_subgraph_thread_pool: run the staged side on an independent thread pool.
      stage_subgraph_thread_pool_id: which one, counted from 0.
      stage_subgraph_stream_id: stream of the staged side on a GPU: the number of a logical device
        of the first GPU. Such a device has streams of its own. 0 shares the main stream.
    """

    capacity: int = 1
    num_threads: int = 1
    num_clients: int = 1
    timeout_millis: int = 300_000
    closed_exception_types: tuple[Any, ...] | None = None
    ignored_exception_types: tuple[Any, ...] = ()
    use_stage_subgraph_thread_pool: bool = False
    stage_subgraph_thread_pool_id: int = 0
    stage_subgraph_stream_id: int = 0

    def __post_init__(self) -> None:
        for name in ("capacity", "num_threads", "num_clients", "timeout_millis"):
            _at_least(self, name, 1)
        for name in ("stage_subgraph_thread_pool_id", "stage_subgraph_stream_id"):
            _at_least(self, name, 0)


@named_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class SmartStageOptions:
    """What a smart stage may do; what is None is chosen from the graph and, if given, a trace.

    Attributes:
      capacity: items that each new buffer holds; None takes 1, or what a trace shows to be better.
      num_threads: producers of the widened or last stage; None takes 1, or what a trace shows to
        be better where `reorder` allows it.
      reorder: batches may arrive in another order than they were read, which several producers
        bring about; without it a chosen number of producers is 1.
      starts: names of the nodes that deliver the input; none finds them.
      keep: names of nodes that must stay on the compute side.
      move: names of stateful nodes that may run ahead, once for each batch.
      fed: names of tensors that are fed although they are no placeholders.
      include: names of nodes that run ahead with what they depend on, and nothing else. An empty
        tuple lets the input alone run ahead. None leaves the boundary to the plan.
      exclude: names of nodes that stay, with what depends on them. With these or `include` the
        boundary is moved by hand. The plan then takes exactly that one, whatever is predicted.
      stale_lookups: let lookups of embedding tables run ahead too, on rows that lack the updates of
        at most so many steps. Such a training is another one than the exact, so that nothing but
        this option brings it about. Updates of tables on other tasks then trail the step. 0 keeps
        every read of a variable on the compute side.
      timeout_millis, closed_exception_types, ignored_exception_types,
        use_stage_subgraph_thread_pool, stage_subgraph_thread_pool_id, stage_subgraph_stream_id:
        of new stages, as in StageOptions; a widened stage keeps its own.
      on_cpu: move what crosses to the compute side's device ahead of the step, and put the staged
        side on the CPU. With a stream of its own it stays where it is.
      name: name of new stages in messages and traces.
    """

    capacity: int | None = None
    num_threads: int | None = None
    reorder: bool = False
    starts: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    move: tuple[str, ...] = ()
    fed: tuple[str, ...] = ()
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    stale_lookups: int = 0
    timeout_millis: int = 300_000
    closed_exception_types: tuple[Any, ...] | None = None
    ignored_exception_types: tuple[Any, ...] = ()
    use_stage_subgraph_thread_pool: bool = False
    stage_subgraph_thread_pool_id: int = 0
    stage_subgraph_stream_id: int = 0
    on_cpu: bool = False
    name: str = "smart_stage"

    def __post_init__(self) -> None:
        for name in ("capacity", "num_threads"):
            if getattr(self, name) is not None:
                _at_least(self, name, 1)
        _at_least(self, "timeout_millis", 1)
        for name in ("stage_subgraph_thread_pool_id", "stage_subgraph_stream_id", "stale_lookups"):
            _at_least(self, name, 0)
        if self.stale_lookups and self.on_cpu:
            raise OptionError(
                f"SmartStageOptions has stale_lookups={self.stale_lookups} and on_cpu=True; a "
                "lookup runs beside its table, perhaps on another device: leave out one of them"
            )
        for name in ("starts", "keep", "move", "fed", "include", "exclude"):
            names = getattr(self, name)
            if name == "include" and names is None:
                continue
            if isinstance(names, str) or not all(isinstance(each, str) for each in names):
                raise OptionError(
                    f"SmartStageOptions.{name} is {names!r}; expected a tuple of node names"
                )
            object.__setattr__(self, name, tuple(names))
        if not re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.-]*", self.name):
            raise OptionError(
                f"SmartStageOptions.name is {self.name!r}; expected letters, digits, '_', '.', '-'"
            )

    @property
    def staleness(self) -> str:
        """How stale its lookups may be, in words: "1 step stale"; "" where they are exact."""
        return steps_stale(self.stale_lookups)

    @property
    def moved_boundary(self) -> str:
        """Where the boundary was moved to, in words; "" where the plan chooses it."""
        words = [] if self.include is None else [f"up to {_names(self.include) or 'the input'}"]
        words += [f"without {_names(self.exclude)}"] if self.exclude else []
        return ", ".join(words)


@named_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class ThreadPoolOptions:
    """One independent pool for staged sides, as DeepRec's ConfigProto describes it.

    Attributes:
      inter_op_threads_num: threads that run ops; 0 takes the session's own number.
      intra_op_threads_num: threads inside one op; 0 takes the session's own threads.
      global_name: what the names of the intra-op threads begin with, before "_<id>_intra"; pools
        are never shared between sessions.
    """

    inter_op_threads_num: int = 0
    intra_op_threads_num: int = 0
    global_name: str = ""

    def __post_init__(self) -> None:
        _at_least(self, "inter_op_threads_num", 0)
        _at_least(self, "intra_op_threads_num", 0)


class ExecutorPolicy(enum.StrEnum):
    """How an executor hands the nodes of a graph to threads; its name as text will do too.

    NORMAL: as TensorFlow's own executor does.
    INLINE: every node on the thread that made it ready; most of a step runs on one thread.
    COST_MODEL: the costs of nodes are learned from some steps. From then on the longest path to the
      end of the step goes first, and cheap nodes are run together.
    """

    NORMAL = "normal"
    INLINE = "inline"
    COST_MODEL = "cost_model"

    @classmethod
    def _missing_(cls, value: object) -> ExecutorPolicy:
        names = ", ".join(repr(policy.value) for policy in cls)
        raise OptionError(f"there is no executor policy {value!r}; expected one of {names}")


# The native side counts in int64.
_LARGEST = 2**63 - 1


@named_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class CostModelOptions:
    """What the executor policy COST_MODEL learns from, and how it groups cheap nodes.

    Each executor counts steps of its own: one for every set of feeds and fetches of a session.

    Attributes:
      start_step: step at which it begins to measure nodes.
      stop_step: first step that is not measured; its costs are known from there on. In the next
        `TRIAL_STEPS` steps the order by costs and that of stock TensorFlow take turns; the first
        is kept where it is clearly faster, as `learned_costs` tells.
      batch_ns: how much work, in ns, a thread takes on with cheap nodes at a time.
      batch_ops: most cheap nodes that one task holds.

    Raises:
      OptionError: a value out of range, or steps that never let it learn.
    """

    TRIAL_STEPS: ClassVar[int] = 48  # With some room for steps that fail.

    start_step: int = 100
    stop_step: int = 200
    batch_ns: int = 5_000
    batch_ops: int = 100

    def __post_init__(self) -> None:
        for name in ("start_step", "stop_step"):
            _at_least(self, name, -_LARGEST)
        if not self.learns(self.start_step, self.stop_step):
            raise OptionError(
                f"with start_step={self.start_step} and stop_step={self.stop_step} the cost model "
                "never learns: it is active only if 0 < START < STOP; give steps such as "
                "start_step=100, stop_step=200"
            )
        for name in ("batch_ns", "batch_ops"):
            _at_least(self, name, 1)
        for name in ("stop_step", "batch_ns", "batch_ops"):
            if getattr(self, name) > _LARGEST:
                raise OptionError(
                    f"CostModelOptions.{name} is {getattr(self, name)}; expected at most 2**63 - 1"
                )

    @staticmethod
    def learns(start_step: int, stop_step: int) -> bool:
        """Whether costs are ever learned with these two: only if 0 < START < STOP."""
        return 0 < start_step < stop_step


def _names(nodes: tuple[str, ...]) -> str:
    """The end of the first node's name, and how many there are beside it."""
    if not nodes:
        return ""
    first = "/".join(nodes[0].split("/")[-2:])
    return first if len(nodes) == 1 else f"{first} and {len(nodes) - 1} more"
