"""Which updates of distant tables trail the step, and which stay in it."""

from __future__ import annotations

import json

import pytest

from tests.builders.graphs import graph
from workbench.core.boundary.legality import boundary_of
from workbench.core.options import SmartStageOptions
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import PlannedStage, StagePlan
from workbench.core.planning.trailing_updates import TrailingUpdates

WORKER, PS, OTHER_PS = "/job:worker/task:0", "/job:ps/task:0", "/job:ps/task:1"
# A table and its slot on a server; the update makes the ids unique there.
MODEL = """
it = IteratorV2
next = IteratorGetNext(it) string
hash = StringToHashBucketFast(next) int64
table = VarHandleOp
slot = VarHandleOp
rate = Const
rows = ResourceGather(table, hash)
w = VarHandleOp
read = ReadVariableOp(w)
loss = MatMul(rows, read)
unique = Unique(hash) int64 int32
count = Shape(unique) int32
summed = UnsortedSegmentSum(loss, unique:1, count)
train = ResourceSparseApplyAdagrad(table, slot, rate, summed, unique)
dense = AssignVariableOp(w, loss)
step = NoOp(^train, ^dense)
"""
THERE = ("table", "slot", "rate", "rows", "unique", "count", "summed", "train")


def plan_of(text: str = MODEL, steps: int = 1, **devices: str) -> StagePlan:
    names = [line.split(" = ")[0] for line in text.strip().splitlines()]
    places = {name: PS if name in THERE else WORKER for name in names} | devices
    found = boundary_of(graph(text, devices=places), targets=["step"], stale_lookups=steps)
    return plan_stages(found, SmartStageOptions(stale_lookups=steps))


def stage_of(*given, **devices: str) -> PlannedStage:
    return plan_of(*given, **devices).stages[-1]


def test_updates_and_what_they_need_there_trail():
    stage = stage_of()
    assert stage.trailing == TrailingUpdates(
        updates=("train",),
        moved=("unique", "count", "summed", "train"),
        moved_ops=("Unique", "Shape", "UnsortedSegmentSum", "ResourceSparseApplyAdagrad"),
        returned=("hash:0", "loss:0"),
        dtypes=("int64", "float32"),
        shapes=(None, None),
        waits=(),
        variables=("table", "slot"),
        tasks=("ps 0",),
    )


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_run_more_than_rows_may_be_stale_has_a_room_each(steps):
    stage = stage_of(MODEL, steps)
    assert (stage.options.num_threads, stage.options.capacity) == (steps + 1, steps + 1)


def test_the_plan_says_so_and_goes_through_json():
    plan = plan_of()
    assert (
        "1 update on ps 0 trails the step: the run that read a batch's rows applies what the step "
        "returns, 2 tensors"
    ) in plan.describe()
    assert plan.explain("train") == (
        "'train' trails the step: the run of stage 'smart_stage_lookups' that read its batch does "
        "it, 1 step stale."
    )
    assert plan.explain("dense").startswith("'dense' (AssignVariableOp) stays")
    assert StagePlan.from_json(plan.to_json()) == plan
    document = json.loads(plan.to_json())
    for stage in document["stages"]:
        del stage["trailing"]
    older = StagePlan.from_json(json.dumps(document))
    assert older.stages[-1].trailing is None


def test_what_updates_wait_for_the_return_waits_for():
    text = MODEL.replace("summed, unique)", "summed, unique, ^clip)").replace(
        "unique = ", "clip = CheckNumerics(loss)\nunique = "
    )
    assert stage_of(text).trailing.waits == ("clip",)


def test_tables_on_two_servers_trail_together():
    text = MODEL.replace(
        "loss = MatMul(rows, read)",
        "far = VarHandleOp\nfar_rows = ResourceGather(far, hash)\nboth = ConcatV2(rows, far_rows)\n"
        "loss = MatMul(both, read)\nfar_train = ResourceScatterAdd(far, hash, loss)",
    ).replace("^dense", "^dense, ^far_train")
    there = dict.fromkeys(["far", "far_rows", "far_train"], OTHER_PS)
    trailing = stage_of(text, **there).trailing
    assert set(trailing.updates) == {"train", "far_train"}
    assert trailing.tasks == ("ps 0", "ps 1")
    assert set(trailing.returned) == {"hash:0", "loss:0"}


LOCAL = dict.fromkeys(THERE, WORKER)


@pytest.mark.parametrize(
    ("why", "text", "devices"),
    [
        ("the table is on the worker", MODEL, LOCAL),
        ("no device says where anything is", MODEL, dict.fromkeys([*THERE, "next", "it"], "")),
        ("nothing trains it", MODEL.replace("^train, ", ""), {}),
        ("the update is elsewhere", MODEL, {"train": OTHER_PS}),
        (
            "the step reads the table behind it",
            MODEL.replace("^dense)", "^dense, ^again)").replace(
                "step = ", "again = ReadVariableOp(table, ^train)\nstep = "
            ),
            {"again": PS},
        ),
        (
            "the step reads what the update gives",
            MODEL.replace("^dense)", "^dense, ^given)").replace(
                "step = ", "given = Identity(train)\nstep = "
            ),
            {},
        ),
        (
            "a fetch may read what the update gives",
            MODEL.replace("step = ", "given = Identity(train)\nstep = "),
            {},
        ),
        (
            "it does not depend on the batch",
            MODEL.replace("train = ", "decay = ResourceScatterMul(table, rate)\ntrain = ").replace(
                "^dense", "^dense, ^decay"
            ),
            {"decay": PS},
        ),
        (
            "it reads what the step writes as well",
            MODEL.replace("table, slot, rate,", "table, slot, power,").replace(
                "unique = ", "beta = VarHandleOp\npower = ReadVariableOp(beta)\nunique = "
            ).replace("step = ", "next_beta = AssignVariableOp(beta, power)\nstep = ").replace(
                "^dense)", "^dense, ^next_beta)"
            ),
            {"beta": PS, "power": PS, "next_beta": PS},
        ),
        (
            "its slot is written elsewhere too",
            MODEL.replace("train = ", "other = AssignVariableOp(slot, loss)\ntrain = ").replace(
                "^dense", "^dense, ^other"
            ),
            {"other": PS},
        ),
        (
            "what it needs there has an effect",
            MODEL.replace("summed = UnsortedSegmentSum(", "drawn = RandomUniform(count)\nsummed = "
                          "UnsortedSegmentSum(drawn, "),
            {"drawn": PS},
        ),
        (
            "what it needs cannot travel",
            MODEL.replace("summed = UnsortedSegmentSum(loss", "held = VarHandleOp\nsummed = "
                          "UnsortedSegmentSum(held"),
            {},
        ),
        (
            "a branch may leave it out",
            MODEL.replace(
                "unique = ", "taken = Switch(loss, hash) float32 float32\nunique = "
            ).replace("UnsortedSegmentSum(loss", "UnsortedSegmentSum(taken:1"),
            {},
        ),
    ],
)  # fmt: skip
def test_an_update_stays_in_the_step_where(why, text, devices):
    stage = stage_of(text, **devices)
    assert stage.stale_lookups == 1, why
    assert stage.trailing is None
    assert (stage.options.num_threads, stage.options.capacity) == (1, 1)


def test_a_branch_that_has_joined_again_leaves_nothing_out():
    text = MODEL.replace(
        "unique = ",
        "taken = Switch(loss, hash) float32 float32\nleft = Neg(taken)\n"
        "joined = Merge(left, taken:1)\nunique = ",
    ).replace("UnsortedSegmentSum(loss", "UnsortedSegmentSum(joined")
    assert stage_of(text).trailing.returned == ("hash:0", "joined:0")


def test_exact_lookups_have_no_trailing_updates():
    assert [stage.trailing for stage in plan_of(MODEL, 0).stages] == [None] * 2
