"""Learned graphs ↔ files: a boundary and samples each, and what else a prediction reads of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.optimizations import Optimizations
from workbench.core.trace.trace import load_trace
from workbench.core.what_if.base import Sample
from workbench.core.what_if.scenario import GraphKey, SampleKey
from workbench.core.what_if.what_if import KnownGraph
from workbench.errors import DataError
from workbench.experiments.comparison.comparison_file import FileError
from workbench.experiments.session.learned_graphs import LearnedGraphs
from workbench.experiments.session.saved.options import (
    optimizations_from_json,
    optimizations_to_json,
)
from workbench.experiments.worker.wire.messages import SampledIds
from workbench.files.saved_values import read_file, value_of


def learned_to_json(learned: LearnedGraphs) -> dict[str, Any]:
    """What is known of the graphs, JSON-ready, without their boundaries and samples."""
    return {
        "problem": learned.problem,
        "smart_stage": optimizations_to_json(Optimizations(smart_stage=learned.smart_stage)),
        "graphs": [
            {**dataclasses.asdict(key), "problem": known.problem, **_of_nodes(known)}
            for key, known in learned.graphs.items()
        ],
        "sampled": None if learned.sampled is None else dataclasses.asdict(learned.sampled),
    }


def write_graphs(learned: LearnedGraphs, folder: Path) -> None:
    """Writes the boundaries and the samples of the graphs into a folder."""
    for number, known in enumerate(learned.graphs.values()):
        if known.boundary is not None:
            _file(folder, number).write_bytes(boundary_to_bytes(known.boundary))
        for place, sample in enumerate(known.samples.values()):
            sample.trace.save(_sample(folder, number, place))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SampleDocument:
    """A sample, without its trace."""

    fused: str | None
    serial: bool
    beside_ns: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _GraphDocument:
    """One graph; only its problem where it has no boundary."""

    staged: bool
    fused: str | None
    problem: str
    nodes: int | None
    samples: tuple[_SampleDocument, ...] = ()
    shared_names: tuple[tuple[int, str], ...] = ()
    functions: tuple[tuple[int, tuple[str, ...]], ...] = ()
    captures: tuple[tuple[int, str], ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Document:
    """What `learned_to_json` gives."""

    problem: str
    smart_stage: dict[str, Any]
    graphs: tuple[_GraphDocument, ...]
    # Absent from sessions of before they were kept.
    sampled: SampledIds | None = None


def learned_from_json(held: Mapping[str, Any], folder: Path) -> LearnedGraphs:
    """What `learned_to_json` gave, with what `write_graphs` wrote.

    Raises:
      DataError, TraceError: the document is damaged, or a file is missing or damaged.
    """
    graphs = held.get("graphs")
    if isinstance(graphs, list):
        held = {**held, "graphs": [*map(_without_estimates, graphs)]}
    document = value_of(_Document, held, "what was learned")
    smart_stage = optimizations_from_json(document.smart_stage).smart_stage
    if smart_stage is None:
        raise DataError("it does not say what decided what may run ahead")
    return LearnedGraphs(
        graphs={
            GraphKey(staged=each.staged, fused=each.fused): _graph_from(each, folder, number)
            for number, each in enumerate(document.graphs)
        },
        smart_stage=smart_stage,
        problem=document.problem,
        sampled=document.sampled,
    )


def _of_nodes(known: KnownGraph) -> dict[str, Any]:
    """By number of the node, what is not in the file of a boundary; "nodes" is null without one."""
    if known.boundary is None:
        return {"nodes": None}
    view = known.boundary.view
    return {
        "nodes": len(view),
        "samples": [
            {**dataclasses.asdict(key), "beside_ns": sample.beside_ns}
            for key, sample in known.samples.items()
        ],
        "shared_names": list(view.shared_names.items()),
        "functions": list(view.functions.items()),
        "captures": list(view.captures.items()),
    }


def _without_estimates(graph: Any) -> Any:
    """A graph without the estimates that sessions had before there were samples."""
    if not isinstance(graph, dict):
        return graph
    return {key: each for key, each in graph.items() if key not in ("added_ns", "likened")}


def _graph_from(document: _GraphDocument, folder: Path, number: int) -> KnownGraph:
    if document.nodes is None:
        return KnownGraph(problem=document.problem)
    path = _file(folder, number)
    try:
        boundary = boundary_from_bytes(read_file(path))
    except DataError as error:
        raise FileError(f"{path}: {error}") from None
    of_nodes = (document.shared_names, document.functions, document.captures)
    named = [each[0] for held in of_nodes for each in held]
    count = len(boundary.view)
    if document.nodes != count or not all(0 <= node < count for node in named):
        raise DataError(f"{path.name} has {count} nodes, and others are named")
    view = dataclasses.replace(
        boundary.view,
        shared_names=dict(document.shared_names),
        functions=dict(document.functions),
        captures=dict(document.captures),
    )
    samples = {
        SampleKey(fused=sample.fused, serial=sample.serial): Sample(
            trace=load_trace(_sample(folder, number, place)), beside_ns=sample.beside_ns
        )
        for place, sample in enumerate(document.samples)
    }
    return KnownGraph(
        boundary=dataclasses.replace(boundary, view=view), samples=samples, problem=document.problem
    )


def _file(folder: Path, number: int) -> Path:
    return folder / f"graph-{number}.json.gz"


def _sample(folder: Path, number: int, place: int) -> Path:
    return folder / f"sample-{number}-{place}.parquet"
