"""A graph with one table of 100 rows of 4, as stock TensorFlow looks it up; and traces of it."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from tests.builders.graphs import graph
from tests.builders.step_traces import step_trace
from workbench.core.analysis.embedding_lens.id_statistics import id_statistics
from workbench.core.analysis.embedding_lens.lens import EmbeddingLens, LensTable
from workbench.core.analysis.embedding_lens.lookup_times import lookup_times
from workbench.core.analysis.embedding_lens.tables import EmbeddingTable
from workbench.core.graph.graph_view import GraphView
from workbench.core.trace.trace import Trace

_STOCK = """
    hashed = StringToHashBucketFast int64
    where = Where int64
    rows = Const int64
    table = VariableV2 float32_ref
    table/Adagrad = VariableV2 float32_ref
    rate = Const
    table/read = Identity(table)
    C1/embedding_lookup/kept = GatherV2(hashed, where) int64
    C1/embedding_lookup/Fill = SparseFillEmptyRows(where, C1/embedding_lookup/kept, rows) int64 int64
    C1/embedding_lookup/embedding_lookup_sparse = SparseSegmentMean(table/read, C1/embedding_lookup/Fill:1, rows)
    dense = VariableV2 float32_ref
    dense/read = Identity(dense)
    top = MatMul(C1/embedding_lookup/embedding_lookup_sparse, dense/read)
    Adagrad/update_table/SparseApplyAdagrad = SparseApplyAdagrad(table, table/Adagrad, rate, top, hashed) float32_ref
"""  # noqa: E501


def stock_graph(text: str = _STOCK) -> GraphView:
    view = graph(text)
    of_a_table = ("table", "table/Adagrad", "slot")
    shapes = {view.number(name): ((100, 4),) for name in of_a_table if name in view.names}
    return dataclasses.replace(view, shapes=shapes)


def stock_trace(**named) -> Trace:
    """A step of 100 µs: the lookup 20 + 30 µs, its gradient 10, the update 5 + 15, a matmul 20."""
    scope = "C1/embedding_lookup"
    ops = (
        (f"{scope}/kept", "GatherV2", 0, 0, 0, 20),
        (f"{scope}/embedding_lookup_sparse", "SparseSegmentMean", 0, 20, 20, 50),
        ("top", "MatMul", 0, 50, 50, 70),
        (f"gradients/{scope}_grad/Sum", "SparseSegmentMeanGrad", 0, 70, 70, 80),
        ("Adagrad/update_table/Unique", "Unique", 0, 80, 80, 85),
        ("Adagrad/update_table/Apply", "SparseApplyAdagrad", 0, 85, 85, 100),
    )
    fed = [(one[0], next_[0]) for one, next_ in itertools.pairwise(ops)]
    fed += [("table", "table/read"), ("table/read", ops[1][0]), ("table", ops[-1][0])]
    also = [("table", "VariableV2"), ("table/read", "Identity")]
    return step_trace(ops, fed, step_us=100, also=also, **named)


def fused_trace() -> Trace:
    """A step of 60 µs: the lookup 10 + 15 µs, its gradient 5, the update 10, a matmul 20."""
    scope = "C1/fused_embedding_lookup"
    ops = (
        (f"{scope}/WorkbenchPreLookUp", "WorkbenchPreLookUp", 0, 0, 0, 10),
        (scope, "WorkbenchLocalLookUp", 0, 10, 10, 25),
        ("top", "MatMul", 0, 25, 25, 45),
        (f"gradients/{scope}_grad/Grad", "WorkbenchLocalLookUpGrad", 0, 45, 45, 50),
        ("Adagrad/update_table/Apply", "WorkbenchRowsApply", 0, 50, 50, 60),
    )
    fed = [(one[0], next_[0]) for one, next_ in itertools.pairwise(ops)]
    fed += [("table", ops[1][0]), ("table", ops[-1][0])]
    return step_trace(ops, fed, step_us=60, also=[("table", "VariableV2")])


def skewed_lens() -> EmbeddingLens:
    """A table of 100 rows whose ids repeat, one of 4 rows, and one of which nothing is known.

    Of "items" the first batch asks for 7 three times, 8 twice and 9 once, the second for 7 twice,
    9 once, and 5, which is new; of "days" both ask for each of four once.
    """
    items = [np.array([7, 8, 7, 9, 8, 7]), np.array([9, 7, 5, 7])]
    days = [np.arange(4), np.arange(4)]
    return EmbeddingLens(
        trace=stock_trace(),
        fused=None,
        tables=(_sampled("items", 100, items), _sampled("days", 4, days), _unknown("hashed")),
        batches=2,
    )


def _sampled(name: str, rows: int, batches: list[np.ndarray]) -> LensTable:
    facts = EmbeddingTable(
        name=name, rows=rows, dim=4, dtype="float32", slots=(), lookups=(), ids=()
    )
    ids = id_statistics(batches)
    return LensTable(name=name, facts=facts, ids=ids, times=_unknown(name).times, fused=None)


def _unknown(name: str) -> LensTable:
    times = next(iter(lookup_times(stock_trace()).values()))
    return LensTable(name=name, facts=None, ids=None, times=times, fused=None)
