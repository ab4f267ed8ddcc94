"""The drawing in flow order: places that stay, links, cuts that are known, cuts that are chosen."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.graphs import graph
from tests.builders.javascript import evaluate
from tests.builders.plans import own_stage, predictions, towers
from workbench.core.boundary.chosen_cut import chosen_cut, why_not_cut
from workbench.core.boundary.legality import boundary_of
from workbench.core.options import SmartStageOptions
from workbench.core.planning.planner import cut_plan, plan_of, plan_stages, weigh
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.cut_prediction import predict_cut
from workbench.errors import PlanError
from workbench.viz.boundary.drawing.crossing import crossing, line_points, pills
from workbench.viz.boundary.drawing.flow_schema import BOX_HEIGHT, BOX_WIDTH
from workbench.viz.boundary.drawing.known_cuts import closed, without
from workbench.viz.boundary.drawing.placing import columns_of, placed, route
from workbench.viz.boundary.view import boundary_view, boundary_view_and_teller
from workbench.viz.boundary.widget import BoundaryWidget
from workbench.viz.style import format

TIED = """
next = IteratorGetNext int64
a/handle = MakeHandle(next) resource
b/read = Neg(a/handle) int64
c/late = Log1p(b/read) int64
w = VariableV2
loss = Mul(c/late, next, w)
"""


def costs_of(boundary, ms: float = 1.0, **named: float) -> Costs:
    """Every node takes as long, but for those that are named."""
    span = np.full(len(boundary.view), ms * 1e6)
    for name, own_ms in named.items():
        span[boundary.view.number(name)] = own_ms * 1e6
    return Costs(span_ns=span, cores=4)


def planned(boundary, costs, **wishes):
    """A plan as one with a trace is made."""
    options = SmartStageOptions(**wishes)
    best = [weigh(boundary, side, options, costs, cores=4) for side in boundary.sides]
    shown = [each for _, some in best for each in some]
    return plan_of(boundary, [each for each, _ in best], options, shown, costs=costs)


def places(flow):
    return [(box.box, box.column, box.x, box.y) for box in flow.boxes]


def label(view, place):
    return view.boxes[view.flow.boxes[place].box].label


def test_boxes_stand_in_flow_order_and_never_on_each_other():
    view = boundary_view(towers())
    columns = {label(view, i): box.column for i, box in enumerate(view.flow.boxes)}
    assert columns["next"] == 0
    assert columns["tower_0…tower_1/split"] == 1
    assert columns["tower_0…tower_1/hash"] == 2
    assert {columns["net/lookup…lookup_1"], columns["noise"], columns["loop/Enter"]} == {3}
    assert columns["net/joined"] < columns["loss"]
    taken = [(b.x, b.y) for b in view.flow.boxes]
    for k, (x, y) in enumerate(taken):
        assert x + BOX_WIDTH <= view.flow.width and y + BOX_HEIGHT <= view.flow.height
        for other_x, other_y in taken[:k]:
            assert abs(x - other_x) >= BOX_WIDTH or abs(y - other_y) >= BOX_HEIGHT


def test_no_box_moves_with_the_line():
    found = towers()
    plans = [
        plan_stages(found, include=["tower_0/hash", "tower_1/hash"]),
        plan_stages(found, include=["tower_0/hash", "tower_1/hash"]),
    ]
    assert places(boundary_view(plans[0]).flow) == places(boundary_view(plans[1]).flow)
    # whatever is ticked, what is drawn anew are the line, the pills, and the marks of boxes
    view = boundary_view(found)
    for cut in view.flow.cuts:
        moved = dataclasses.replace(view.flow, shown=view.flow.cuts.index(cut))
        assert places(moved) == places(view.flow)


def test_links_say_types_shapes_and_bytes():
    view = graph("next = IteratorGetNext int64 string\nw = VariableV2\nloss = Mul(next, next:1, w)")
    view = dataclasses.replace(view, shapes={0: ((512, 13), (512,))})
    flow = boundary_view(boundary_of(view, targets=["loss"])).flow
    (link,) = flow.links
    assert link.words == (
        "2 tensors: int64 [512, 13], string [512]; 53\u00a0kB and 1 of unknown size"
    )
    assert link.width == 7.0


def test_a_link_runs_between_the_boxes_that_it_passes():
    # 0 → 1 → 2 in three columns, and 0 → 2 past 1
    order, pairs = [0, 1, 2], [(0, 1), (1, 2), (0, 2)]
    columns = columns_of(order, pairs, [0, 0, 0], 9)
    assert columns == [0, 1, 2]
    place = placed(order, pairs, columns)
    straight, passing = route(place, 0, 1), route(place, 0, 2)
    assert len(straight) == 2
    top = place.tops[1]
    assert not top <= passing[1] <= top + BOX_HEIGHT
    assert route(place, 2, 0) == ()


def test_the_line_knows_its_places_and_what_they_give():
    found = towers()
    costs = costs_of(found, **{"tower_0/split": 5.0})
    view = boundary_view(cut_plan(found, chosen_cut(found), SmartStageOptions(), costs=costs))
    flow = view.flow
    line = [cut for cut in flow.cuts if cut.x >= 0]
    assert [cut.label for cut in line] == [
        "nothing moves",
        "after next",
        "after tower_0/split and 1 more",
        "all that may run ahead",
    ]
    assert [cut.x for cut in line] == sorted(cut.x for cut in line)
    moved = chosen_cut(found, include=["tower_0/split", "tower_1/split"])
    told = predict_cut(found, costs, moved).step_ms
    assert line[2].step == f"{told:.1f}\u00a0ms"
    assert flow.timed and flow.solid
    assert view.boxes[flow.boxes[0].box].time == "1.0\u00a0ms"


def test_smart_stages_cut_is_a_difference_with_a_gain_for_each_edit():
    found = towers()
    costs = costs_of(found, **{"tower_0/split": 5.0, "noise": 9.0})
    view, teller = boundary_view_and_teller(planned(found, costs))
    nothing, smart = view.flow.cuts[0], view.flow.cuts[view.flow.smart]
    assert nothing.leaves == ()
    assert {label(view, edit.box) for edit in nothing.edits if edit.adds} == {
        label(view, i)
        for i, box in enumerate(view.flow.boxes)
        if set(box.leaves) & set(smart.leaves)
    }
    for edit in nothing.edits:
        leaves = closed(view.flow.leaves, view.flow.boxes[edit.box].leaves)
        saved = teller.step_ms(()) - teller.step_ms(leaves)
        assert edit.gain == format.difference(-saved * 1e6)
    assert smart.edits == ()


def test_a_chosen_cut_stands_beside_smart_stages():
    found = towers()
    costs = costs_of(found)
    options = SmartStageOptions()
    plan = cut_plan(found, chosen_cut(found, include=[]), options, costs=costs)
    flow = boundary_view(plan).flow
    assert flow.smart != flow.shown
    assert flow.cuts[flow.shown].label == "after next"
    assert flow.cuts[flow.shown].edits


def test_a_box_is_divided_where_smart_stages_cut_runs_through_it():
    found = towers()
    costs = costs_of(found)
    one = chosen_cut(found, include=["tower_0/hash"])
    plan = cut_plan(found, one, SmartStageOptions(), costs=costs)
    view, teller = boundary_view_and_teller(plan)
    smart = weigh(found, found.sides[0], SmartStageOptions(), costs, cores=4)[0]
    moved = teller.leaves.moved(found, view.flow.cuts[view.flow.smart].leaves)
    wanted = smart.stages[-1].moved if smart.stages else found.sides[0].widest & False
    assert (moved[0] == wanted).all()
    shown = teller.leaves.moved(found, view.flow.cuts[view.flow.shown].leaves)
    assert (shown[0] == one[0]).all()


def test_the_cut_of_a_plan_has_the_plans_own_prediction():
    plan = dataclasses.replace(plan_stages(towers()), predictions=predictions(12.0, 8.0))
    flow = boundary_view(plan).flow
    shown = flow.cuts[flow.shown]
    # in two chained stages, which a moved line does not make
    assert len(plan.stages) == 2
    assert (shown.step, shown.gain, shown.limited_by) == ("8.0\u00a0ms", "1.50×", "the cores")
    assert flow.smart == flow.shown


def test_without_costs_nothing_is_predicted():
    flow = boundary_view(towers()).flow
    assert not flow.timed
    assert {cut.step for cut in flow.cuts} == {""}
    assert flow.last.startswith("What is left depends on table_0…table_1 (2 × VariableV2): reads")


def test_refusals_are_ranked_by_what_freeing_them_gives():
    found = towers()
    costs = costs_of(found, 0.1, noise=40.0, loss=60.0)
    view = boundary_view(planned(found, costs))
    assert next(cause.title for cause in view.causes) == "noise"
    assert view.causes[0].gain.startswith("\u2212")
    assert boundary_view(found).causes[0].gain == ""


def cut_in_js(view, expression, **value):
    return evaluate(expression, {"flow": view.to_json()["flow"], **value})


@pytest.fixture(scope="module")
def drawn():
    return [
        boundary_view_and_teller(each)
        for each in (
            towers(),
            own_stage(),
            boundary_of(graph(TIED), targets=["loss"]),
        )
    ]


def test_the_script_and_the_still_picture_draw_the_same_line(drawn):
    for view, _ in drawn:
        flow = view.flow
        cuts = [list(cut.leaves) for cut in flow.cuts]
        cuts += [sorted(closed(flow.leaves, [leaf])) for leaf in range(len(flow.leaves))]
        told = cut_in_js(
            view,
            "value.cuts.map((leaves) => { const a = new Set(leaves); const c = "
            "crossing(value.flow, a); const p = linePoints(value.flow, a); return {t: c.tensors, "
            "b: c.bytes, u: c.unknown, p, pills: pillsOf(value.flow, a, p, c)}; })",
            cuts=cuts,
        )
        for leaves, each in zip(cuts, told, strict=True):
            ahead = frozenset(leaves)
            found = crossing(flow, ahead)
            assert (each["t"], each["b"], each["u"]) == (found.tensors, found.bytes, found.unknown)
            assert [tuple(point) for point in each["p"]] == line_points(flow, ahead)
            assert each["pills"] == [dataclasses.asdict(pill) for pill in pills(flow, ahead, found)]


def test_what_crosses_is_what_the_plan_carries(drawn):
    for view, teller in drawn:
        for cut in view.flow.cuts:
            moved = teller.leaves.moved(teller.boundary, cut.leaves)
            carried = 0
            for side, nodes in zip(teller.boundary.sides, moved, strict=True):
                if cut.leaves:
                    outputs = teller.boundary.view.outputs
                    carried += sum(len(outputs[n]) for n in teller.boundary.carried(side, nodes))
            assert crossing(view.flow, frozenset(cut.leaves)).tensors == carried


def test_what_cannot_travel_moves_with_what_reads_it(drawn):
    view, _teller = drawn[2]
    names = [view.boxes[leaf.box].title for leaf in view.flow.leaves]
    ahead = closed(view.flow.leaves, [names.index("a/handle")])
    assert {names[leaf] for leaf in ahead} == {"next", "a/handle", "b/read"}
    assert without(view.flow.leaves, range(len(names)), [names.index("b/read")]) == {
        names.index("next")
    }


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_any_ticks_give_a_legal_cut_and_the_code_of_it_plans_the_same(drawn, data):
    view, teller = data.draw(st.sampled_from(drawn))
    flow, found = view.flow, teller.boundary
    count = len(flow.leaves)
    clicks = data.draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.booleans()), min_size=1, max_size=6)
    )
    leaves, code = cut_in_js(
        view,
        "(() => { let ahead = new Set(); for (const [leaf, on] of value.clicks) ahead = on ? "
        "new Set([...ahead, ...withNeeds(value.flow, [leaf])]) : "
        "withoutLeaves(value.flow, ahead, [leaf]); "
        "return [[...ahead].sort((a, b) => a - b), cutCode(value.flow, ahead)]; })()",
        clicks=clicks,
    )
    ahead: frozenset[int] = frozenset()
    for leaf, on in clicks:
        ahead = ahead | closed(flow.leaves, [leaf]) if on else without(flow.leaves, ahead, [leaf])
    assert leaves == sorted(ahead)
    moved = teller.leaves.moved(found, leaves)
    assert why_not_cut(found, moved) == ""
    arguments = re.fullmatch(r"plan = wb\.plan\(boundary, (include|exclude)=(\[.*\])\)", code)
    names = eval(arguments[2], {"__builtins__": {}})
    plan = plan_stages(found, **{arguments[1]: names})
    wanted = [found.view.names[n] for nodes in moved for n in np.flatnonzero(nodes)]
    planned_names = [name for stage in plan.stages for name in stage.moved]
    own = [name for name in wanted if leaves]
    assert sorted(planned_names) == sorted(own)


def test_the_widget_answers_what_a_cut_gives_and_plans_it():
    found = towers()
    costs = costs_of(found, **{"tower_0/split": 5.0})
    widget = BoundaryWidget(planned(found, costs))
    sent = []
    widget.send = sent.append
    leaf = widget.view.flow.boxes[0].leaves
    widget._on_message(widget, {"ask": list(leaf)}, [])
    told = [message["told"] for message in sent]
    assert [message.get("final", False) for message in sent] == [False, True]
    step_ms = predict_cut(found, costs, chosen_cut(found, include=[])).step_ms
    assert told[0]["step"] == f"{step_ms:.1f}\u00a0ms"
    assert told[1]["edits"]
    widget.ahead = list(leaf)
    assert widget.plan.stages[0].moved == ("next",)
    assert widget.plan.predictions[-1].step_ms == step_ms
    widget.ahead = [leaf for leaf, _ in enumerate(widget.view.flow.leaves)][1:]
    with pytest.raises(PlanError, match="the cut is not legal: 'next' has to run ahead as well"):
        _ = widget.plan


def test_a_widget_that_was_not_moved_keeps_its_plan():
    plan = plan_stages(towers())
    assert BoundaryWidget(plan).plan is plan
    with pytest.raises(PlanError, match="this widget has no graph to plan for"):
        _ = BoundaryWidget(boundary_view(plan)).plan
