"""A cut chosen by name: what it takes along, what it refuses and why, the plan made of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.graphs import graph
from tests.builders.plans import own_stage, towers
from workbench.core.boundary.chosen_cut import chosen_cut, names_of_cut, why_not_cut
from workbench.core.boundary.legality import boundary_of
from workbench.core.options import SmartStageOptions
from workbench.core.planning.planner import cut_plan, plan_stages
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.cut_prediction import predict_cut
from workbench.errors import PlanError


def names(boundary, moved):
    return [boundary.view.names[node] for node in np.flatnonzero(moved)]


def test_what_is_included_takes_along_what_it_depends_on():
    found = towers()
    (moved,) = chosen_cut(found, include=["tower_0/hash"])
    assert names(found, moved) == ["next", "tower_0/split", "tower_0/hash"]
    (alone,) = chosen_cut(found, include=[])
    assert names(found, alone) == ["next"]


def test_what_is_excluded_keeps_what_depends_on_it():
    found = towers()
    (moved,) = chosen_cut(found, exclude=["tower_1/split"])
    assert names(found, moved) == ["next", "tower_0/split", "tower_0/hash"]
    (nothing,) = chosen_cut(found, exclude=["next"])
    assert not nothing.any()


def test_a_refused_node_says_why():
    with pytest.raises(PlanError, match=r"cannot move: 'net/lookup' .* is a variable"):
        chosen_cut(towers(), include=["net/lookup"])
    with pytest.raises(PlanError, match="has no node 'nowhere'"):
        chosen_cut(towers(), exclude=["nowhere"])


def test_a_cut_is_named_by_what_is_shorter_to_say():
    found = towers()
    assert names_of_cut(found, chosen_cut(found, exclude=["tower_1/hash"])) == (
        None,
        ("tower_1/hash",),
    )
    # All that may run ahead needs a name, or the plan would choose.
    widest = names_of_cut(found, chosen_cut(found))
    assert widest == (("tower_0/hash", "tower_1/hash"), ())
    assert names_of_cut(found, chosen_cut(found, include=[])) == ((), ())
    (nothing,) = chosen_cut(found, exclude=["next"])
    assert names_of_cut(found, [nothing]) == (None, ("next",))
    lacks = found.view.mask(map(found.view.number, ["next", "tower_0/hash"]))
    with pytest.raises(PlanError, match="not legal: 'tower_0/split' has to run ahead as well"):
        names_of_cut(found, [lacks])


def test_a_plan_takes_the_cut_of_its_options():
    named = plan_stages(towers(), include=["tower_0/hash"])
    assert plan_stages(towers(), SmartStageOptions(include=("tower_0/hash",))) == named
    left = plan_stages(towers(), SmartStageOptions(exclude=("tower_1/split",)))
    assert left.stages[0].moved == named.stages[0].moved


TIED = """
next = IteratorGetNext int64
handle = MakeHandle(next) resource
read = Neg(handle) int64
w = VariableV2
loss = Mul(read, w)
"""


def test_a_tensor_that_cannot_travel_says_so():
    found = boundary_of(graph(TIED), targets=["loss"])
    with pytest.raises(
        PlanError,
        match="not legal: 'handle' would give the compute side resource, which cannot go through",
    ):
        chosen_cut(found, exclude=["read"])
    (moved,) = chosen_cut(found)
    assert names(found, moved) == ["next", "handle", "read"]


def test_an_illegal_cut_names_what_it_lacks():
    found = towers()
    view = found.view
    lacks = view.mask(map(view.number, ["next", "tower_0/hash"]))
    assert why_not_cut(found, [lacks]) == (
        "'tower_0/split' has to run ahead as well: what was chosen depends on it."
    )
    stray = view.mask(map(view.number, ["next", "noise"]))
    assert why_not_cut(found, [stray]).startswith("'noise' (RandomUniform) stays: it has state")


def test_a_plan_takes_the_cut_in_one_stage_and_says_that_it_was_chosen():
    plan = plan_stages(towers(), include=["tower_0/hash"])
    (stage,) = plan.stages
    assert stage.moved == ("next", "tower_0/split", "tower_0/hash")
    assert [(edit.name, edit.reason) for edit in plan.edits] == [
        ("new stage", "the chosen cut: its nodes were named")
    ]


def test_a_cut_that_moves_nothing_leaves_the_graph():
    plan = plan_stages(towers(), exclude=["next"])
    assert plan.stages == ()
    assert (plan.edits[0].name, plan.edits[0].reason) == (
        "stage nothing",
        "the chosen cut moves nothing",
    )
    own = plan_stages(own_stage(), include=[])
    assert own.stages == ()
    assert own.edits[0].name == "leave your stage"


def test_a_chosen_cut_widens_your_stage():
    plan = plan_stages(own_stage(num_threads=2, capacity=3), include=["hash"])
    (stage,) = plan.stages
    assert stage.widens
    assert stage.own_name == "prefetch"
    assert (stage.options.num_threads, stage.options.capacity) == (2, 3)


def test_on_a_device_a_chosen_cut_is_a_stage_behind_yours():
    plan = plan_stages(own_stage(), SmartStageOptions(on_cpu=True), include=["hash"])
    (stage,) = plan.stages
    assert not stage.widens


def test_a_plan_with_costs_predicts_the_cut_as_predict_cut_does():
    found = towers()
    costs = Costs(span_ns=np.full(len(found.view), 1e6))
    moved = chosen_cut(found, include=["tower_0/hash"])
    plan = cut_plan(found, moved, SmartStageOptions(), costs=costs)
    unstaged, chosen = plan.predictions
    assert unstaged.label == "un-staged"
    assert chosen.chosen
    assert chosen.step_ms == predict_cut(found, costs, moved).step_ms
    assert plan.costs is costs


def random_graph(draw) -> str:
    """Nodes in flow order, each reading earlier ones, some by control edges, some with state."""
    count = draw(st.integers(2, 14))
    lines = ["next = IteratorGetNext int64", "w = VariableV2"]
    known = ["next"]
    for number in range(count):
        sources = draw(st.lists(st.sampled_from([*known, "w"]), min_size=1, max_size=3))
        control = draw(st.lists(st.sampled_from(known), max_size=1))
        op, kind = draw(
            st.sampled_from(
                [("Neg", "int64"), ("Log1p", "int64"), ("RandomUniform", "float32"),
                 ("MakeHandle", "resource")]
            )
        )  # fmt: skip
        inputs = ", ".join([*sources, *(f"^{name}" for name in control)])
        lines.append(f"n{number} = {op}({inputs}) {kind}")
        known.append(f"n{number}")
    lines.append(f"loss = Mul(next, {', '.join(known[-3:])}, w)")
    return "\n".join(lines)


@given(st.data())
def test_every_accepted_cut_is_legal_and_is_what_the_plan_moves(data):
    view = graph(random_graph(data.draw))
    found = boundary_of(view, targets=["loss"])
    (side,) = found.sides
    movable = [view.names[node] for node in np.flatnonzero(side.widest)]
    some = st.lists(st.sampled_from(movable), max_size=4) if movable else st.just([])
    include = data.draw(st.none() | some)
    exclude = data.draw(some)
    try:
        (moved,) = chosen_cut(found, include, exclude)
    except PlanError:
        return
    assert why_not_cut(found, [moved]) == ""
    (again,) = chosen_cut(found, *names_of_cut(found, [moved]))
    assert (again == moved).all()
    # closed: each input of a moved node that depends on the batch moves too, and none is refused
    for edges in (view.data[:, [0, 2]], view.control):
        before = edges[moved[edges[:, 1]], 0]
        assert not (side.legal[before] & ~moved[before]).any()
    assert not (moved & found.refused).any()
    assert not any(node in found.blockers for node in np.flatnonzero(moved))
    plan = plan_stages(found, include=include, exclude=exclude)
    planned = [name for stage in plan.stages for name in stage.moved]
    assert sorted(planned) == sorted(names(found, moved))
    for name in include or ():
        excluded = view.reached(view.mask(map(view.number, exclude)))
        assert moved[view.number(name)] or excluded[view.number(name)]
