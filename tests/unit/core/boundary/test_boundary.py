"""Boundary: what may run ahead, and why the rest may not; one test for each reason and message."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders.graphs import graph
from workbench.core.boundary.blockers import Reason
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.legality import boundary_of
from workbench.core.graph.graph_view import (
    CAPTURED_RESOURCE,
    CAPTURED_TABLE,
    CAPTURED_VALUE,
    CAPTURED_VARIABLE,
)
from workbench.core.planning.planner import plan_stages
from workbench.errors import NoInputError, PlanError

MODEL = """
it = IteratorV2
next = IteratorGetNext(it) string
hash = StringToHashBucketFast(next) int64
two = Const
scaled = Mul(hash, two)
w = VarHandleOp
read = ReadVariableOp(w)
loss = Mul(read, scaled)
train = AssignVariableOp(w, loss)
"""


def moved(boundary: Boundary, number: int = 0) -> set[str]:
    return {boundary.view.names[i] for i in np.flatnonzero(boundary.sides[number].widest)}


def carried(boundary: Boundary) -> list[str]:
    side = boundary.sides[0]
    return [boundary.view.names[i] for i in boundary.carried(side, side.widest)]


def test_what_depends_on_the_input_alone_moves_and_its_last_tensors_travel():
    boundary = boundary_of(graph(MODEL), targets=["train"])
    assert moved(boundary) == {"next", "hash", "scaled"}
    assert carried(boundary) == ["next", "scaled"]
    assert [refusal.node for refusal in boundary.refusals()] == ["loss", "train"]
    assert boundary.explain("scaled") == (
        "'scaled' (Mul) may run ahead: it depends on the input, on no state."
    )
    assert boundary.explain("two") == (
        "'two' (Const) does not depend on the input, so there is nothing to run ahead."
    )
    assert boundary.refusal("two") is None and boundary.refusal("hash") is None


def test_what_a_step_runs_for_its_effect_moves_where_it_may():
    text = MODEL + "size = Shape(hash)\nok = Equal(size, two)\ncheck = Assert(ok, size)"
    view = graph(text)
    assert moved(boundary_of(view, targets=["train"])) == {"next", "hash", "scaled"}
    boundary = boundary_of(view, targets=["train"], runs=["check", "next"])
    assert moved(boundary) == {"next", "hash", "scaled", "size", "ok", "check"}
    assert boundary.targets == ("train",) and carried(boundary) == ["next", "scaled"]
    # an effect that has to stay makes what it reads travel
    stays = boundary_of(view, targets=["train"], runs=["check"], keep=["check"])
    assert moved(stays) == {"next", "hash", "scaled", "size", "ok"}
    assert set(carried(stays)) == {"next", "scaled", "size", "ok"}
    # the start alone is no effect: nothing needs it
    assert moved(boundary_of(view, runs=["next"], starts=["next"])) == set()


def test_sides_and_refusals_have_their_number():
    boundary = boundary_of(graph(MODEL), targets=["train"])
    assert [side.number for side in boundary.sides] == [0]
    assert [boundary.view.names[each.number] for each in boundary.refusals()] == ["loss", "train"]
    assert boundary.blockers_above(boundary.view.number("loss")) == boundary.blockers_of("loss")


def test_a_node_that_only_a_fetch_needs_is_left_for_the_fetch():
    boundary = boundary_of(graph(MODEL + "size = Shape(hash)"), targets=["train"])
    assert moved(boundary) == {"next", "hash", "scaled"}
    assert boundary.explain("size") == (
        "'size' (Shape) could run ahead, but nothing on the compute side needs it; when it is "
        "fetched it is computed from the step's own batch."
    )


def test_a_variable_keeps_what_reads_it_and_the_way_there_is_the_shortest():
    refusal = boundary_of(graph(MODEL), targets=["train"]).refusal("loss:0")
    assert refusal is not None
    assert refusal.reason is Reason.VARIABLE
    assert refusal.path == ("loss", "read", "w")
    assert str(refusal) == (
        "'loss' (Mul) stays: 'w' is a variable; the way there: loss ← read ← w. To free it: read a "
        "table or a constant instead of the variable 'w'; what the model trains cannot run ahead."
    )


def test_a_long_way_is_shortened_in_words_only():
    chain = "".join(f"n{i} = Neg({f'n{i - 1}' if i else 'both'})\n" for i in range(8))
    view = graph(MODEL + "both = AddV2(read, hash)\n" + chain)
    refusal = boundary_of(view).refusal("n7")
    assert refusal is not None and len(refusal.path) == 11
    assert "n7 ← n6 ← n5 ← … ← read ← w" in refusal.detail


@pytest.mark.parametrize(
    ("line", "reason", "detail", "change"),
    [
        ("b = Placeholder", Reason.PLACEHOLDER, "is fed (Placeholder)", "from the input pipeline"),
        (
            "b = PlaceholderWithDefault(two)",
            Reason.PLACEHOLDER,
            "is fed (PlaceholderWithDefault)",
            "instead of feeding it",
        ),
        (
            "b = Switch(hash, two)",
            Reason.CONTROL_FLOW,
            "is v1 control flow (Switch)",
            "without v1 control flow",
        ),
        (
            "b = RandomUniform",
            Reason.STATEFUL,
            "has state or effects of its own (RandomUniform)",
            "SmartStageOptions(move=['b'])",
        ),
        ("b = PyFunc(hash)", Reason.STATEFUL, "(PyFunc)", "move=['b']"),
        ("b = Print(hash)", Reason.STATEFUL, "(Print)", "move=['b']"),
        ("b = VariableV2 float32_ref", Reason.VARIABLE, "is a variable", "the variable 'b'"),
    ],
)
def test_each_kind_of_node_that_keeps_what_depends_on_it(line, reason, detail, change):
    boundary = boundary_of(graph(f"{MODEL}{line}\nuser = AddV2(scaled, b)"))
    refusal = boundary.refusal("user")
    assert refusal is not None
    assert refusal.reason is reason
    assert detail in refusal.detail and refusal.blocker.node == "b"
    assert change in refusal.change
    assert "user" not in moved(boundary)


def test_a_control_edge_from_a_node_that_stays_keeps_too():
    refusal = boundary_of(graph(MODEL + "after = Neg(hash, ^train)")).refusal("after")
    assert refusal is not None and refusal.path == ("after", "train", "w")
    assert refusal.reason is Reason.VARIABLE


def test_a_check_and_a_filled_table_may_run_ahead():
    view = graph(
        MODEL
        + """
ok = Assert(hash, hash)
keys = HashTableV2
found = LookupTableFindV2(keys, hash, ^ok) int64
sum = AddV2(found, read)
"""
    )
    assert {"found", "ok"} <= moved(boundary_of(view))


def test_a_target_stays_and_frees_what_is_before_it():
    boundary = boundary_of(graph(MODEL), targets=["scaled:0"])
    refusal = boundary.refusal("scaled")
    assert refusal is not None and refusal.reason is Reason.TARGET
    assert refusal.detail == "it is a target"
    assert refusal.change == "take 'scaled' off the targets"
    assert moved(boundary) == {"next", "hash"}


def test_a_mark_stays_but_does_not_say_what_else_a_step_runs():
    view = graph(MODEL + "read2 = AddV2(read, hash)")
    assert carried(boundary_of(view, targets=["scaled"])) == ["next", "hash"]
    assert carried(boundary_of(view, marked=["loss"])) == ["next", "hash", "scaled"]


def test_what_the_user_keeps_stays_and_what_is_fed_too():
    boundary = boundary_of(graph(MODEL), keep=["hash"])
    assert boundary.explain("hash") == (
        "'hash' (StringToHashBucketFast) stays: it was kept by name. To free it: take 'hash' out "
        "of SmartStageOptions(keep=…)."
    )
    assert moved(boundary) == {"next"}
    refusal = boundary_of(graph(MODEL), fed=["hash:0"]).refusal("scaled")
    assert refusal is not None and refusal.reason is Reason.PLACEHOLDER
    assert "'hash' is fed, as the options say" in refusal.detail


def test_a_stateful_node_moves_when_the_user_says_so_but_a_variable_never():
    view = graph(MODEL + "noise = RandomUniform(hash)\nsum = AddV2(noise, read)")
    assert "noise" not in moved(boundary_of(view))
    assert "noise" in moved(boundary_of(view, move=["noise"]))
    with pytest.raises(PlanError, match="move names 'w', which stays because it is a variable"):
        boundary_of(view, move=["w"])


def test_a_table_that_the_step_changes_keeps_its_readers():
    text = (
        MODEL + "t = MutableHashTableV2\nfind = LookupTableFindV2(t, hash)\ns = AddV2(find, read)\n"
    )
    assert "find" in moved(boundary_of(graph(text)))
    view = graph(text + "put = LookupTableInsertV2(t, hash, hash)")
    refusal = boundary_of(view).refusal("find")
    assert refusal is not None and refusal.reason is Reason.SHARED
    assert "'t' is a table that 'put' changes in the step" in refusal.detail
    assert refusal.change == "change the resource of 't' outside the step"
    # The insert is not part of a step that runs `train` and `s` only.
    assert "find" in moved(boundary_of(view, targets=["train", "s"]))


def test_a_second_handle_of_the_same_table_counts():
    view = graph(
        MODEL + "t = MutableHashTableV2\nfind = LookupTableFindV2(t, hash)\ns = AddV2(find, read)\n"
        "t2 = MutableHashTableV2\nput = LookupTableInsertV2(t2, hash, hash)",
        shared={"t": "table", "t2": "table"},
    )
    refusal = boundary_of(view).refusal("find")
    assert refusal is not None and refusal.reason is Reason.SHARED


QUEUE = """
q = FIFOQueueV2
next = QueueDequeueV2(q) string
hash = StringToHashBucketFast(next) int64
w = VarHandleOp
read = ReadVariableOp(w)
loss = Mul(read, hash)
fill = QueueEnqueueV2(q, w)
"""


def test_a_queue_that_others_fill_is_an_input_but_one_that_the_step_fills_is_not():
    assert moved(boundary_of(graph(QUEUE))) == {"next", "hash"}
    assert moved(boundary_of(graph(QUEUE), targets=["loss"])) == {"next", "hash"}
    boundary = boundary_of(graph(QUEUE), targets=["loss", "fill"])
    refusal = boundary.refusal("hash")
    assert refusal is not None and refusal.reason is Reason.SHARED
    assert (
        "'next' reads 'q', which 'fill' (QueueEnqueueV2) touches in the step as well"
        in refusal.detail
    )
    assert moved(boundary) == set()


def test_a_reader_that_only_fills_a_queue_is_no_second_input():
    view = graph(
        QUEUE + "names = FIFOQueueV2\nreader = TextLineReaderV2\n"
        "line = ReaderReadV2(reader, names) string string\nenqueue = QueueEnqueueV2(q, line:1)"
    )
    assert moved(boundary_of(view)) == {"next", "hash"}


TWO = (
    MODEL
    + """
it2 = IteratorV2
next2 = IteratorGetNext(it2)
both = AddV2(hash, next2)
z = Mul(both, read)
"""
)


def test_several_inputs_are_refused_by_name():
    with pytest.raises(
        PlanError,
        match=r"the step has 2 inputs, and which one to stage is not clear: 'next' "
        r"\(IteratorGetNext\), 'next2' \(IteratorGetNext\); name one or several of them as starts",
    ):
        boundary_of(graph(TWO))


def test_an_input_that_waits_for_another_one_is_none_of_the_batch():
    view = graph(
        MODEL + "tokens = FIFOQueueV2\ntoken = QueueDequeueV2(tokens, ^train)\n"
        "step = VarHandleOp\nnext_step = AssignVariableOp(step, token)"
    )
    boundary = boundary_of(view, targets=["next_step", "loss"])
    assert moved(boundary) == {"next", "hash", "scaled"}
    refusal = boundary.refusal("token")
    assert refusal is not None and refusal.reason is Reason.SECOND_INPUT


def test_a_named_input_moves_alone_and_what_joins_the_other_stays():
    boundary = boundary_of(graph(TWO), starts=["next"])
    assert moved(boundary) == {"next", "hash", "scaled"}
    refusal = boundary.refusal("both")
    assert refusal is not None and refusal.reason is Reason.SECOND_INPUT
    assert "'next2' brings an input of its own (IteratorGetNext)" in refusal.detail


def test_two_named_inputs_have_a_stage_each_and_what_joins_them_stays():
    boundary = boundary_of(graph(TWO), starts=["next", "next2"])
    assert [moved(boundary, i) for i in (0, 1)] == [{"next", "hash", "scaled"}, {"next2"}]
    refusal = boundary.refusal("both")
    assert refusal is not None and refusal.reason is Reason.SECOND_INPUT
    assert refusal.detail == "it joins two inputs, each with a stage of its own"
    assert refusal.change == "zip both inputs into one dataset, or stage 'both' by itself"


def test_a_graph_without_input_is_said_to_have_none():
    with pytest.raises(NoInputError, match="no stage and no input was found.*tf.staged"):
        boundary_of(graph("w = VarHandleOp\nread = ReadVariableOp(w)"))


def test_a_start_must_be_there_and_be_read_by_the_step():
    with pytest.raises(PlanError, match="no node 'nix'"):
        boundary_of(graph(MODEL), starts=["nix"])
    with pytest.raises(PlanError, match="'next' was named as a start, but no target depends on it"):
        boundary_of(graph(MODEL), starts=["next"], targets=["read"])


OWN = """
it = IteratorV2
next = IteratorGetNext(it) string
owner = Placeholder int64
put = WorkbenchBufferPut(owner, next)
take = WorkbenchBufferTake string
hash = StringToHashBucketFast(take) int64
w = VarHandleOp
read = ReadVariableOp(w)
loss = Mul(read, hash)
"""


def test_the_users_own_stage_is_where_staging_begins():
    boundary = boundary_of(graph(OWN, shared={"put": "clicks", "take": "clicks"}))
    assert boundary.sides[0].start.is_stage
    assert moved(boundary) == {"take", "hash"}


def test_two_takes_of_one_stage_are_refused():
    view = graph(
        OWN + "take2 = WorkbenchBufferTake string\nz = AddV2(take2, read)",
        shared={"put": "clicks", "take": "clicks", "take2": "clicks"},
    )
    with pytest.raises(
        PlanError, match="'/clicks' is taken from in two places, 'take' and 'take2'"
    ):
        boundary_of(view)


def test_an_output_that_cannot_travel_stays_with_its_reader():
    view = graph(
        MODEL + "list = TensorListReserve(hash) variant\nlong = TensorListLength(list) int32\n"
        "same = AddV2(long, read)"
    )
    assert {"list", "long"} <= moved(boundary_of(view))
    view = graph(
        MODEL + "list = TensorListReserve(hash) variant\ng = TensorListGetItem(list, read)"
    )
    boundary = boundary_of(view)
    refusal = boundary.refusal("list")
    assert refusal is not None and refusal.reason is Reason.OUTPUT
    assert refusal.detail == "it gives the compute side variant, which cannot go through a buffer"
    assert refusal.change == "let 'list' give plain tensors"
    assert "hash" in carried(boundary)


SPARSE = """
it = IteratorV2
next = IteratorGetNext(it) variant
parts = DeserializeSparse(next) int64 int64 int64
w = VarHandleOp
read = ReadVariableOp(w)
loss = Mul(parts:1, read)
"""


def test_an_input_that_cannot_travel_stays_whoever_reads_it():
    boundary = boundary_of(graph(SPARSE))
    assert moved(boundary) == set()
    refusal = boundary.refusal("next")
    assert refusal is not None and refusal.reason is Reason.OUTPUT
    assert refusal.detail == (
        "it delivers variant, and a variant, as SparseTensors of a dataset come, cannot go through "
        "a buffer; stage its SparseTensors with wb.staged, which takes them apart"
    )
    said = plan_stages(boundary).describe().splitlines()[0]
    assert said.startswith("stage nothing: 'next' delivers variant, and a variant, as SparseTens")


def test_the_argument_of_a_function_may_be_of_any_type():
    text = SPARSE.replace("it = IteratorV2\n", "").replace("IteratorGetNext(it)", "Placeholder")
    boundary = boundary_of(graph(text), starts=["next"])
    assert "parts" in moved(boundary)


PURE = graph("x = _Arg\ny = Neg(x)")
RANDOM = graph("x = _Arg\nr = RandomUniform\ny = AddV2(x, r)")
CALL = MODEL + "call = PartitionedCall(hash)\ns = AddV2(call, read)\n"


def test_a_function_is_looked_into():
    def called(library):
        return boundary_of(graph(CALL, functions={"call": ("f",)}, library=library))

    assert "call" in moved(called({"f": PURE}))
    refusal = called({"f": RANDOM}).refusal("call")
    assert refusal is not None and refusal.reason is Reason.FUNCTION
    assert refusal.detail == "it calls 'f', which runs 'r' (RandomUniform)"
    assert refusal.change == "take what has state out of the function that 'call' calls"
    outer = graph("x = _Arg\nc = PartitionedCall(x)", functions={"c": ("g",)})
    refusal = called({"f": outer, "g": RANDOM}).refusal("call")
    assert refusal is not None
    assert refusal.detail == "it calls 'f', which calls 'g', which runs 'r' (RandomUniform)"
    refusal = called({}).refusal("call")
    assert refusal is not None and "is not in the graph's library" in refusal.detail
    variable = graph("x = _Arg\nv = VarHandleOp\ny = ReadVariableOp(v)")
    refusal = called({"f": variable}).refusal("call")
    assert refusal is not None and "which reads the variable 'v'" in refusal.detail
    endless = graph("x = _Arg\nc = PartitionedCall(x)", functions={"c": ("f",)})
    refusal = called({"f": endless}).refusal("call")
    assert refusal is not None and "calls itself" in refusal.detail


def test_a_function_that_takes_a_variable_stays_by_its_edge():
    view = graph(
        MODEL + "call = StatefulPartitionedCall(hash, w)",
        functions={"call": ("f",)},
        library={"f": PURE},
    )
    refusal = boundary_of(view).refusal("call")
    assert refusal is not None and refusal.path == ("call", "w")


@pytest.mark.parametrize(
    ("kind", "moves", "said"),
    [
        (CAPTURED_VALUE, True, ""),
        (CAPTURED_TABLE, True, ""),
        (CAPTURED_VARIABLE, False, "is a captured variable"),
        (CAPTURED_RESOURCE, False, "is a captured resource that may change"),
    ],
)
def test_what_a_function_captures_is_judged_by_its_kind(kind, moves, said):
    view = graph(
        "x = Placeholder\nc = Placeholder\ny = AddV2(x, c)\nw = VarHandleOp\nz = Mul(y, w)",
        captures={"c": kind},
    )
    boundary = boundary_of(view, starts=["x"], targets=["z"])
    assert ("y" in moved(boundary)) is moves
    refusal = boundary.refusal("y")
    assert (refusal is None) is moves
    assert refusal is None or said in refusal.detail


def test_the_arguments_of_a_function_are_one_start():
    view = graph(
        "a = Placeholder\nb = Placeholder\ny = AddV2(a, b)\nw = VarHandleOp\nz = Mul(y, w)"
    )
    boundary = boundary_of(view, starts=["a", "b"], targets=["z"])
    assert len(boundary.sides) == 1
    assert carried(boundary) == ["a", "b", "y"]


def test_what_frees_a_node_names_all_that_hold_it_back():
    view = graph(MODEL + "p = Placeholder\nboth = AddV2(loss, p)")
    boundary = boundary_of(view)
    refusal = boundary.refusal("both")
    assert refusal is not None
    assert refusal.change.endswith("; 'w' would have to be freed as well")
    assert [each.node for each in boundary.blockers_of("both")] == ["w", "p"]


def test_refusals_next_to_the_boundary_come_first():
    nodes = [each.node for each in boundary_of(graph("z = NoOp\n" + MODEL)).refusals()]
    assert nodes == ["loss", "train"]


def test_an_input_that_no_one_needs_moves_nothing():
    view = graph("it = IteratorV2\nnext = IteratorGetNext(it)\ny = Neg(next)")
    boundary = boundary_of(view)
    assert moved(boundary) == set() and boundary.refusals() == ()
