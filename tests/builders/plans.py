"""Plans chosen by hand, and a graph with a refusal of most kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.builders.graphs import graph
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.chosen_cut import chosen_cut
from workbench.core.boundary.legality import boundary_of
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.planning.planner import cut_plan
from workbench.core.planning.stage_plan import Edit, PlannedStage, StagePlan, WidenedPut
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.prediction import Prediction


def planned_stage(name: str = "smart_stage", *, widens: bool = False, **more: Any) -> PlannedStage:
    """A stage that moves two nodes and lets one tensor of each travel."""
    values = {
        "name": name,
        "start": ("next",),
        "moved": ("next", "parse"),
        "moved_ops": ("IteratorGetNext", "DecodeCSV"),
        "carried": ("next", "parse"),
        "dtypes": (("string",), ("float32",)),
        "shapes": (((),), ((-1,),)),
        "options": StageOptions(),
        "widens": (WidenedPut(put="put", owner="owner:0", record=("next:0",)),) if widens else (),
    }
    return PlannedStage(**{**values, **more})


def stage_plan(*stages: PlannedStage, **more: Any) -> StagePlan:
    """A plan without a boundary."""
    values = {
        "stages": stages,
        "targets": ("train",),
        "roots": ("train",),
        "fingerprint": "0" * 32,
        "edits": (Edit(name="new stage", reason="everything that may run ahead does"),),
    }
    return StagePlan(**{**values, **more})


def predictions(unstaged: float, chosen: float) -> tuple[Prediction, ...]:
    """Un-staged, and the way that the plan takes; times of a step in ms."""
    return (
        Prediction(label="un-staged", step_ms=unstaged, bound_ms=unstaged, limited_by="the step"),
        Prediction(
            label="widest, 1 thread",
            step_ms=chosen,
            bound_ms=chosen * 0.9,
            limited_by="the cores",
            chosen=True,
        ),
    )


# Two towers that are alike, and behind them one node for each of five reasons to stay.
TOWERS = """
it = IteratorV2
next = IteratorGetNext(it) string string
tower_0/split = StringSplit(next) int64 string
tower_0/hash = StringToHashBucketFast(tower_0/split:1) int64
tower_1/split = StringSplit(next:1) int64 string
tower_1/hash = StringToHashBucketFast(tower_1/split:1) int64
table_0 = VariableV2
table_1 = VariableV2
net/lookup = GatherV2(table_0, tower_0/hash)
net/lookup_1 = GatherV2(table_1, tower_1/hash)
noise = RandomUniform(tower_0/hash)
keep_prob = Placeholder
net/dropped = Mul(noise, keep_prob)
loop/Enter = Enter(tower_0/hash)
net/joined = ConcatV2(net/lookup, net/lookup_1, net/dropped, loop/Enter)
constant = Const
loss = Mean(net/joined, constant)
"""
OWN_STAGE = """
it = IteratorV2
next = IteratorGetNext(it) string int64
owner = Placeholder int64
put = WorkbenchBufferPut(owner, next, next:1)
take = WorkbenchBufferTake string int64
hash = StringToHashBucketFast(take) int64
scaled = Mul(hash, take:1) int64
w = VarHandleOp
read = ReadVariableOp(w)
loss = Mul(read, scaled)
"""


def towers(**wishes: Any) -> Boundary:
    """The boundary of two towers."""
    return boundary_of(graph(TOWERS), targets=["loss"], **wishes)


TWO_BRANCHES = """
next = IteratorGetNext int64
a/one = Neg(next) int64
b/two = Log1p(next) int64
w = VariableV2
noise = RandomUniform(b/two) float32
loss = Mul(a/one, noise, w)
"""


def two_branches_planned() -> StagePlan:
    """A plan with costs that moves two branches, of which either can stay."""
    found = boundary_of(graph(TWO_BRANCHES), targets=["loss"])
    costs = Costs(span_ns=np.full(len(found.view), 1e6), cores=4)
    return cut_plan(found, chosen_cut(found), SmartStageOptions(), costs=costs)


def own_stage(**options: Any) -> Boundary:
    """The boundary of a graph with a stage of the user's own."""
    shared = {"put": "clicks", "take": "clicks"}
    view = graph(OWN_STAGE, shared=shared, stage=StageOptions(**options))
    return boundary_of(view, targets=["loss"])
