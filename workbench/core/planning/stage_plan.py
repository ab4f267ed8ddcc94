"""StagePlan: the frozen decision which nodes run ahead, in which stages, and why.

A plan names nodes and holds no graph. `planner.plan_stages` makes it, `rewrite.apply` applies it,
and it goes through JSON unchanged.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from workbench.core.boundary.boundary import Boundary
from workbench.core.graph.graph_view import Shape
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.planning.buffer_placement import ON_CPU, ComputeDevice
from workbench.core.planning.trailing_updates import TrailingUpdates
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.prediction import Prediction
from workbench.display import Displayed
from workbench.errors import DataError, PlanError, visible
from workbench.files.saved_values import json_of, shown, value_of
from workbench.number_words import counted, steps_stale

_FORMAT_VERSION = 2
_NOT_SAVED = ("boundary", "costs", "wishes", "compute_device")
_NOT_READ: Mapping[str, Any] = {
    "boundary": None,
    "costs": None,
    "wishes": None,
    "compute_device": ON_CPU,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class WidenedPut:
    """One put of the user's own stage that is widened.

    Attributes:
      put: its name.
      owner: the tensor that names its owner.
      record: the tensors that it puts in today.
    """

    put: str
    owner: str
    record: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlannedStage:
    """One stage of a plan.

    Attributes:
      name: of the stage, in messages, traces and as prefix of what runs ahead.
      start: nodes that deliver its batch.
      moved: nodes that run ahead, each after those that it depends on, the start first.
      moved_ops: their op types.
      carried: the nodes all of whose outputs travel through the buffer, the start first.
      dtypes: dtype names of the outputs of each carried node.
      shapes: their static shapes; -1 for a size that is not known, None where the rank is not.
      options: of the stage; exceptions are integer codes.
      widens: puts of the user's own stage, when that one is widened; else a new buffer is made.
      own_name, own_buffer: name and "container/shared_name" of the user's own stage then.
      device: where the staged side runs, "" for where it would anyway.
      buffer_device: where the buffer and its ops are; on a GPU what travels is moved there ahead
        of the step.
      host: the carried nodes, the last ones, whose outputs stay in host memory all the same.
      stale_lookups: at most so many steps ahead its items are begun, because it holds lookups of
        what the steps train; 0: as far ahead as there is room.
      trailing: updates of what these lookups read on other tasks, which the runs of this stage do.
    """

    name: str
    start: tuple[str, ...]
    moved: tuple[str, ...]
    moved_ops: tuple[str, ...]
    carried: tuple[str, ...]
    dtypes: tuple[tuple[str, ...], ...]
    shapes: tuple[tuple[Shape, ...], ...]
    options: StageOptions = dataclasses.field(default_factory=StageOptions)
    widens: tuple[WidenedPut, ...] = ()
    own_name: str = ""
    own_buffer: str = ""
    device: str = ""
    buffer_device: str = ""
    host: tuple[str, ...] = ()
    stale_lookups: int = 0
    trailing: TrailingUpdates | None = None

    @property
    def staleness(self) -> str:
        """How stale its lookups are at most, in words: "1 step stale"; "" where they are exact."""
        return steps_stale(self.stale_lookups)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Edit:
    """One change that a plan makes, or leaves, and why.

    Attributes:
      name: what is done, such as "new stage" or "leave your stage".
      reason: why, in a sentence.
    """

    name: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class StagePlan(Displayed):
    """Which nodes run ahead, in which stages.

    Attributes:
      stages: in the order in which they are applied; none leaves the graph as it is.
      targets: nodes that the user wants on the compute side.
      roots: nodes whose ancestors the fingerprint covers.
      fingerprint: of that region of the graph, see `GraphView.fingerprint`.
      edits: what is done and why, in words.
      predictions: of the candidates that were weighed; empty without a trace.
      boundary: what the plan was made from; None for a plan out of JSON.
      costs: of its nodes, as the trace has them; None without a trace or out of JSON.
      wishes: the options that it was made with; None out of JSON.
      compute_device: where the compute side is, as it was made for; a CPU out of JSON.
    """

    stages: tuple[PlannedStage, ...]
    targets: tuple[str, ...]
    roots: tuple[str, ...]
    fingerprint: str
    edits: tuple[Edit, ...]
    predictions: tuple[Prediction, ...] = ()
    boundary: Boundary | None = dataclasses.field(default=None, compare=False, repr=False)
    costs: Costs | None = dataclasses.field(default=None, compare=False, repr=False)
    wishes: SmartStageOptions | None = dataclasses.field(default=None, compare=False, repr=False)
    compute_device: ComputeDevice = dataclasses.field(default=ON_CPU, compare=False, repr=False)

    def __repr__(self) -> str:
        stages = ", ".join(f"{stage.name}: {len(stage.moved)} nodes" for stage in self.stages)
        return f"StagePlan({stages or 'no stage'})"

    def describe(self) -> str:
        """The plan in words: what moves, what travels, what it is predicted to give."""
        lines = [f"{edit.name}: {edit.reason}" for edit in self.edits]
        for stage in self.stages:
            tensors = sum(map(len, stage.dtypes))
            how = f"widens your stage {stage.own_name!r}" if stage.widens else "new buffer"
            lines.append(
                f"stage {stage.name!r} ({how}): {len(stage.moved)} nodes run ahead from "
                f"{', '.join(map(repr, stage.start))}; {tensors} tensors of {len(stage.carried)} "
                f"nodes travel; threads {stage.options.num_threads}, "
                f"capacity {stage.options.capacity}"
                + (f"; its lookups are {stage.staleness}" if stage.stale_lookups else "")
                + (f"; {_trails(stage.trailing)}" if stage.trailing else "")
            )
        lines += _predicted(self.predictions)
        if any(stage.stale_lookups for stage in self.stages):
            lines.append("what stale lookups give is not predicted: compare(…) measures it")
        return visible("\n".join(lines))

    def explain(self, node: str) -> str:
        """What happens to one node and why.

        Raises:
          PlanError: there is no such node, or the plan came out of JSON.
        """
        if self.boundary is None:
            raise PlanError(
                "a plan read from JSON holds no graph to explain; make it again with "
                "workbench.plan(workbench.find_boundary(graph, …))"
            )
        name = self.boundary.view.names[self.boundary.view.number(node)]
        for stage in reversed(self.stages):
            if name in stage.moved:
                travels = "; its outputs travel" if name in stage.carried else ""
                if stage.stale_lookups and self._is_stale(name):
                    return (
                        f"{name!r} runs {stage.staleness} in stage {stage.name!r}: "
                        f"stale_lookups={stage.stale_lookups}{travels}."
                    )
                return f"{name!r} runs ahead in stage {stage.name!r}{travels}."
            if stage.trailing and name in stage.trailing.moved:
                return (
                    f"{name!r} trails the step: the run of stage {stage.name!r} that read its "
                    f"batch does it, {stage.staleness}."
                )
        return self.boundary.explain(name)

    def _is_stale(self, name: str) -> bool:
        assert self.boundary is not None
        node = self.boundary.view.number(name)
        return any(side.stale[node] for side in self.boundary.sides)

    def to_json(self) -> str:
        """The plan as JSON, without its boundary."""
        document = {
            "format_version": _FORMAT_VERSION,
            **{
                field.name: getattr(self, field.name)
                for field in dataclasses.fields(self)
                if field.name not in ("stages", "edits", "predictions", *_NOT_SAVED)
            },
            "stages": [dataclasses.asdict(stage) for stage in self.stages],
            "edits": [dataclasses.asdict(edit) for edit in self.edits],
            "predictions": [dataclasses.asdict(each) for each in self.predictions],
        }
        return json.dumps(document, indent=1)

    @staticmethod
    def from_json(text: str) -> StagePlan:
        """The plan that `to_json` wrote.

        Raises:
          PlanError: not JSON, not a plan, or of another format version.
        """
        try:
            document = json_of(text)
        except DataError as error:
            raise PlanError(
                f"this is no JSON: {error}; expected what StagePlan.to_json wrote"
            ) from error
        return StagePlan.from_document(document)

    @staticmethod
    def from_document(document: Any) -> StagePlan:
        """The plan whose JSON a document is.

        Raises:
          PlanError: not a plan, or of another format version.
        """
        version = document.get("format_version") if isinstance(document, Mapping) else None
        if version != _FORMAT_VERSION:
            raise PlanError(
                f"the plan has format version {shown(version)}; this workbench reads "
                f"{_FORMAT_VERSION}"
            )
        given = {name: value for name, value in document.items() if name != "format_version"}
        try:
            return _checked(value_of(StagePlan, given, "the plan", **_NOT_READ))
        except DataError as error:
            raise PlanError(f"the plan is damaged: {error}") from error

    def require_graph(self, fingerprint: str) -> None:
        """Requires that a graph is the one that the plan was made for.

        Raises:
          PlanError: it is another.
        """
        if fingerprint != self.fingerprint:
            raise PlanError(
                f"this plan was made for another graph: its fingerprint is {self.fingerprint}, "
                f"this graph's is {fingerprint}; make a plan for this graph"
            )


def _trails(trailing: TrailingUpdates) -> str:
    count = len(trailing.updates)
    return (
        f"{counted(count, 'update')} on {' and '.join(trailing.tasks)} "
        f"{'trails' if count == 1 else 'trail'} the step: the run that read a batch's "
        f"rows applies what the step returns, {counted(len(trailing.returned), 'tensor')}"
    )


def _predicted(predictions: tuple[Prediction, ...]) -> list[str]:
    if not predictions:
        return ["no prediction: give a trace to plan(…, trace=…) to have one"]
    width = max(len(each.label) for each in predictions)
    return [
        "predicted step time:",
        *(
            f"{'→' if each.chosen else ' '} {each.label:<{width}}  {each.step_ms:8.3f} ms, "
            f"limited by {each.limited_by} ({each.bound_ms:.3f} ms)"
            for each in predictions
        ),
    ]


def _checked(plan: StagePlan) -> StagePlan:
    """Requires that a plan says of all nodes of a stage what it says of one, and finite times.

    Raises:
      DataError: it is not.
    """
    for each in plan.predictions:
        for ms in (each.step_ms, each.bound_ms):
            if not 0 <= ms < math.inf:
                raise DataError(f"the prediction of {shown(each.label)} is {ms} ms")
    for stage in plan.stages:
        _require_all(stage.name, "moved", stage.moved, stage.moved_ops)
        _require_all(stage.name, "carried", stage.carried, stage.dtypes, stage.shapes)
        pairs = zip(stage.dtypes, stage.shapes, strict=True)
        if any(len(dtypes) != len(shapes) for dtypes, shapes in pairs):
            raise DataError(f"stage {shown(stage.name)} has other numbers of dtypes and shapes")
        for name in ("closed_exception_types", "ignored_exception_types"):
            codes = getattr(stage.options, name) or ()
            if not all(type(code) is int for code in codes):
                raise DataError(f"{name} is {shown(codes)}; expected integer codes")
        if stage.trailing is not None:
            trailing = stage.trailing
            _require_all(stage.name, "moved", trailing.moved, trailing.moved_ops)
            _require_all(
                stage.name, "returned", trailing.returned, trailing.dtypes, trailing.shapes
            )
    return plan


def _require_all(stage: str, name: str, *told: tuple[object, ...]) -> None:
    if len({len(each) for each in told}) > 1:
        counts = " and ".join(str(len(each)) for each in told)
        raise DataError(f"stage {shown(stage)} says of {name} {counts} things; expected as many")
