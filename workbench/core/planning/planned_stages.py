"""A candidate of a side → the stages that its plan makes."""

from __future__ import annotations

import dataclasses

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.boundary.candidates import Candidate, CandidateStage
from workbench.core.graph.graph_view import Bools
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.planning.buffer_placement import (
    ComputeDevice,
    buffer_device,
    is_gpu,
    staged_device,
    stays_on_host,
)
from workbench.core.planning.stage_plan import PlannedStage, WidenedPut
from workbench.core.planning.trailing_updates import trailing_updates

_OUT_OF_RANGE = 11


def planned_stages(
    boundary: Boundary,
    side: Side,
    candidate: Candidate,
    options: SmartStageOptions,
    compute_device: ComputeDevice,
) -> tuple[PlannedStage, ...]:
    """The stages that a candidate makes on a side.

    Args:
      boundary, side: what may run ahead, and the input that it is of.
      candidate: of that side.
      options: of the stages; exceptions as integer codes.
      compute_device: as in `plan_stages`.
    """
    name = _name(boundary, options.name, side.number)
    exact = [stage for stage in candidate.new_stages if not stage.stale_lookups]
    stages: list[PlannedStage] = []
    for stage in candidate.new_stages:
        last = bool(exact) and stage is exact[-1]
        part = "_lookups" if stage.stale_lookups else "" if last else "_input"
        stages.append(
            _stage(
                boundary,
                side,
                stage,
                options,
                name=f"{name}{part}",
                widens=candidate.widens,
                chained=stage is not candidate.stages[0],
                compute_device=compute_device,
                last=last,
            )
        )
    return tuple(stages)


def _stage(
    boundary: Boundary,
    side: Side,
    stage: CandidateStage,
    options: SmartStageOptions,
    *,
    name: str,
    widens: bool,
    chained: bool,
    last: bool,
    compute_device: ComputeDevice,
) -> PlannedStage:
    view = boundary.view
    moved = stage.moved & side.legal
    order = view.ordered(moved)
    device = buffer_device(boundary, side, moved, compute_device, on_cpu=options.on_cpu and last)
    on_device, host = _carried(boundary, side, moved, device, compute_device)
    carried = [*on_device, *host]
    puts = side.start.puts if widens else ()
    user_stage = view.stages[puts[0]] if puts else None
    trailing = trailing_updates(boundary, side, moved) if stage.stale_lookups else None
    # Each run has one batch, from its lookups to its updates: so many may lack an update.
    runs = stage.stale_lookups + 1
    return PlannedStage(
        name=name,
        start=tuple(view.names[node] for node in side.start.nodes),
        moved=tuple(view.names[node] for node in order),
        moved_ops=tuple(view.ops[node] for node in order),
        carried=tuple(view.names[node] for node in carried),
        dtypes=tuple(view.outputs[node] for node in carried),
        shapes=tuple(view.output_shapes(node) for node in carried),
        options=dataclasses.replace(
            user_stage.options if user_stage else _stage_options(options, chained=chained),
            num_threads=runs if trailing else stage.num_threads,
            capacity=runs if trailing else stage.capacity,
        ),
        widens=tuple(_widened(boundary, put) for put in puts),
        own_name=user_stage.name if user_stage else "",
        own_buffer=view.shared_names[puts[0]] if puts else "",
        device=staged_device(options),
        buffer_device=device,
        host=tuple(view.names[node] for node in host),
        stale_lookups=stage.stale_lookups,
        trailing=trailing,
    )


def _carried(
    boundary: Boundary, side: Side, moved: Bools, device: str, compute_device: ComputeDevice
) -> tuple[list[int], list[int]]:
    """The nodes whose values travel: to the buffer's device, and those that stay on the host."""
    carried = boundary.carried(side, moved)
    host: list[int] = []
    if is_gpu(device):
        host = [n for n in carried if stays_on_host(boundary, side, moved, n, compute_device)]
    return [n for n in carried if n not in host], host


def _stage_options(options: SmartStageOptions, chained: bool) -> StageOptions:
    """Options of a new stage; the stage before a chained one ends in OUT_OF_RANGE."""
    closed = options.closed_exception_types
    if chained and closed is not None:
        options = dataclasses.replace(
            options, closed_exception_types=tuple(sorted({*closed, _OUT_OF_RANGE}))
        )
    names = {field.name for field in dataclasses.fields(StageOptions)}
    names -= {"num_clients", "num_threads", "capacity"}
    return StageOptions(**{name: getattr(options, name) for name in names})


def _widened(boundary: Boundary, put: int) -> WidenedPut:
    view = boundary.view
    owner, *record = (view.tensor(node, output) for node, output in view.inputs(put))
    return WidenedPut(put=view.names[put], owner=owner, record=tuple(record))


def _name(boundary: Boundary, wanted: str, number: int) -> str:
    """A name under which the graph has nothing yet."""
    names = boundary.view.names
    name, tried = wanted if not number else f"{wanted}_{number}", number
    while any(taken == name or taken.startswith((f"{name}/", f"{name}_")) for taken in names):
        tried += 1
        name = f"{wanted}_{tried}"
    return name
