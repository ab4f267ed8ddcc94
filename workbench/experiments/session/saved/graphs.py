"""Learned graphs ↔ files: a boundary each, and what else a prediction reads of its graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.options import Optimizations
from workbench.core.what_if.scenario import GraphKey
from workbench.core.what_if.what_if import KnownGraph
from workbench.errors import DataError
from workbench.experiments.session.learned_graphs import LearnedGraphs
from workbench.experiments.session.saved.options import (
    optimizations_from_json,
    optimizations_to_json,
)


def learned_to_json(learned: LearnedGraphs) -> dict[str, Any]:
    """What is known of the graphs, JSON-ready, without their boundaries."""
    return {
        "problem": learned.problem,
        "smart_stage": optimizations_to_json(Optimizations(smart_stage=learned.smart_stage)),
        "graphs": [
            {**dataclasses.asdict(key), "problem": known.problem, **_of_nodes(known)}
            for key, known in learned.graphs.items()
        ],
    }


def write_boundaries(learned: LearnedGraphs, folder: Path) -> None:
    """Writes the boundaries of the graphs into a folder."""
    for number, known in enumerate(learned.graphs.values()):
        if known.boundary is not None:
            _file(folder, number).write_bytes(boundary_to_bytes(known.boundary))


def learned_from_json(document: Mapping[str, Any], folder: Path) -> LearnedGraphs:
    """What `learned_to_json` gave, with the boundaries that `write_boundaries` wrote.

    Raises:
      DataError: a boundary is missing or damaged.
      KeyError, TypeError, ValueError: the document is damaged.
    """
    smart_stage = optimizations_from_json(document["smart_stage"]).smart_stage
    if smart_stage is None:
        raise ValueError("it does not say what decided what may run ahead")
    return LearnedGraphs(
        graphs={
            GraphKey(staged=bool(each["staged"]), fused=each["fused"]): _graph_from(
                each, _file(folder, number)
            )
            for number, each in enumerate(document["graphs"])
        },
        smart_stage=smart_stage,
        problem=str(document["problem"]),
    )


def _of_nodes(known: KnownGraph) -> dict[str, Any]:
    """By number of the node, what is not in the file of a boundary; "nodes" is null without one."""
    if known.boundary is None:
        return {"nodes": None}
    view = known.boundary.view
    return {
        "nodes": len(view),
        "added_ns": list(known.added_ns.items()),
        "likened": [[node, *each] for node, each in known.likened.items()],
        "shared_names": list(view.shared_names.items()),
        "functions": list(view.functions.items()),
    }


def _graph_from(document: Mapping[str, Any], path: Path) -> KnownGraph:
    problem = str(document["problem"])
    if document["nodes"] is None:
        return KnownGraph(problem=problem)
    try:
        boundary = boundary_from_bytes(path.read_bytes())
    except (OSError, DataError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: {reason}") from None
    added_ns = {int(node): float(ns) for node, ns in document["added_ns"]}
    # Sessions of before there were any have none.
    likened = {
        int(node): (str(name), float(times)) for node, name, times in document.get("likened", ())
    }
    shared_names = {int(node): str(name) for node, name in document["shared_names"]}
    functions = {int(node): tuple(map(str, names)) for node, names in document["functions"]}
    wrong = [
        node
        for node in (*added_ns, *likened, *shared_names, *functions)
        if not 0 <= node < len(boundary.view)
    ]
    if wrong or document["nodes"] != len(boundary.view):
        raise ValueError(f"{path.name} has {len(boundary.view)} nodes, and others are named")
    view = dataclasses.replace(boundary.view, shared_names=shared_names, functions=functions)
    boundary = dataclasses.replace(boundary, view=view)
    return KnownGraph(boundary=boundary, added_ns=added_ns, likened=likened, problem=problem)


def _file(folder: Path, number: int) -> Path:
    return folder / f"graph-{number}.json.gz"
