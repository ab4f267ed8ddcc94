"""Times of tables, and the lens that joins them with sizes and ids."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.builders.embedding_lenses import fused_trace, stock_graph, stock_trace
from tests.builders.step_traces import US, step_trace
from tests.builders.traces import make_trace
from workbench.core.analysis.embedding_lens.id_statistics import id_statistics
from workbench.core.analysis.embedding_lens.lens import make_lens
from workbench.core.analysis.embedding_lens.lookup_times import lookup_times
from workbench.core.analysis.embedding_lens.readers import lookup_of
from workbench.core.analysis.embedding_lens.tables import find_tables
from workbench.errors import TraceError


def spent(times):
    parts = (times.lookup, times.gradient, times.update)
    return [(part.ops, part.ns) for part in parts]


class TestTimes:
    def test_a_stock_lookup(self):
        (times,) = lookup_times(stock_trace()).values()
        assert spent(times) == [(2, 50 * US), (1, 10 * US), (2, 20 * US)]
        assert times.lookups == 1 and times.lookup.interval_ns == (50 * US, 50 * US)

    def test_a_fused_lookup(self):
        (times,) = lookup_times(fused_trace()).values()
        assert spent(times) == [(2, 25 * US), (1, 5 * US), (1, 10 * US)]

    def test_one_step_has_no_interval(self):
        (times,) = lookup_times(stock_trace(steps=1)).values()
        assert times.lookup.interval_ns is None and times.lookup.ns == 50 * US

    def test_a_table_without_lookups_in_scopes_of_their_own(self):
        ops = (("rows", "GatherV2", 0, 0, 0, 30), ("else", "Mul", 0, 30, 30, 50))
        trace = step_trace(ops, [("t", "rows")], step_us=50, also=[("t", "VarHandleOp")])
        (times,) = lookup_times(trace).values()
        assert spent(times) == [(1, 30 * US), (0, 0), (0, 0)]

    def test_a_variable_of_a_function_is_called_by_what_reads_it(self):
        ops = (
            ("net/emb/Gather/Read", "ReadVariableOp", 0, 0, 0, 10),
            ("net/emb/Gather", "GatherV2", 0, 10, 10, 30),
            ("of_batch", "GatherV2", 0, 30, 30, 40),
            ("update", "ResourceScatterSub", 0, 40, 40, 50),
        )
        fed = [("resource", ops[0][0]), (ops[0][0], ops[1][0]), ("resource", "update")]
        fed.append(("batch", "of_batch"))
        also = [("resource", "_Arg"), ("batch", "_Arg")]
        found = lookup_times(step_trace(ops, fed, step_us=50, also=also))
        assert list(found) == ["net/emb"]
        assert spent(found["net/emb"]) == [(2, 30 * US), (0, 0), (1, 10 * US)]

    def test_work_ahead_counts_once_for_each_run_of_its_stage(self):
        nodes = (
            ("s/C1/embedding_lookup/ids", "Cast"),
            ("C1/embedding_lookup/rows", "GatherV2"),
            ("t", "VariableV2"),
        )
        trace = make_trace(
            [(0, 6, 0, 0, 1, 1), (10, 8, 0, 0, 1, 2), (20, 3, 0, 1, 2, 1)],
            nodes=nodes,
            tracks=(
                ("Main step", "step", 0, ""),
                ("Prefetch 0", "prefetch", 0, "s"),
                ("Inter-op 0", "inter_op", 0, ""),
            ),
            runs=[(0, 1, 20, 30), (1, 1, 0, 10), (1, 2, 10, 20)],
            edges=[(2, 1, 0)],
        )
        (times,) = lookup_times(trace).values()
        # 7 ns in each of two stage runs, 3 ns in the one step.
        assert times.lookup.ops == 2 and times.lookup.ns == 10
        assert times.lookup.interval_ns is None

    @pytest.mark.parametrize(
        ("name", "op", "scope"),
        [
            ("m/C1/embedding_lookup/embedding_lookup_sparse", "GatherV2", "m/C1/embedding_lookup"),
            ("embedding_lookup/embedding_lookup_sparse", "GatherV2", "embedding_lookup"),
            ("safe_embedding_lookup_sparse_2/x", "GatherV2", "safe_embedding_lookup_sparse_2"),
            ("m/fused_embedding_lookup_1", "WorkbenchLocalLookUp", "m/fused_embedding_lookup_1"),
            ("m/mine", "GatherV2", "m/mine"),
        ],
    )
    def test_scopes_of_lookups(self, name, op, scope):
        assert lookup_of(name, op) == scope


class TestLens:
    def test_the_table_joins_all_that_is_known(self):
        facts = {table.name: table for table in find_tables(stock_graph())}
        ids = {"table": id_statistics([np.array([1, 1]), np.array([1, 2])])}
        lens = make_lens(stock_trace(), fused_trace(), facts, ids)
        assert repr(lens) == "EmbeddingLens(1 tables, 2 batches of ids)"
        (row,) = lens.df.to_dict("records")
        assert (row["rows"], row["dim"], row["bytes"], row["slot_bytes"]) == (100, 4, 1600, 1600)
        assert (row["ids_per_batch"], row["unique_share"], row["top_share"]) == (2, 0.75, 0.5)
        assert row["gathered_bytes"] == 32
        assert (row["lookup_ns"], row["update_ns"]) == (50 * US, 20 * US)
        assert (row["fused_lookup_ns"], row["fused_gradient_ops"]) == (25 * US, 1)

    def test_without_a_program_sizes_and_ids_are_unknown(self):
        lens = make_lens(stock_trace())
        (row,) = lens.df.to_dict("records")
        assert row["table"] == "table" and lens.batches == 0
        assert all(row[name] != row[name] or row[name] is None for name in ("rows", "top_share"))

    def test_a_slot_is_left_out(self):
        (table,) = find_tables(stock_graph())
        facts = {"other": dataclasses.replace(table, name="other", slots=("table",))}
        assert make_lens(stock_trace(), None, facts).tables == ()

    def test_a_trace_without_edges(self):
        trace = dataclasses.replace(stock_trace(), edges=stock_trace().edges.iloc[:0])
        with pytest.raises(TraceError, match="no op of it is known to read a table"):
            make_lens(trace)

    def test_a_trace_without_steps(self):
        with pytest.raises(TraceError, match="no step, so no table is looked up"):
            make_lens(stock_trace(), make_trace())
