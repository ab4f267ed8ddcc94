"""What the view of a limit says."""

from __future__ import annotations

import dataclasses

from tests.builders.findings import plain
from tests.builders.limits import PEAKS, PRODUCT, product_trace, with_shapes
from workbench.core.analysis.findings.find import find
from workbench.core.analysis.limit.limit import limit_of
from workbench.core.trace.meta import TraceMeta
from workbench.experiments.comparison.limit import ComparedLimits
from workbench.viz import notebook
from workbench.viz.findings.view import findings_view
from workbench.viz.limit.sentence import idle_sentence, limit_sentence
from workbench.viz.limit.view import limit_view
from workbench.viz.outlets import html_of, text_of


def test_the_sentence():
    found = limit_of(product_trace(), PEAKS)
    assert plain("".join(limit_sentence(found))) == (
        "A traced step takes 10 µs; two of these cores need at least 1.4 µs: 3.1 µs more are ops "
        "below peak, 5.5 µs are idle cores."
    )
    assert plain(idle_sentence(found)) == (
        "Cores idle for 3.0 µs no other op is ready; for 2.5 µs an op is ready and not started, or "
        "a step is called or returns."
    )


def test_one_core_that_never_idles():
    trace = product_trace()
    events = trace.events.iloc[:1].assign(start_ns=0, dur_ns=10_000)
    alone = dataclasses.replace(trace, events=events, meta=TraceMeta(cores=1))
    said = "".join(limit_sentence(limit_of(alone, PEAKS)))
    assert plain(said) == (
        "A traced step takes 10 µs; this core alone needs at least 1.4 µs: 8.6 µs more are ops "
        "below peak."
    )
    assert idle_sentence(limit_of(alone, PEAKS)) == ""


def test_tables():
    view = limit_view(limit_of(product_trace(), PEAKS))
    assert [plain(part.time) for part in view.parts] == [
        *("1.4 µs", "3.1 µs", "0 ms", "2.5 µs", "0 ms", "3.0 µs"),
    ]
    assert [plain(cell) for cell in view.families.rows[0]] == [
        *("Dense matmul", "2", "4.0 kflop", "2.8 kB", "1.4 µs", "3.0 µs"),
    ]
    assert [plain(cell) for cell in view.ops.rows[0]] == [
        *("one", "MatMul", "cache", "2.0 kflop", "1.4 kB", "1.4 µs", "4.0 µs"),
    ]
    assert plain(view.peaks.rows[0][1]) == "2.0 Gflop/s"
    assert "One core alone" in view.notes[0]


def test_notes():
    slow = dataclasses.replace(PEAKS, cores=4, multiply_adds={"float32": 1e6, "float64": 1e6})
    trace = with_shapes(product_trace(lost_ops=1200), {"one": (PRODUCT, "float32[10,5]")})
    notes = plain(" ".join(limit_view(limit_of(trace, slow)).notes))
    for words in ("were faster than the peaks", "is not known", "machine has 4", "lacks 1 200 ops"):
        assert words in notes


def test_outlets():
    found = limit_of(product_trace(), PEAKS)
    text = plain(text_of(found))
    assert text.startswith("A traced step takes 10 µs") and "By op family" in text
    html = html_of(found)
    assert "wbl-p0" in html and "Idle: nothing is ready" in html
    assert notebook.bundle(found)[0]["text/plain"] == text_of(found)
    both = ComparedLimits(variants=(("off", found), ("auto fused", found)))
    assert plain(text_of(both)).count("A traced step takes") == 2
    assert html_of(both).count("<h3>") == 2
    assert both["off"] is found and set(both.df["variant"]) == {"off", "auto fused"}


def test_names_are_no_markup():
    trace = product_trace()
    nodes = trace.nodes.assign(name=["<b>", "two", "three"])
    html = html_of(limit_of(dataclasses.replace(trace, nodes=nodes), PEAKS))
    assert "<b>" not in html and "&lt;b&gt;" in html


def test_a_line_in_findings():
    trace = product_trace()
    found = dataclasses.replace(find(trace), limit=limit_of(trace, PEAKS))
    assert "two of these cores need" in findings_view(found).limit
    assert "two of these cores need" in text_of(found) and "two of these cores" in html_of(found)
    assert findings_view(find(trace)).limit == ""
