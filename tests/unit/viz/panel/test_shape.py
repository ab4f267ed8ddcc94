"""The shape of a step before anything has run: parts, boundary, and why the rest stays."""

from __future__ import annotations

import dataclasses

from tests.builders.graphs import graph
from tests.builders.sessions import boundary
from tests.builders.small_models import MODEL
from workbench.core.prediction.traced_graph import uncut
from workbench.viz.panel.shape import shape_html, shape_view


def test_each_node_of_the_step_stands_on_one_side():
    view = shape_view(boundary(MODEL))
    assert "".join(text for text, _ in view.sentence).startswith("3 of 8 nodes may run ahead")
    assert [(part.title, part.nodes) for part in view.ahead] == [
        ("Input, decode", "2 nodes"),
        ("Ids, preprocess", "1 node"),
    ]
    counts = [int(part.nodes.split()[0]) for part in (*view.ahead, *view.stays)]
    assert sum(counts) == 8
    assert view.ahead[1].ops == "1\u00a0StringToHashBucketFast"
    assert view.reasons == "Why the rest stays: 2 nodes (reads a variable)."


def test_where_nothing_may_run_ahead_the_reason_is_said_and_no_line_drawn():
    view = shape_view(uncut(graph(MODEL)), "the step has no input")
    assert view.ahead == () and view.travels == ""
    assert view.reasons == "The step has no input."
    assert "wbp-line" not in shape_html(view) and "May run ahead" not in shape_html(view)


def test_names_of_ops_cannot_become_markup():
    view = shape_view(uncut(graph("a = X\n")))
    (part,) = view.stays
    named = dataclasses.replace(view, stays=(dataclasses.replace(part, ops="1 <b>X"),))
    assert "<b>X" not in shape_html(named) and "&lt;b&gt;X" in shape_html(named)
