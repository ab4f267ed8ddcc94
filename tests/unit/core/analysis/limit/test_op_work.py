"""The least work of ops, counted by hand."""

from __future__ import annotations

import pytest

from tests.builders.limits import PEAKS
from workbench.core.analysis.limit.op_work import FAR_BYTES, work_of
from workbench.core.analysis.limit.work import OWN_BYTES, Work, least_ns
from workbench.core.graph.tensor_shapes import parsed_shapes


def work(op, inputs, outputs=""):
    return work_of(op, parsed_shapes(inputs), parsed_shapes(outputs))


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("MatMul", "a=float32[6,3] b=float32[3,4]"),
        ("MatMul", "a=float32[3,6] b=float32[4,3]"),
        ("_FusedMatMul", "a=float32[6,3] b=float32[3,4] args=float32[4]"),
        ("_MklMatMul", "float32[6,3] float32[3,4]"),
        ("WorkbenchMatMul", "a=float32[6,3] b=float32[3,4] bias=float32[4]"),
    ],
)
def test_a_product_of_6_by_3_by_4(op, inputs):
    found = work(op, inputs, "float32[6,4]")
    assert found == Work(flops=2 * 6 * 3 * 4, cached_bytes=4 * (18 + 12 + 24))


def test_products_of_several_matrices():
    found = work("BatchMatMulV2", "x=float64[2,6,3] y=float64[2,3,4]", "float64[2,6,4]")
    assert (found.flops, found.dtype) == (2 * 2 * 6 * 3 * 4, "float64")
    # one matrix by many
    found = work("BatchMatMulV2", "x=float32[8,16] y=float32[512,16,4]", "float32[512,8,4]")
    assert found.flops == 2 * 512 * 8 * 16 * 4


@pytest.mark.parametrize(
    ("op", "inputs", "outputs"),
    [
        ("MatMul", "a=bfloat16[6,3] b=bfloat16[3,4]", "bfloat16[6,4]"),
        ("MatMul", "b=float32[3,4]", "float32[6,4]"),
        ("Conv2D", "input=float32[1,8,8,1] filter=float32[3,3,1,1]", "float32[1,8,8,1]"),
        ("PartitionedCall", "args=float32[6,3]", "float32[6,3]"),
        ("WorkbenchGroupedLookUp", "tables=&float32[9,4]", "vectors=float32[2,4]"),
        ("WorkbenchDotInteractionGrad", "float32[2,3,4] float32[2,6]", ""),
        ("DepthwiseConv2dNative", "float32[1,8,8,1] float32[3,3,1,1]", "float32[1,8,8,1]"),
        ("TopKV2", "input=float32[600] k=int32[]", "float32[5] int32[5]"),
    ],
)
def test_what_no_rule_knows(op, inputs, outputs):
    assert work(op, inputs, outputs) is None


def test_what_works_on_one_number_at_a_time_moves_nothing():
    assert work("Relu", "features=float32[6,4]", "float32[6,4]") == Work(flops=24)
    assert work("AddV2", "x=int64[6] y=int64[6]", "int64[6]") == Work()


def test_what_hands_tensors_on_does_nothing():
    for op in ("Identity", "Reshape", "Const", "VarHandleOp", "WorkbenchBufferTake", "Shape"):
        assert work(op, "float32[600,4]", "float32[600,4]") == Work()


def test_a_sum_goes_through_its_tensor_once():
    found = work("Sum", "input=float32[6,4] reduction_indices=int32[1]", "float32[4]")
    assert found == Work(cached_bytes=4 * 24 + 4 + 16)


def test_a_slice_reads_what_it_writes():
    assert work("StridedSlice", "input=float32[1000,4]", "float32[2,4]") == Work(cached_bytes=64)


def test_a_gather_reads_each_row_once():
    few = work("GatherV2", "params=float32[9,4] indices=int64[3] axis=int32[]", "float32[3,4]")
    assert few == Work(cached_bytes=3 * 16 + 48 + 24)
    # More ids than rows: some are equal.
    many = work("GatherV2", "params=float32[9,4] indices=int64[30]", "float32[30,4]")
    assert many == Work(cached_bytes=9 * 16 + 480 + 240)


def test_rows_of_a_table_that_fits_in_no_cache_are_read_in_no_order():
    rows = FAR_BYTES // 64 + 1
    found = work(
        "ResourceGather", f"resource=&float32[{rows},16] indices=int32[3]", "float32[3,16]"
    )
    assert found == Work(lines=3, cached_bytes=3 * 64 + 12)


def test_rows_of_a_table_that_fits_in_a_shared_cache_are_read_in_no_order():
    table = f"float32[{OWN_BYTES // 64 + 1},16]"
    found = work("ResourceGather", f"resource=&{table} indices=int32[3]", "float32[3,16]")
    assert found == Work(cached_lines=3, cached_bytes=3 * 64 + 12)
    # All tables of an op count: each is read anew before a step comes to it again.
    half = f"&float32[{OWN_BYTES // 128 + 1},16]"
    tables, ids = f"tables={half} tables={half}", "ids=int64[3] ids=int64[5]"
    looked = work("WorkbenchGroupedLookUp", f"{tables} {ids}", "float32[8,16]")
    assert looked == Work(cached_lines=8, cached_bytes=8 * 8 + 8 * 64)
    # A row that was read is written where it lies.
    slots = f"slots={half} slots={half}"
    gradients = "gradients=float32[3,16] gradients=float32[5,16]"
    applied = work("WorkbenchGroupedApply", f"{tables} {slots} {ids} {gradients}")
    assert applied == Work(cached_lines=2 * 8, cached_bytes=8 * 8 + 8 * 64)


def test_an_update_of_rows_reads_and_writes_table_and_slots():
    found = work(
        "ResourceSparseApplyAdagradV2",
        "var=&float32[9,4] accum=&float32[9,4] lr=float32[] epsilon=float32[] grad=float32[3,4] "
        "indices=int64[3]",
    )
    assert found == Work(cached_bytes=2 * 2 * 3 * 16 + 24 + 48)


def test_an_update_of_a_whole_variable():
    found = work("ApplyAdam", "var=&float32[6,4] m=&float32[6,4] v=&float32[6,4] grad=float32[6,4]")
    assert found == Work(flops=3 * 24, cached_bytes=2 * 3 * 96 + 96)


def test_a_grouped_lookup_and_its_update():
    tables = "tables=&float32[9,4] tables=&float32[5,4]"
    ids = "ids=int64[3] ids=int64[30]"
    looked = work("WorkbenchGroupedLookUp", f"{tables} {ids}", "float32[3,4] float32[30,4]")
    read = (3 + 5) * 16
    assert looked == Work(cached_bytes=read + 33 * 8 + 33 * 16)
    slots = "slots=&float32[9,4] slots=&float32[5,4]"
    applied = work(
        "WorkbenchGroupedApply",
        f"{tables} {slots} {ids} gradients=float32[3,4] gradients=float32[30,4]",
    )
    assert applied == Work(cached_bytes=2 * 2 * read + 33 * 8 + 33 * 16)


def test_dots_of_pairs_and_their_gradient():
    found = work("WorkbenchDotInteraction", "x=float32[2,3,4]", "float32[2,3]")
    assert found.flops == 2 * (2 * 3) * 4
    back = work(
        "WorkbenchDotInteractionGrad", "gradient=float32[2,3] x=float32[2,3,4]", "float32[2,3,4]"
    )
    assert back.flops == 2 * found.flops


def test_text_counts_by_its_fields():
    found = work(
        "DecodeCSV", "records=string[7] record_defaults=float32[1]", "float32[7] string[7]"
    )
    assert found == Work(fields=14)


@pytest.mark.parametrize(
    ("done", "ns", "bound"),
    [
        (Work(), 0.0, "nothing"),
        (Work(flops=2000), 1000.0, "multiply-adds"),
        (Work(flops=2000, dtype="float64"), 2000.0, "multiply-adds"),
        # A core multiplies while it reads.
        (Work(flops=2000, cached_bytes=1500), 1500.0, "cache"),
        # Of two cores each has 1 MB; what more there is moves half as fast.
        (Work(cached_bytes=2 * OWN_BYTES + 50), 2 * OWN_BYTES + 100.0, "cache"),
        (Work(memory_bytes=100, cached_bytes=10), 1010.0, "memory"),
        (Work(cached_lines=3), 60.0, "random reads of a cache"),
        (Work(lines=3), 300.0, "random reads"),
        (Work(fields=4), 200.0, "text"),
    ],
)
def test_core_time_at_the_peaks(done, ns, bound):
    assert least_ns(done, PEAKS) == (pytest.approx(ns), bound)
