"""Plans with stale lookups: which stages they have, what they say, and what they do not predict."""

from __future__ import annotations

import dataclasses
import json

import numpy as np

from tests.builders.graphs import graph
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.legality import boundary_of
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.planning.planner import cut_plan, plan_stages
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.cut_prediction import predict_cut
from workbench.experiments.program.variant import Variant

MODEL = """
it = IteratorV2
next = IteratorGetNext(it) string
hash = StringToHashBucketFast(next) int64
table = VarHandleOp
rows = ResourceGather(table, hash)
sum = Sum(rows)
w = VarHandleOp
read = ReadVariableOp(w)
loss = MatMul(sum, read)
train = ResourceScatterAdd(table, hash, loss)
"""
OWN = """
it = IteratorV2
next = IteratorGetNext(it) string
owner = Placeholder int64
put = WorkbenchBufferPut(owner, next)
take = WorkbenchBufferTake string
hash = StringToHashBucketFast(take) int64
table = VarHandleOp
rows = ResourceGather(table, hash)
loss = ResourceScatterAdd(table, hash, rows)
"""
WISH = SmartStageOptions(stale_lookups=2, capacity=5)


def boundary(text: str = MODEL, steps: int = 2, target: str = "train", **more) -> Boundary:
    return boundary_of(graph(text, **more), targets=[target], stale_lookups=steps)


def test_lookups_come_into_a_stage_of_their_own_behind_the_others():
    plan = plan_stages(boundary(), WISH)
    assert [(s.name, s.options.capacity, s.stale_lookups) for s in plan.stages] == [
        ("smart_stage_input", 5, 0),
        ("smart_stage", 5, 0),
        ("smart_stage_lookups", 2, 2),
    ]
    assert [stage.carried for stage in plan.stages] == [
        ("next",),
        ("next", "hash"),
        ("next", "hash", "sum"),
    ]
    assert plan.stages[-1].options.num_threads == 1
    words = plan.describe()
    assert (
        "new stage for stale lookups: 1 lookup reads its table in 'smart_stage_lookups', 2 steps "
        "stale, by one producer, as stale_lookups=2 asks: the training is not the exact one"
    ) in words
    assert "threads 1, capacity 2; its lookups are 2 steps stale" in words
    assert "what stale lookups give is not predicted: compare(…) measures it" in words
    assert plan.explain("rows") == (
        "'rows' runs 2 steps stale in stage 'smart_stage_lookups': stale_lookups=2."
    )
    assert plan.explain("hash") == (
        "'hash' runs ahead in stage 'smart_stage_lookups'; its outputs travel."
    )


def test_a_plan_of_exact_lookups_says_nothing_of_stale_ones():
    plan = plan_stages(boundary(steps=0), SmartStageOptions())
    assert "stale" not in plan.describe()
    assert [stage.stale_lookups for stage in plan.stages] == [0, 0]


def test_the_plan_says_where_there_is_no_lookup_to_move():
    text = MODEL.replace("ResourceGather(table, hash)", "MatMul(table, hash)")
    plan = plan_stages(boundary(text), WISH)
    assert (
        "no stale lookups: stale_lookups=2, but the step needs no lookup that depends on 'next' "
        "and its table alone"
    ) in plan.describe()
    assert not any(stage.stale_lookups for stage in plan.stages)


def without(field, plan):
    """The JSON of a plan as it was before its stages had a field."""
    document = json.loads(plan.to_json())
    for stage in document["stages"]:
        del stage[field]
    return json.dumps(document)


def test_it_goes_through_json_and_older_plans_are_exact():
    plan = plan_stages(boundary(), WISH)
    assert StagePlan.from_json(plan.to_json()) == plan
    older = StagePlan.from_json(without("stale_lookups", plan))
    assert [stage.stale_lookups for stage in older.stages] == [0, 0, 0]


def test_a_users_own_stage_stays_and_stale_lookups_come_behind():
    own = boundary(
        OWN, target="loss", shared={"put": "b", "take": "b"}, stage=StageOptions(capacity=3)
    )
    for plan in (
        plan_stages(own, WISH),
        cut_plan(own, [side.widest for side in own.sides], WISH),
    ):
        assert not any(stage.widens for stage in plan.stages)
        assert plan.stages[-1].name == "smart_stage_lookups"
        assert plan.stages[-1].start == ("take",)


def test_a_cut_by_name_has_the_stage_only_where_it_moves_a_lookup():
    plan = plan_stages(boundary(), WISH, include=["hash"])
    assert [stage.stale_lookups for stage in plan.stages] == [0]
    plan = plan_stages(boundary(), WISH, include=["rows"])
    assert [stage.stale_lookups for stage in plan.stages] == [0, 2]
    assert plan.stages[-1].carried == ("next", "hash", "rows")


def test_predictions_are_those_of_the_exact_stages():
    found, exact = boundary(), boundary(steps=0)
    costs = Costs(span_ns=np.full(len(found.view), 1e6), cores=4)
    (side,), (plain,) = found.sides, exact.sides
    for moved in (side.widest, plain.widest):
        assert predict_cut(found, costs, [moved]) == predict_cut(exact, costs, [plain.widest])
    plan = cut_plan(found, [side.widest], WISH, costs=costs)
    of_exact = cut_plan(exact, [plain.widest], SmartStageOptions(capacity=5), costs=costs)
    assert plan.predictions == of_exact.predictions


def test_more_threads_never_reach_the_stage_of_stale_lookups():
    plan = plan_stages(boundary(), dataclasses.replace(WISH, num_threads=3, reorder=True))
    assert [stage.options.num_threads for stage in plan.stages] == [1, 3, 1]
    variant = Variant(label="x", optimizations=Optimizations(smart_stage=WISH), plan=plan)
    mixed = variant.with_threads(2)
    assert [stage.options.num_threads for stage in mixed.plan.stages] == [2, 2, 1]
    assert mixed.optimizations.smart_stage.stale_lookups == 2
