"""Every node of a graph is found in the boxes of its boundary, or in a row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.javascript import evaluate
from tests.builders.plans import towers, two_branches_planned
from workbench.core.planning.planner import plan_stages
from workbench.viz.boundary import view as module
from workbench.viz.boundary.view import BoundaryView, boundary_view


def in_js(expression: str, view: BoundaryView, **more: Any) -> Any:
    return evaluate(expression, {"view": view.to_json(), **more})


def test_boxes_name_every_node_once() -> None:
    for source in (towers(), plan_stages(towers()), two_branches_planned()):
        view = boundary_view(source)
        named = [name for box in view.boxes for name in box.nodes]
        assert len(named) == len(set(named)) > 0
    nodes = towers().view.names
    assert {name for box in boundary_view(towers()).boxes for name in box.nodes} <= set(nodes)


def test_the_innermost_box_has_the_name_and_those_around_it_lead_there() -> None:
    view = boundary_view(plan_stages(towers()))
    names = [name for box in view.boxes for name in box.nodes]
    found = in_js(
        "value.names.map((name) => placeOfNode(value.view, name).boxes)", view, names=names
    )
    assert view.flow is not None
    drawn = {box.box for box in view.flow.boxes}
    for name, (first, *inner) in zip(names, found, strict=True):
        place = first
        for each in inner:
            assert each in view.boxes[place].boxes
            place = each
        assert name in view.boxes[place].nodes
        assert first in drawn


def test_a_refused_node_is_in_its_row_too() -> None:
    view = boundary_view(towers())
    found = in_js('placeOfNode(value.view, "noise")', view)
    assert view.rows[found["row"]].names == ("noise",)
    assert in_js('placeOfNode(value.view, "nowhere")', view) is None


def test_only_what_is_one_node_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    view = boundary_view(towers())
    told = in_js("value.view.boxes.map((_, box) => nodeOfPick(value.view, box, -1))", view)
    for box, name in zip(view.boxes, told, strict=True):
        assert name == (box.nodes[0] if len(box.nodes) == 1 and not box.boxes else "")
    assert in_js("nodeOfPick(value.view, -1, -1)", view) == ""
    row = next(place for place, each in enumerate(view.rows) if each.title == "noise")
    assert in_js(f"nodeOfPick(value.view, -1, {row})", view) == "noise"


def test_of_a_large_graph_the_refused_are_found_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_NODES", 3)
    view = boundary_view(towers())
    assert not any(box.nodes for box in view.boxes)
    assert in_js('placeOfNode(value.view, "noise")', view)["row"] >= 0
