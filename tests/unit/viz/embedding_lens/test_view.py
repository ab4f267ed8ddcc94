"""What a lens shows."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.builders.embedding_lenses import fused_trace, stock_graph, stock_trace
from tests.builders.findings import plain
from tests.builders.step_traces import step_trace
from workbench.core.analysis.embedding_lens.id_statistics import id_statistics
from workbench.core.analysis.embedding_lens.lens import make_lens
from workbench.core.analysis.embedding_lens.tables import find_tables
from workbench.viz import notebook
from workbench.viz.embedding_lens.view import lens_view

FACTS = {table.name: table for table in find_tables(stock_graph())}
IDS = {"table": id_statistics([np.array([1, 1]), np.array([1, 2])])}


def test_all_that_is_known():
    view = lens_view(make_lens(stock_trace(), fused_trace(), FACTS, IDS))
    assert plain("".join(view.sentence)) == (
        "1 embedding table, 80 µs of op time a step: lookups 50 µs, gradients 10 µs, updates "
        "20 µs. Fused: 40 µs."
    )
    (row,) = view.rows
    assert [plain(cell) for cell in row.size] == ["100 × 4", "1.6 kB", "3.2 kB"]
    assert [plain(cell) for cell in row.ids] == ["2", "75 %", "50 % (1 id)", "32 B"]
    assert [[plain(line) for line in lines] for lines in row.times] == [
        ["50 µs ± 0 ms, 2 ops", "25 µs ± 0 ms, 2 ops"],
        ["30 µs ± 0 ms, 3 ops", "15 µs ± 0 ms, 2 ops"],
    ]
    assert [[piece.width for piece in pieces] for _, pieces, _ in row.bars] == [
        [0.625, 0.125, 0.25],
        [0.3125, 0.0625, 0.125],
    ]
    assert view.total is None and "Slots: what the optimizer keeps" in view.notes[-1]


def test_without_a_program():
    view = lens_view(make_lens(stock_trace(steps=1)))
    (row,) = view.rows
    assert row.ids == ("not sampled", "–", "–", "–") and row.size == ("–", "–", "–")
    assert plain(row.times[0][0]) == "50 µs, 2 ops"
    assert "Give program= to read them" in view.notes[-1]


def test_no_table():
    lens = make_lens(step_trace([("a", "Mul", 0, 0, 0, 5)], [("a", "a")], step_us=5))
    text = notebook.text(lens)
    assert text.startswith("No embedding table: no op of the trace reads rows of a variable.")


def test_many_tables_are_folded_and_summed():
    lens = make_lens(stock_trace(), fused_trace(), FACTS, IDS)
    (table,) = lens.tables
    gone = dataclasses.replace(table, name="gone", fused=None)
    lens = dataclasses.replace(lens, tables=(table,) * 13 + (gone,))
    view = lens_view(lens)
    assert len(view.rows) == 12 and view.rest_title == "2 more tables"
    assert "Fused: 0.52 ms (1 of them not in that trace)." in plain("".join(view.sentence))
    assert view.rest[-1].times[0][1] == "–" and view.rest[-1].bars[1] == ("fused", (), "–")
    assert [plain(cell) for cell in view.total.size] == ["", "22 kB", "45 kB"]
    assert [plain(cell) for cell in view.total.times[0]] == ["0.70 ms", "0.33 ms"]
    bundle, _ = notebook.bundle(lens)
    assert "2 more tables" in bundle["text/html"] and bundle["text/plain"].count("\n") == 21


def test_text_of_a_name_is_no_markup():
    lens = make_lens(stock_trace())
    (table,) = lens.tables
    lens = dataclasses.replace(lens, tables=(dataclasses.replace(table, name="<b>"),))
    assert "&lt;b&gt;" in notebook.bundle(lens)[0]["text/html"]
