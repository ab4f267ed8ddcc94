"""The tables of a graph: which variables they are, their size, where their ids are."""

from __future__ import annotations

import dataclasses

from tests.builders.embedding_lenses import stock_graph
from tests.builders.graphs import graph
from workbench.core.analysis.embedding_lens.tables import find_tables


def test_a_stock_lookup():
    (table,) = find_tables(stock_graph())
    assert table.name == "table" and (table.rows, table.dim, table.dtype) == (100, 4, "float32")
    assert (table.row_bytes, table.bytes, table.slot_bytes) == (16, 1600, 1600)
    assert table.slots == ("table/Adagrad",) and table.lookups == ("C1/embedding_lookup",)
    # Before invalid ids are dropped and empty rows filled.
    assert table.ids == ("hashed:0",)


def test_without_shapes_the_sizes_are_not_known():
    (table,) = find_tables(dataclasses.replace(stock_graph(), shapes={}))
    assert table.rows is table.dim is table.bytes is table.slot_bytes is table.row_bytes is None


def test_of_a_graph_that_only_a_trace_knows_the_tables_are_found():
    view = stock_graph()
    (table,) = find_tables(dataclasses.replace(view, outputs=((),) * len(view), shapes={}))
    assert (table.name, table.dtype, table.row_bytes) == ("table", "", None)


def test_a_slot_whose_rows_are_read_is_no_table():
    (table,) = find_tables(
        stock_graph(
            """
            ids = Const int64
            table = VariableV2 float32_ref
            slot = VariableV2 float32_ref
            of_table = GatherV2(table, ids)
            of_slot = GatherV2(slot, ids)
            update = SparseApplyMomentum(table, slot, of_slot, of_table, ids) float32_ref
            """
        )
    )
    assert table.name == "table" and table.ids == ("ids:0",) and table.lookups == ("of_table",)


def test_repeated_ids_are_followed_to_where_they_repeat():
    (table,) = find_tables(
        stock_graph(
            """
            ids = Const int64
            flat = Reshape(ids) int64
            once = Unique(flat) int64 int32
            table = VariableV2 float32_ref
            of_table = GatherV2(table, once)
            """
        )
    )
    assert table.ids == ("ids:0",)


def test_what_is_looked_up_is_not_followed():
    (table,) = find_tables(
        stock_graph(
            """
            vocabulary = Const int64
            place = Const int64
            ids = GatherV2(vocabulary, place) int64
            table = VariableV2 float32_ref
            of_table = GatherV2(table, ids)
            """
        )
    )
    assert table.ids == ("ids:0",)


def test_ids_that_were_sorted_out_are_not_those_of_the_table():
    (table,) = find_tables(
        stock_graph(
            """
            ids = Const int64
            where = Const int32
            shards = DynamicPartition(ids, where) int64 int64
            table = VariableV2 float32_ref
            of_table = GatherV2(table, shards:1)
            """
        )
    )
    assert table.ids == ()


def test_a_variable_behind_a_handle_has_the_shape_that_is_read():
    view = stock_graph(
        """
        ids = Const int64
        table = VarHandleOp
        whole = ReadVariableOp(table)
        of_table = ResourceGather(table, ids)
        """
    )
    shapes = {view.number("whole"): ((7, 2),)}
    (table,) = find_tables(dataclasses.replace(view, shapes=shapes))
    assert (table.rows, table.dim, table.bytes, table.dtype) == (7, 2, 56, "float32")


def test_an_embedding_variable_has_no_rows_yet():
    (table,) = find_tables(
        stock_graph(
            """
            keys = Const int64
            table = WorkbenchEmbeddingVariable resource
            rows = WorkbenchEmbeddingGather(table, keys)
            """
        )
    )
    assert table.rows is None and table.dtype == "float32" and table.ids == ("keys:0",)


def test_bfloat16_has_two_bytes():
    (table,) = find_tables(stock_graph())
    assert dataclasses.replace(table, dtype="bfloat16").bytes == 800


def test_a_grouped_lookup_has_all_of_its_tables_and_each_its_own_slots():
    view = graph(
        """
        ids = Const int64
        one = VariableV2 float32_ref
        two = VariableV2 float32_ref
        one_m = VariableV2 float32_ref
        one_v = VariableV2 float32_ref
        two_m = VariableV2 float32_ref
        two_v = VariableV2 float32_ref
        lookup = WorkbenchGroupedLookUp(one, two, ids, ids) float32 float32
        update = WorkbenchGroupedApplyAll(one, two, one_m, one_v, two_m, two_v, lookup, ids, ids)
        """
    )
    variables = ("one", "two", "one_m", "one_v", "two_m", "two_v")
    shapes = {view.number(name): ((100, 4),) for name in variables}
    tables = find_tables(dataclasses.replace(view, shapes=shapes))
    assert [table.name for table in tables] == ["one", "two"]
    assert [table.slots for table in tables] == [("one_m", "one_v"), ("two_m", "two_v")]
    assert {table.lookups for table in tables} == {("lookup",)}


def test_variables_that_a_function_captures():
    text = """
        ids = Placeholder int64
        dense/7 = Placeholder resource
        lookup/8 = Placeholder resource
        slot/9 = Placeholder resource
        value = Placeholder resource
        lookup/GatherV2 = ResourceGather(lookup/8, ids)
        of_value = ResourceGather(value, ids)
        read = ReadVariableOp(dense/7)
        of_slot = ResourceGather(slot/9, ids)
        update = ResourceSparseApplyAdagrad(lookup/8, slot/9, read, of_slot, ids)
    """
    kinds = {"dense/7": "variable", "lookup/8": "variable", "slot/9": "variable"}
    view = graph(
        text,
        captures={**kinds, "value": "resource"},
        shapes={"dense/7": (4,), "lookup/8": (100, 4), "slot/9": (100, 4)},
    )
    (table,) = find_tables(view)
    # Each trace gives the placeholder another number: the scope and the order stay.
    assert (table.name, table.node, table.capture) == ("lookup", "lookup/8", 1)
    assert (table.rows, table.dim, table.slots) == (100, 4, ("slot/9",))
    assert table.ids == ("ids:0",)
