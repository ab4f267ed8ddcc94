"""A boundary as HTML, as widget, and what its script decides without a page."""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import re
import zlib
from xml.etree import ElementTree

import pytest

from tests.builders.graphs import graph
from tests.builders.javascript import evaluate
from tests.builders.plans import predictions, stage_plan, towers
from workbench.core.boundary.legality import boundary_of
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import Edit
from workbench.viz.boundary.html import (
    _breaks,
    boundary_html,
    boundary_static_html,
    packed,
)
from workbench.viz.boundary.view import boundary_view
from workbench.viz.boundary.widget import BoundaryWidget

NASTY = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def view():
    made = dataclasses.replace(plan_stages(towers()), predictions=predictions(12.0, 8.0))
    return boundary_view(made)


def text_of(page):
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]*>", "", body.replace("<wbr>", "")))
    return re.sub(r"\s+", " ", words).strip()


def inline_texts(page):
    svg = re.search(r"<svg.*?</svg>", page, flags=re.DOTALL)
    return {text.text for text in ElementTree.fromstring(svg[0]).iter(f"{SVG}text")}


SVG = "{http://www.w3.org/2000/svg}"


def picture_of(page):
    data = re.search(r'src="data:image/svg\+xml;base64,([^"]*)"', page)
    return ElementTree.fromstring(base64.b64decode(data[1]))


def test_the_packed_view_is_the_view(view):
    assert json.loads(zlib.decompress(packed(view))) == view.to_json()


def test_a_page_carries_the_packed_view_beside_a_still_picture(view):
    page = boundary_html(view, "b-1")
    data = re.search(r'id="b-1-data">([^<]*)<', page)
    assert json.loads(zlib.decompress(base64.b64decode(data[1]))) == view.to_json()
    shown = text_of(page)
    assert shown.startswith("5 nodes run ahead of the step in two chained stages; 4 tensors")
    assert {"2", "reads a variable", "2 × StringSplit"} <= inline_texts(page)
    for part in (
        "Stage “smart_stage”",
        "VA reads a variable",
        "'table_0' is a variable.",
        "net/lookup ← table_0",
        "Smallest change: Read a table or a constant",
        "Through the buffer of “smart_stage”: 4 tensors",
        "Widest, 1 thread (chosen)",
        "New stage for the input",
    ):
        assert part in shown


@pytest.mark.parametrize("name", ["", "a b", 'a"'])
def test_an_id_that_needs_quoting_is_refused(view, name):
    with pytest.raises(ValueError, match="expected letters, digits, '-' and '_' only"):
        boundary_html(view, name)


def test_static_html_holds_its_picture_and_the_reasons(view):
    page = boundary_static_html(view)
    assert "<script" not in page
    assert "<style" not in page
    picture = picture_of(page)
    # every box of the first level stands there, with what travels and why nodes stay
    shown = [view.boxes[place.box] for place in view.flow.boxes]
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {text for text in texts if "…" not in text} >= {
        box.label for box in shown if len(box.label) < 19
    }
    assert {"VA", "reads a variable", "Input, decode", "2", "1"} <= set(texts)
    assert "inside control flow 3" in re.sub(r"\s+", " ", text_of(page))


def test_nothing_in_the_picture_leaves_it(view):
    tall = dataclasses.replace(view.boxes[0], label="scope/" * 60)
    picture = picture_of(
        boundary_static_html(dataclasses.replace(view, boxes=(tall, *view.boxes[1:])))
    )
    width, height = float(picture.get("width")), float(picture.get("height"))
    for box in picture.iter(f"{SVG}rect"):
        assert 0 <= float(box.get("x", 0)) <= width - float(box.get("width"))
        assert 0 <= float(box.get("y", 0)) <= height - float(box.get("height"))
    long = next(t.text for t in picture.iter(f"{SVG}text") if t.text.endswith("scope/scope/"))
    assert long.startswith("…")
    assert len(long) < 40


def test_two_inputs_stand_below_each_other():
    text = """
    a = IteratorGetNext
    b = IteratorGetNext
    v = VariableV2
    joined = AddN(a, b, v)
    """
    boundary = boundary_of(graph(text), targets=["joined"], starts=["a", "b"])
    texts = {
        text.text: text
        for text in picture_of(boundary_static_html(boundary_view(boundary))).iter(f"{SVG}text")
    }
    assert texts["a"].get("x") == texts["b"].get("x")
    assert float(texts["b"].get("x")) < float(texts["joined"].get("x"))
    assert float(texts["b"].get("y")) > float(texts["a"].get("y")) + 38


def test_long_tables_of_a_page_say_how_long(view):
    many = dataclasses.replace(view, rows=view.rows * 10)
    assert f"The first 20 of {len(many.rows)} rows." in text_of(boundary_html(many, "x"))


def test_names_are_text_and_never_markup():
    text = "next = IteratorGetNext\nv = VariableV2\nloss = Mul(next, v)"
    nasty = graph(text)
    nasty = dataclasses.replace(
        nasty, names=tuple(f"{NASTY}/{name}" for name in nasty.names), ops=(NASTY, *nasty.ops[1:])
    )
    boundary = boundary_of(nasty, targets=[f"{NASTY}/loss"], starts=[f"{NASTY}/next"], move=())
    edits = (Edit(name=NASTY, reason=NASTY),)
    made = boundary_view(stage_plan(boundary=boundary, edits=edits))
    page = boundary_html(made, "x")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    still = boundary_static_html(made)
    assert "<script" not in still
    texts = picture_of(still).iter(f"{SVG}text")
    assert any(text.text.startswith("<script>alert(1)") for text in texts)


def test_the_widget_has_a_small_state(view):
    widget = BoundaryWidget(view)
    assert len(widget.packed) < 10_000
    assert BoundaryWidget(towers()).view.areas[0].kind == "may"


def matching(view, reasons, query):
    expression = "matchingRows(value.view, new Set(value.reasons), value.query)"
    value = {"view": view.to_json(), "reasons": reasons, "query": query}
    return evaluate(expression, value)


def test_search_finds_every_node_that_is_alike(view):
    titles = [row.title for row in view.rows]
    # the row is called net/lookup…lookup_1; its second node is found by its own name
    assert matching(view, [], "Lookup_1") == [titles.index("net/lookup…lookup_1")]
    assert matching(view, [], "concat") == [titles.index("net/joined")]
    assert matching(view, [], "c99") == []


def test_reasons_filter_rows(view):
    place = next(i for i, reason in enumerate(view.reasons) if reason.code == "ST")
    found = matching(view, [place], "")
    assert {view.rows[row].title for row in found} == {"noise", "net/dropped"}
    assert matching(view, [], "") == list(range(len(view.rows)))


def test_a_cause_narrows_the_rows_to_what_it_holds_back(view):
    expression = "matchingRows(value.view, new Set(), '', value.cause)"
    for cause in range(len(view.causes)):
        value = {"view": view.to_json(), "cause": cause}
        found = evaluate(expression, value)
        assert found == [i for i, row in enumerate(view.rows) if row.cause == cause]


def test_names_break_after_scopes_and_words_only():
    page = "globalThis.document = {createElement: () => ({append() {}, setAttribute() {}})};"
    parts = evaluate(
        "breakable(value).filter((p) => typeof p === 'string')",
        "dlrm/C1…C26/embedding_lookup/SegmentMean",
        page,
    )
    assert parts == ["dlrm/", "C1…", "C26/", "embedding_", "lookup/", "Segment", "Mean"]
    # the still picture breaks them in the same places
    assert str(_breaks("a/b_<C")) == "a/<wbr>b_<wbr>&lt;C"


def test_another_version_is_refused_in_words(view):
    expression = (
        "(() => { try { mountBoundary({}, value, {}); } catch (e) { return e.message; } })()"
    )
    said = evaluate(expression, {**view.to_json(), "version": 9})
    assert said == "Boundary format 9; this page reads 4. Run the cell again."
