"""A step without one kind of work: what lies ready instead, what still runs, what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.graphs import graph
from workbench.core.graph.graph_view import GraphView, edges
from workbench.core.what_if.faster import KINDS
from workbench.core.what_if.stub import ONE_BATCH, Stub, stub_of
from workbench.errors import UnsupportedError

MODEL = """
it = IteratorV2
next = IteratorGetNext(it) string
parse = DecodeCSV(next) string float32
hash = StringToHashBucketFast(parse) int64
table = VariableV2 float32_ref
c/embedding_lookup/rows = GatherV2(table, hash)
w = VarHandleOp
read = ReadVariableOp(w)
top = MatMul(c/embedding_lookup/rows, read)
loss = Sub(top, parse:1)
gradients/top = Op(loss, read)
gradients/w = Op(gradients/top, c/embedding_lookup/rows)
gradients/c/embedding_lookup/rows_grad/sum = Op(gradients/top, hash)
GD/update_table/apply = ScatterSub(table, hash, gradients/c/embedding_lookup/rows_grad/sum)
GD/update_w/apply = ResourceApplyGradientDescent(w, gradients/w)
train = NoOp(^GD/update_table/apply, ^GD/update_w/apply)
"""


def stub(work: str, text: str = MODEL, *targets: str) -> tuple[GraphView, Stub]:
    view = graph(text)
    return view, stub_of(view, work, [view.number(name) for name in targets or ("train", "loss")])


def tensors(view: GraphView, found) -> set[str]:
    return {view.tensor(*pair) for pair in found}


def names(view: GraphView, found) -> set[str]:
    return {view.names[node] for node in found}


def changed(view: GraphView, found: Stub) -> tuple[GraphView, list[int]]:
    """The graph with the changes made in it, and what its step runs."""
    reads, waits = set(map(tuple, found.reads.tolist())), set(map(tuple, found.waits.tolist()))
    # What reads the one batch still waits for the one that the step delivers.
    later = [(row[0], row[2]) for row in reads if (row[0], row[1]) in found.batch]
    after = dataclasses.replace(
        view,
        data=edges([row for row in view.data.tolist() if tuple(row) not in reads], 4),
        control=edges([*(r for r in view.control.tolist() if tuple(r) not in waits), *later], 2),
    )
    return after, [*found.targets, *(node for node, _ in found.unread), *found.unawaited]


def test_without_input_its_tensors_lie_ready():
    view, found = stub("input")
    assert names(view, np.flatnonzero(found.left_out)) == {"next", "parse"}
    assert tensors(view, found.border) == {"parse:0", "parse:1"}
    assert found.batch == found.unread == found.unawaited == ()
    assert names(view, found.targets) == {"train", "loss"}


def test_without_ids_the_input_still_runs_and_the_rest_reads_one_batch_of_it():
    view, found = stub("ids")
    assert names(view, np.flatnonzero(found.left_out)) == {"hash"}
    assert tensors(view, found.border) == {"hash:0"}
    assert tensors(view, found.batch) == {"next:0"}
    assert tensors(view, found.unread) == {"parse:0"}
    assert tensors(view, found.values) == {"next:0", "hash:0"}


def test_without_lookups_tables_have_neither_gradients_nor_updates():
    view, found = stub("lookups")
    assert tensors(view, found.border) == {"c/embedding_lookup/rows:0"}
    assert tensors(view, found.unread) == {"hash:0", "gradients/top:0"}
    assert [view.names[source] for source, _ in found.waits.tolist()] == ["GD/update_table/apply"]


def test_without_dense_the_gradient_of_the_lookups_lies_ready_and_tables_are_updated():
    view, found = stub("dense")
    assert tensors(view, found.border) == {"gradients/top:0"}
    assert tensors(view, found.unread) == {"c/embedding_lookup/rows:0", "parse:1"}
    assert names(view, found.unawaited) == {"GD/update_table/apply"}
    assert found.targets == ()


def test_one_batch_leaves_nothing_out():
    view, found = stub(ONE_BATCH)
    assert not found.left_out.any()
    assert tensors(view, found.values) == {"next:0"}
    assert [view.names[reader] for _, _, reader, _ in found.reads.tolist()] == ["parse"]
    assert names(view, found.targets) == {"train", "loss"}


def test_what_holds_a_value_is_of_no_work_and_stays():
    view, found = stub("dense")
    idle = ~(found.left_out | found.kept)
    assert {"it", "table", "w", "read"} <= names(view, np.flatnonzero(idle))


def test_a_read_that_waits_for_an_update_is_work():
    view, found = stub("dense", MODEL.replace("Op(w)\n", "Op(w, ^c/embedding_lookup/rows)\n"))
    assert found.left_out[view.number("read")]
    assert "c/embedding_lookup/rows" in names(view, found.unawaited)


@pytest.mark.parametrize(
    ("work", "text", "said"),
    [
        ("ids", "next = IteratorGetNext string\ntrain = Op(next)", "no work of the kind 'ids'"),
        (
            "input",
            "data = PyFunc resource float32\ntrain = Op(data:0)",
            "the rest of the step reads a resource of 'data' (PyFunc)",
        ),
        (
            "dense",
            "next = IteratorGetNext variant\nmul = MatMul(next)\ntrain = NoOp(^mul)",
            "the input 'next' (IteratorGetNext) delivers a variant",
        ),
        (
            "input",
            "next = IteratorGetNext\nsw = Switch(next)\nparse = DecodeRaw(sw)\n"
            "inner = Op(parse)\ntrain = Merge(inner)",
            "'inner' (Op) stands in a loop or a branch",
        ),
    ],
)
def test_what_cannot_be_left_out_is_refused(work: str, text: str, said: str):
    with pytest.raises(UnsupportedError) as refusal:
        stub(work, text, "train")
    assert said in str(refusal.value)


def test_work_that_lies_wholly_in_a_loop_can_be_left_out():
    view, found = stub(
        "dense",
        "next = IteratorGetNext\nparse = DecodeRaw(next)\nenter = Enter(parse)\n"
        "body = Op(enter)\nout = Exit(body)\nhash = Mod(out)\ntrain = NoOp(^hash)",
        "train",
    )
    assert tensors(view, found.border) == {"out:0"}
    assert tensors(view, found.unread) == {"parse:0"}


OPS = ("DecodeRaw", "Mod", "MatMul", "GatherV2", "NoOp", "Const", "VariableV2", "Identity")


@st.composite
def graphs(draw) -> tuple[GraphView, list[int]]:
    lines = ["next = IteratorGetNext"]
    count = draw(st.integers(3, 14))
    for node in range(count):
        op = draw(st.sampled_from(OPS))
        before = ["next", *(f"n{i}" for i in range(node))]
        control = [f"^{each}" for each in before if draw(st.booleans()) and draw(st.booleans())]
        data = [each for each in before if draw(st.booleans())] if op != "NoOp" else []
        held = op in ("Const", "VariableV2")
        inputs = [] if held else [*data, *control]
        lines.append(f"n{node} = {op}({', '.join(inputs)})" if inputs else f"n{node} = {op}")
    targets = draw(st.lists(st.integers(1, count), min_size=1, max_size=3))
    return graph("\n".join(lines)), targets


@given(graphs(), st.sampled_from([*KINDS, ONE_BATCH]))
def test_nothing_of_the_work_is_left_and_everything_else_still_runs(drawn, work: str):
    view, targets = drawn
    try:
        found = stub_of(view, work, targets)
    except UnsupportedError:
        return
    after, ends = changed(view, found)
    runs = after.ancestors(after.mask(ends))
    assert not (runs & found.left_out).any()
    assert not (found.kept & ~runs).any()
