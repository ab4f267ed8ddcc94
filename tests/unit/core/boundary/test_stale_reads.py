"""Stale lookups: which readers of variables may run ahead, which stay, and what is said of both."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders.graphs import graph
from workbench.core.boundary.blockers import Reason
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.boundary.causes import held_back
from workbench.core.boundary.legality import boundary_of
from workbench.core.graph.graph_view import CAPTURED_RESOURCE, CAPTURED_VARIABLE
from workbench.core.graph.op_types import LOOKUPS

# Those in EmbeddingVariables.
OF_KEYS = ("WorkbenchEmbeddingGather", "WorkbenchEmbeddingGroupedLookUp")

# A table that is looked up, trained by its rows' gradient, and weights that are read whole.
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
gradient = Mul(loss, sum)
train = ResourceScatterAdd(table, hash, gradient)
"""


def stale(text: str = MODEL, steps: int = 1, **more) -> Boundary:
    return boundary_of(graph(text, **more), targets=["train"], stale_lookups=steps)


def names(boundary: Boundary, nodes: np.ndarray) -> set[str]:
    return {boundary.view.names[node] for node in np.flatnonzero(nodes)}


def test_lookups_and_what_depends_on_their_rows_alone_may_run_ahead():
    boundary = stale()
    (side,) = boundary.sides
    assert names(boundary, side.widest) == {"next", "hash", "rows", "sum"}
    assert names(boundary, side.stale) == {"rows", "sum"}
    assert names(boundary, boundary.exact(side).widest) == {"next", "hash"}
    assert [boundary.view.names[node] for node in boundary.carried(side, side.widest)] == [
        "next",
        "hash",
        "sum",
    ]
    assert boundary.explain("rows") == (
        "'rows' (ResourceGather) runs 1 step stale: stale_lookups=1."
    )
    assert stale(steps=2).explain("sum") == "'sum' (Sum) runs 2 steps stale: stale_lookups=2."
    assert boundary.explain("hash").startswith("'hash' (StringToHashBucketFast) may run ahead")


def test_the_update_and_whole_reads_stay_behind_what_holds_them():
    boundary = stale()
    loss, train = boundary.refusal("loss"), boundary.refusal("train")
    assert loss is not None and loss.reason is Reason.VARIABLE
    assert loss.path == ("loss", "read", "w")
    assert [each.node for each in boundary.blockers_of("loss")] == ["w"]
    # The update holds its table's handle, and waits for the loss, which waits for the weights.
    assert train is not None and train.path == ("train", "table")
    assert {each.node for each in boundary.blockers_of("train")} == {"table", "w"}
    weights = boundary.view.number("w")
    held = held_back(boundary, [[weights], [boundary.view.number("table")]])
    assert held.behind.tolist() == [3, 1]


def test_without_the_option_every_read_of_a_variable_stays():
    boundary = stale(steps=0)
    assert names(boundary, boundary.sides[0].widest) == {"next", "hash"}
    assert not boundary.sides[0].stale.any() and boundary.stale_reads == ()
    assert boundary.held is boundary.view
    assert boundary.exact(boundary.sides[0]) is boundary.sides[0]
    assert boundary.refusal("rows").path == ("rows", "table")


@pytest.mark.parametrize("op", sorted(LOOKUPS - set(OF_KEYS)))
def test_each_lookup_may_read_its_table_ahead(op):
    assert names(stale(), stale_of(op)) == {"rows", "sum"}


def stale_of(op: str) -> np.ndarray:
    return stale(MODEL.replace("ResourceGather", op)).sides[0].stale


@pytest.mark.parametrize("op", ["MatMul", "Mul", "GatherNd", "ResourceScatterAdd"])
def test_what_is_no_lookup_may_not(op):
    assert not stale_of(op).any()


def test_a_table_may_be_given_on_whole_before_it_is_looked_up():
    text = MODEL.replace(
        "rows = ResourceGather(table, hash)",
        "value = ReadVariableOp(table)\nsame = Identity(value)\nrows = GatherV2(same, hash)",
    )
    assert names(stale(text), stale(text).sides[0].stale) == {"rows", "sum"}
    old = text.replace("table = VarHandleOp", "table = VariableV2 float32_ref").replace(
        "ReadVariableOp(table)", "Identity(table)"
    )
    assert names(stale(old), stale(old).sides[0].stale) == {"rows", "sum"}


def test_a_table_that_is_read_after_something_else_stays():
    text = MODEL.replace(
        "rows = ResourceGather(table, hash)",
        "clear = AssignVariableOp(table, hash)\nvalue = ReadVariableOp(table, ^clear)\n"
        "rows = GatherV2(value, hash)",
    )
    assert not stale(text).sides[0].stale.any()
    waits = MODEL.replace("ResourceGather(table, hash)", "ResourceGather(table, hash, ^read)")
    assert stale(waits).refusal("rows").path == ("rows", "read", "w")


def test_a_table_that_is_computed_stays():
    text = MODEL.replace(
        "rows = ResourceGather(table, hash)",
        "value = ReadVariableOp(table)\nhalf = Cast(value)\nrows = GatherV2(half, hash)",
    )
    assert stale(text).refusal("rows").path == ("rows", "half", "value", "table")


@pytest.mark.parametrize("op", OF_KEYS)
def test_an_embedding_variable_is_looked_up_with_its_default_rows(op):
    text = MODEL.replace("table = VarHandleOp", "table = WorkbenchEmbeddingVariable resource")
    text = text.replace(
        "rows = ResourceGather(table, hash)",
        f"new = VarHandleOp\ndefaults = ReadVariableOp(new)\nrows = {op}(table, hash, defaults)",
    )
    assert names(stale(text), stale(text).sides[0].stale) == {"rows", "sum"}
    assert stale(text, steps=0).refusal("rows").path == ("rows", "defaults", "new")


def test_a_function_looks_up_what_it_captures_as_a_variable():
    text = MODEL.replace("table = VarHandleOp", "table = Placeholder resource")
    for kind, expected in ((CAPTURED_VARIABLE, {"rows", "sum"}), (CAPTURED_RESOURCE, set())):
        boundary = stale(text, captures={"table": kind})
        assert names(boundary, boundary.sides[0].stale) == expected


def test_ids_that_do_not_come_with_the_batch_are_no_reason_to_run_ahead():
    boundary = stale(MODEL.replace("ResourceGather(table, hash)", "ResourceGather(table, it)"))
    assert not boundary.sides[0].stale.any()


def test_rows_that_are_kept_stay():
    boundary = boundary_of(graph(MODEL), targets=["train"], keep=["rows"], stale_lookups=1)
    assert boundary.refusal("rows").reason is Reason.KEPT


def test_it_goes_through_a_file():
    for boundary in (stale(), stale(steps=0)):
        again = boundary_from_bytes(boundary_to_bytes(boundary))
        assert again.stale_lookups == boundary.stale_lookups
        assert [again.explain(name) for name in again.view.names] == [
            boundary.explain(name) for name in boundary.view.names
        ]
