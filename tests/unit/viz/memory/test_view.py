"""What the view of a trace's memory shows."""

from __future__ import annotations

import dataclasses

from tests.builders.findings import plain
from tests.builders.memories import chain_trace, of_ops, staged_trace
from workbench.core.analysis.memory.memory import memory
from workbench.core.trace.meta import TraceMeta
from workbench.viz import notebook
from workbench.viz.memory.view import memory_view


def test_a_step():
    view = memory_view(memory(chain_trace(steps=2, variables={"w": 4_000})))
    assert plain("".join(view.sentence)) == (
        "170 B of tensors live at once at the peak, and 170 B ± 0 B at the peak of a step on "
        "average. The largest part is Input, decode: 100 B, 59 %."
    )
    assert [(part.swatch, part.name, plain(part.bytes)) for part in view.parts] == [
        ("wbc-f0", "Input, decode", "100 B"),
        ("wbc-f3", "Dense matmul", "70 B"),
    ]
    assert plain(view.parts_caption) == "What lives at the peak, 60 ns into step 1"
    assert [plain(cell) for cell in view.scopes.rows[0]] == ["in", "100 B", "59 %"]
    assert [plain(cell) for cell in view.nodes.rows[1]] == ["net/b", "MatMul", "1", "50 B", "29 %"]
    assert plain(view.facts.rows[-1][1]) == "4.0 kB" and len(view.notes) == 1
    curve = view.curve
    assert curve.caption == "Bytes that live over step 1" and curve.buffers == ""
    assert (plain(curve.top), plain(curve.end)) == ("170 B", "0.1 µs") and 0.6 < curve.peak < 0.61
    # Nothing lives at first, and the peak touches the top.
    assert curve.line.startswith("M0 159.0V159.0H2.5") and "V1.0H" in curve.line


def test_a_buffer():
    view = memory_view(memory(staged_trace()))
    facts = {plain(name): plain(value) for name, value in view.facts.rows}
    assert facts["Tensors, mean of the steps' peaks"] == (
        "74 B (a single step, so without an interval)"
    )
    assert facts["Buffer of in, one item"] == "64 B"
    assert facts["Buffer of in, mean"] == "12 B, 29 % of all tensors"
    assert facts["Variables of the model"] == "–"
    assert view.curve.buffers and "does not know the model's variables" in view.notes[1]


def test_a_buffer_at_the_peak_has_its_own_swatch():
    trace = staged_trace()
    items = trace.items.assign(take_start_ns=-1, take_end_ns=-1, take_step=-1, take_track=-1)
    found = memory(dataclasses.replace(trace, items=items))
    view = memory_view(found)
    assert view.parts[0].swatch == "wbm-held" and view.nodes.rows[0][:2] == ("in", "Stage buffer")
    assert "The largest part is Items in buffers" in view.sentence[1]


def test_ops_that_the_tracer_lost():
    trace = dataclasses.replace(chain_trace(), meta=TraceMeta(lost_ops=1_200))
    assert plain(memory_view(memory(trace)).notes[-1]) == (
        "The trace lacks 1 200 ops, and so what they made."
    )


def test_a_peak_between_steps():
    found = memory(chain_trace())
    runs = found.trace.runs.assign(start_ns=65)
    between = dataclasses.replace(found, trace=dataclasses.replace(found.trace, runs=runs))
    assert memory_view(between).parts_caption == "What lives at the peak, between steps"


def test_many_nodes_and_scopes_are_cut():
    ops = [(f"scope_{i}/x", "Mul", 0, 10, 8, 0) for i in range(25)]
    view = memory_view(memory(of_ops(ops, [("scope_0/x", "scope_1/x")], until=10)))
    assert len(view.scopes.rows) == 10 and view.scopes.caption == "By name scope, 10 of 25"
    assert len(view.nodes.rows) == 20 and view.nodes.caption == "By node, 20 of 25"


def test_text_and_html():
    ops = (("<b>/x", "Mul", 0, 10, 8, 0), ("y", "Mul", 10, 20, 8, 0))
    bundle, _ = notebook.bundle(memory(of_ops(ops, [("<b>/x", "y")], until=20)))
    assert "&lt;b&gt;" in bundle["text/html"] and "<b>" not in bundle["text/html"]
    assert plain(bundle["text/plain"]).startswith("16 B of tensors live at once at the peak")
    assert "By node:" in bundle["text/plain"]
