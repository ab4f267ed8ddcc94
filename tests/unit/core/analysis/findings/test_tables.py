"""Findings about lookups and tables, and traces in which nobody claims them."""

from __future__ import annotations

import pytest

from tests.builders.findings import keys, of, on_gpu, plain
from tests.builders.step_traces import US, chain, step_trace
from workbench.core.trace.trace import Trace


def lookup_trace(ops: int, us: int = 5) -> Trace:
    names = [f"C1/embedding_lookup/op_{i}" for i in range(ops - 1)]
    names.append("gradients/C1/embedding_lookup_grad/Sum")
    laid = [(n, "Mul", 0, i * us, i * us, (i + 1) * us) for i, n in enumerate(names)]
    return step_trace(laid, chain(*names), step_us=ops * us)


class TestLookups:
    def test_a_lookup_of_many_ops(self):
        found = of(lookup_trace(10), "many_op_lookups")
        assert found.title == "10 ops do 1 lookup" and found.toggle == "fused_v2"
        assert found.cost_ns == found.gain_ns == 50 * US
        assert plain(found.evidence) == (
            "About 10 ops a lookup and its gradient, 10 of 10 under 10 µs. They take 50 µs of "
            "thread time a step, 100 % of all ops; the critical path runs them, or waits behind "
            "them, for 50 µs. The longest is `C1/embedding_lookup`: 10 ops, 50 µs."
        )

    def test_on_a_gpu_its_kernels_come_first(self):
        ends = "in four or five ops; on a GPU once `wb.load_gpu_kernels()` has loaded their kernels"
        assert of(on_gpu(lookup_trace(10)), "many_op_lookups").mend.endswith(ends)
        assert of(lookup_trace(10), "many_op_lookups").mend.endswith("in four or five ops")

    def test_a_fused_lookup_is_fine(self):
        assert "many_op_lookups" not in keys(lookup_trace(5))

    def test_constants_are_no_work(self):
        trace = step_trace(
            [("a", "Mul", 0, 0, 0, 50)],
            [(f"C1/embedding_lookup/c{i}", "a") for i in range(20)],
            step_us=50,
            also=[(f"C1/embedding_lookup/c{i}", "Const") for i in range(20)],
        )
        assert "many_op_lookups" not in keys(trace)


def update_trace(between: str, update: str = "ResourceApplyAdagradV2") -> Trace:
    ops = (
        ("sum", "UnsortedSegmentSum", 0, 0, 0, 20),
        ("between", between, 0, 20, 20, 30),
        ("update", update, 0, 30, 30, 60),
        ("rest", "MatMul", 0, 60, 60, 100),
    )
    fed = [*chain("sum", "between", "update", "rest"), ("table", "update")]
    return step_trace(ops, fed, step_us=100, also=[("table", "VarHandleOp")])


class TestTables:
    def test_a_dense_gradient(self):
        found = of(update_trace("Reshape"), "dense_gradient")
        assert found.title == "A table gets a dense gradient" and found.cost_ns == 50 * US
        assert plain(found.evidence) == (
            "`table`: rows are summed into a gradient as large as the table, and `update` "
            "(ResourceApplyAdagradV2) then updates each of its rows. Both take 50 µs a step, which "
            "grows with the table, not with the batch."
        )

    def test_sums_that_go_through_a_product_or_to_a_sparse_update_are_none(self):
        assert "dense_gradient" not in keys(update_trace("MatMul"))
        sparse = update_trace("Reshape", "ResourceSparseApplyAdagradV2")
        assert "dense_gradient" not in keys(sparse)

    @pytest.mark.parametrize(("us", "copies"), [(60, True), (2, False)])
    def test_a_read_that_lasts_copies(self, us: int, copies: bool):
        ops = (
            ("read", "ReadVariableOp", 0, 0, 0, us),
            ("gather", "GatherV2", 0, us, us, us + 10),
        )
        trace = step_trace(
            ops,
            chain("table", "read", "gather"),
            step_us=us + 10,
            also=[("table", "VarHandleOp")],
        )
        assert ("copied_table" in keys(trace)) == copies
        if copies:
            found = of(trace, "copied_table")
            assert found.title == "A variable is copied at each step" and found.cost_ns == us * US
            assert plain(found.evidence) == (
                "Reads that last as only a copy does: `read` (60 µs), of `table`. A variable that "
                "is updated row by row is copied by each read of all of it; a read that does not "
                "copy takes about a µs."
            )
            assert found.toggle is None and found.mend.startswith("Gather rows from the variable")

    def test_ops_on_a_whole_copy_cost_with_it(self):
        ops = (
            ("read", "ReadVariableOp", 0, 0, 0, 60),
            ("add", "AddV2", 0, 60, 60, 80),
            ("sqrt", "Sqrt", 0, 80, 80, 90),
            ("scaled", "Mul", 0, 90, 90, 100),
        )
        edges = [*chain("read", "add", "sqrt", "scaled"), ("epsilon", "add"), ("batch", "scaled")]
        also = [("epsilon", "Const"), ("batch", "Square")]
        found = of(step_trace(ops, edges, step_us=100, also=also), "copied_table")
        # "scaled" computes on the batch, too, so it may be as small as that.
        assert found.cost_ns == 90 * US and found.nodes == ("read", "add", "sqrt")
        assert plain(found.evidence).endswith(
            " 2 ops on copies of whole variables, such as `add` (20 µs), take 30 µs."
        )

    def test_a_copy_for_a_lookup_is_spared_by_fusing(self):
        ops = (
            ("read", "ReadVariableOp", 0, 0, 0, 60),
            ("C1/embedding_lookup/Gather", "GatherV2", 0, 60, 60, 90),
        )
        edges = chain("read", "C1/embedding_lookup/Gather")
        found = of(step_trace(ops, edges, step_us=90), "copied_table")
        assert found.toggle == "fused_v2"

    def test_a_read_that_was_interrupted_once_copies_nothing(self):
        ops = (("read", "ReadVariableOp", 0, 0, 0, 2), ("gather", "GatherV2", 0, 500, 500, 600))
        trace = step_trace(ops, chain("read", "gather"), step_us=600, steps=5)
        trace.events["dur_ns"] = trace.events["dur_ns"].where(trace.events.index != 0, 400 * US)
        assert "copied_table" not in keys(trace)
