"""TraceMeta: what is known of a trace beside its tables, and its JSON form in files."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from workbench.errors import DataError, TraceError
from workbench.files.saved_values import value_of

# Values of `TraceMeta.source`: the executor's own recording, TensorFlow's step stats; of traces
# that were imported, TensorFlow's profiler, and Chrome JSON of any other tool.
EXECUTOR = "executor"
STEP_STATS = "step_stats"
PROFILER = "tf.profiler"
CHROME = "Chrome JSON"
# They do not know when an op was ready to run.
OTHER_TOOLS = (PROFILER, CHROME)


@dataclasses.dataclass(frozen=True, kw_only=True)
class UntracedSteps:
    """How long steps take while no tracer lengthens them.

    Attributes:
      steps: how many steps were counted.
      step_ns: mean time from the begin of one step to the begin of the next, in ns.
      cpu_ns: mean CPU time of the process in that time, in ns; None where it is not known.
      run_ns: median time from the begin of a step to its end, in ns; None where it is not known.
      page_faults: mean number of pages a step that the kernel has to hand out, minor faults; None
        where it is not known.
      while_traced: whether the steps counted are the traced ones, which a recording executor
        hardly lengthens.
    """

    steps: int = 0
    step_ns: int | None = None
    cpu_ns: int | None = None
    run_ns: int | None = None
    page_faults: int | None = None
    while_traced: bool = False

    def __post_init__(self) -> None:
        _check(self, "meta.untraced")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TraceMeta:
    """What is known of a trace beside its tables. Of a fact that is not known the default stands.

    Attributes:
      title: name of the trace.
      tensorflow: version of TensorFlow.
      cores: of the machine; None where unknown.
      inter_op_threads: of the session; 0 is one for each core.
      capacity: items that the buffer of each stage holds at most, by name of the stage.
      occupancy_at_start: items in the buffer of each stage before its first event.
      source: the tracer, one of the constants above; other text is kept as it is.
      step_stats: why the tracer was STEP_STATS.
      threads: how the tracks of the ops came about: "recorded" or "inferred from overlap".
      thread_names: what the operating system calls the thread of a track, by the track's name.
      variables: bytes of each variable of the graph, by its name, as far as its shape is known.
      lost_ops: ops that the trace lacks, because the tracer's memory was full.
      lost_transfers: transfers that most steps have and some lack: servers record them as far as
        they can.
      left_out: events that a trace has no place for, by what they are: of another tool's file, or
        of a task whose clock is not known.
      task: the task on whose clock the times are; "" in a trace of one task.
      clock_offset_ns: what the clock of each other task showed more than that, by name of the task.
      clock_error_ns: how much more or less each of these may be.
      server_policies: executor types by which workers of a server ran the steps, by device.
      untraced: the time of steps without a tracer; None where it was not measured.
      source_cores: cores that the process used while only the input ran; None where unknown.
      packs_when_idle: whether two threads share one core although another is idle, in a process
        that mostly rests; None where unknown.
      not_fusable: what the rules of fusion refuse of the graph, by what users call it; the reasons,
        clauses. None where they were not asked.

    Raises:
      TraceError: a value is of the wrong type.
    """

    title: str = ""
    tensorflow: str = ""
    cores: int | None = None
    inter_op_threads: int = 0
    capacity: Mapping[str, int] = dataclasses.field(default_factory=dict)
    occupancy_at_start: Mapping[str, int] = dataclasses.field(default_factory=dict)
    source: str = ""
    step_stats: str = ""
    threads: str = ""
    thread_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    variables: Mapping[str, int] = dataclasses.field(default_factory=dict)
    lost_ops: int = 0
    lost_transfers: int = 0
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)
    task: str = ""
    clock_offset_ns: Mapping[str, int] = dataclasses.field(default_factory=dict)
    clock_error_ns: Mapping[str, int] = dataclasses.field(default_factory=dict)
    server_policies: Mapping[str, str] = dataclasses.field(default_factory=dict)
    untraced: UntracedSteps | None = None
    source_cores: float | None = None
    packs_when_idle: bool | None = None
    not_fusable: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        _check(self, "meta")

    def to_json(self) -> dict[str, Any]:
        """JSON-ready: the facts that are known, by name of the field."""
        known = _known(self)
        if self.untraced is not None:
            known["untraced"] = _known(self.untraced)
        return known

    @classmethod
    def from_json(cls, notes: Mapping[str, Any]) -> TraceMeta:
        """What `to_json` gave.

        Notes of other names are left out: format 1 of the file has always allowed any.

        Raises:
          TraceError: a note has a value of the wrong type.
        """
        known = _fields_of(cls, notes)
        untraced = known.get("untraced")
        if isinstance(untraced, Mapping):
            fields = _fields_of(UntracedSteps, untraced)
            known["untraced"] = UntracedSteps(**fields) if fields else None
        return cls(**known)


def _check(value: Any, where: str) -> None:
    """Checks every field against its annotation, and keeps copies of mappings."""
    hints = typing.get_type_hints(type(value))
    for field in dataclasses.fields(value):
        try:
            held = value_of(hints[field.name], getattr(value, field.name), f"{where}.{field.name}")
        except DataError as error:
            raise TraceError(str(error)) from None
        object.__setattr__(value, field.name, held)


def _known(value: Any) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    unknown = type(value)()
    return {
        field.name: held
        for field in dataclasses.fields(value)
        if (held := getattr(value, field.name)) != getattr(unknown, field.name)
    }


def _fields_of(kind: Any, notes: Mapping[str, Any]) -> dict[str, Any]:
    """The notes that have a field; one that is null is as good as none."""
    names = [field.name for field in dataclasses.fields(kind)]
    return {name: notes[name] for name in names if notes.get(name) is not None}
