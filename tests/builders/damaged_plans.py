"""FusionPlans that do something else than the graph that they were made for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tensorflow.core.framework import graph_pb2

import workbench as wb


def edited(nodes: bytes, edit: Callable[[Any], None]) -> bytes:
    definition = graph_pb2.GraphDef.FromString(nodes)
    edit(definition.node)
    return bytes(definition.SerializeToString())


def applied_twice(plan: wb.FusionPlan) -> wb.FusionPlan:
    """A plan whose updates are done by two nodes, one behind the other."""
    second: list[str] = []

    def add(nodes: Any) -> None:
        for node in [node for node in nodes if "GroupedApply" in node.op]:
            copy = nodes.add()
            copy.CopyFrom(node)
            copy.name += "_again"
            copy.input.append(f"^{node.name}")
            second.append(node.name)

    added = edited(plan.added, add)

    def wait(nodes: Any) -> None:
        for node in nodes:
            for i, text in enumerate(node.input):
                if text[1:] in second:
                    node.input[i] = f"{text}_again"

    assert second, "the plan does no update"
    return dataclasses.replace(plan, added=added, replaced=edited(plan.replaced, wait))


def without_waits(plan: wb.FusionPlan) -> wb.FusionPlan:
    """A plan whose nodes wait for nothing but what they read."""

    def forget(nodes: Any) -> None:
        for node in nodes:
            kept = [text for text in node.input if not text.startswith("^")]
            del node.input[:]
            node.input.extend(kept)

    return dataclasses.replace(
        plan, added=edited(plan.added, forget), replaced=edited(plan.replaced, forget)
    )
