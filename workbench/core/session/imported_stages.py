"""Stages of a graph that was imported: their runners, read back from the ops of their buffers.

`describe_put` leaves on each put what no op of the buffer tells. An export of the graph keeps it,
and so does an import, into a scope too.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

from tensorflow.core.framework import attr_value_pb2

from workbench.core.graph.op_types import STAGE_PUT, STAGE_TAKE
from workbench.core.options import StageOptions
from workbench.core.session.prefetch_runner import PrefetchRunner
from workbench.core.staging.error_codes import closed_codes, error_codes, with_codes
from workbench.errors import UnsupportedError, first_line
from workbench.files.saved_values import json_of, value_of

# On each put: what else its runner has, as JSON, and the name that the put was built with.
# The name is in native/rewriting/restart/graph_stages.cc too.
_STAGE, _BUILT = "_workbench_stage", "_workbench_put"
_FORMAT = 1
# Ops of a buffer by the field of the runner that has their name, with the fields of their inputs.
_OPS = {
    "WorkbenchBufferFlush": ("flush", ("owner",)),
    "WorkbenchBufferRest": ("rest", ("owner", "rest_reason")),
    "WorkbenchBufferResume": ("resume", ("owner",)),
    "WorkbenchBufferCancel": ("cancel", ("owner", "cancel_code", "message")),
}
_Address = tuple[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Saved:
    """What a put says of its stage, and its own number there."""

    format: int
    stage: str
    number: int
    feeds: tuple[tuple[str, str], ...]
    options: StageOptions


def describe_put(put: Any, runner: PrefetchRunner, number: int) -> None:
    """Leaves on a put what is needed to build the stage's runner again.

    Args:
      put: the op.
      runner: of its stage.
      number: of the put, among the different ones of the stage.
    """
    text = json.dumps(
        {
            "format": _FORMAT,
            "stage": runner.stage,
            "number": number,
            "feeds": runner.feeds,
            "options": dataclasses.asdict(with_codes(runner.options)),
        }
    )
    for name, value in ((_STAGE, text), (_BUILT, put.name)):
        put._set_attr(name, attr_value_pb2.AttrValue(s=value.encode()))


def imported_runners(graph: Any, known: Iterable[PrefetchRunner]) -> list[PrefetchRunner]:
    """The runners of the stages that the graph has beside those it was built with.

    Args:
      graph: a `tf.Graph`.
      known: the runners of the stages that were built in it.

    Raises:
      UnsupportedError: a stage lacks ops, or shares its buffer with another stage.
    """
    known_puts = {put for runner in known for put in runner.puts}
    stages: dict[str, list[Any]] = {}
    users: dict[_Address, str] = {}
    for put in graph.get_operations():
        if put.type != STAGE_PUT:
            continue
        owner = put.inputs[0].name
        first = users.setdefault(_address(put), owner)
        if first != owner:
            raise UnsupportedError(
                f"the puts {put.name!r} and those that read {first!r} are of one buffer: the graph "
                "has a stage twice, as after a second import; import a graph with stages once"
            )
        if put.name not in known_puts:
            stages.setdefault(owner, []).append(put)
    return [_runner(graph, owner, puts) for owner, puts in stages.items()]


def takes_without_a_put(graph: Any) -> list[str]:
    """Names of the takes whose stage has no put in the graph: only parts of it were imported."""
    ops = graph.get_operations()
    fed = {_address(op) for op in ops if op.type == STAGE_PUT}
    return [op.name for op in ops if op.type == STAGE_TAKE and _address(op) not in fed]


def _runner(graph: Any, owner: str, puts: list[Any]) -> PrefetchRunner:
    """The runner of the puts that read one owner."""
    saved = [_saved(put) for put in puts]
    puts = [put for _, put in sorted(zip(saved, puts, strict=True), key=lambda e: e[0].number)]
    scope = puts[0].name.removesuffix(puts[0].get_attr(_BUILT).decode())
    options = saved[0].options
    names = [put.name for put in puts]
    fields: dict[str, Any] = _fields(graph, owner, puts[0])
    return PrefetchRunner(
        stage=scope + saved[0].stage,
        puts=tuple(names * options.num_threads if len(names) == 1 else names),
        feeds=tuple((scope + target, scope + value) for target, value in saved[0].feeds),
        closed_codes=closed_codes(options),
        ignored_codes=error_codes(options.ignored_exception_types),
        options=options,
        **fields,
    )


def _saved(put: Any) -> _Saved:
    try:
        saved: _Saved = value_of(_Saved, json_of(put.get_attr(_STAGE)), "its stage")
        if saved.format == _FORMAT:
            return saved
        why = f"format {saved.format}"
    except ValueError as error:
        why = first_line(error)
    raise UnsupportedError(
        f"the stage of {put.name!r} was exported by another version of Workbench, and cannot "
        "run in an imported graph; build the graph by its program and restore the variables "
        f"({why})"
    )


def _fields(graph: Any, owner: str, put: Any) -> dict[str, str]:
    """Names of the ops of a buffer beside its puts, and of the tensors fed to them, by field."""
    fields = {}
    folder = put.name.rpartition("/")[0]
    for op in graph.get_operations():
        if op.type in _OPS and op.inputs[0].name == owner:
            field, inputs = _OPS[op.type]
            fields[field] = op.name
            fields.update(zip(inputs, (each.name for each in op.inputs), strict=False))
        elif op.type == "WorkbenchBufferDrain" and op.name.rpartition("/")[0] == folder:
            fields |= {"drain": op.outputs[0].name, "drain_enable": op.inputs[0].name}
    wanted = {field for field, _ in _OPS.values()} | {"drain"}
    if wanted - fields.keys():
        raise UnsupportedError(
            f"the stage of {put.name!r} lacks its ops {sorted(wanted - fields.keys())}: only a "
            "part of its graph was exported, so that it cannot run; export the whole graph"
        )
    return fields


def _address(op: Any) -> _Address:
    return op.get_attr("container").decode(), op.get_attr("shared_name").decode()
