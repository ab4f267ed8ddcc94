"""What a notebook keeps of a trace and of a boundary: one frame, stills, few bytes."""

from __future__ import annotations

import re

from tests.builders.plans import towers
from tests.builders.timelines import frame_of
from tests.builders.traces import big_trace, staged_trace
from tests.ui.synthetic import dlrm_trace
from workbench.viz.boundary.view import boundary_view
from workbench.viz.kept_picture import Picture, kept_view, pictures_html
from workbench.viz.timeline.view import timeline_view

NASTY = "</script><script>alert(1)</script>\"'&"


def test_pictures_share_one_frame_and_each_has_a_still() -> None:
    views = [timeline_view(staged_trace(), title="By hand"), boundary_view(towers())]
    page = pictures_html([Picture(views[0], "First"), Picture(views[1], "Second")])
    stills, _, frame = page.partition("<iframe")
    assert stills.count('<img src="data:image/svg+xml;base64,') == 2
    assert re.findall("<h3>(.*?)</h3>", stills) == ["First", "Second"]
    assert 'title="First, Second"' in frame
    inside = frame_of(page)
    assert inside.count("data-wb-timeline=") == inside.count("data-wb-boundary=") == 1
    assert "<img" not in inside
    assert re.findall("<h3>(.*?)</h3>", inside) == ["First", "Second"]


def test_one_picture_needs_no_heading() -> None:
    page = pictures_html([Picture(timeline_view(staged_trace(), title="By hand"))])
    assert '<iframe title="Timeline of By hand"' in page
    assert "<h3>" not in page
    assert '<iframe title="Boundary"' in pictures_html([Picture(boundary_view(towers()))])


def test_only_the_frame_has_scripts_and_user_strings_stay_text() -> None:
    page = pictures_html([Picture(timeline_view(staged_trace(), title=NASTY), NASTY)])
    assert "<script" not in page
    inside = frame_of(page)
    assert inside.count("<script") == 3
    assert "<script>alert" not in inside


def test_an_output_of_the_usual_trace_is_small() -> None:
    trace = dlrm_trace(20)
    view = kept_view(trace)
    assert view.notice == ""
    assert len(view.steps) == 20
    assert len(pictures_html([Picture(view)])) < 140_000


def test_of_a_long_trace_a_notebook_keeps_the_last_steps_and_says_so() -> None:
    trace = big_trace(150_000)
    steps = len(trace.steps())
    view = kept_view(trace)
    assert 1 <= len(view.steps) < steps
    assert view.notice == (
        f"The last {len(view.steps)} steps of {steps}, so that the notebook stays small; "
        "wb.widget(trace) shows all of them."
    )
    assert view.steps["start_ns"].max() == trace.steps()["start_ns"].max()
    assert len(pictures_html([Picture(view)])) < 300_000
    # room for half as much keeps fewer
    assert len(kept_view(trace, "x", 40_000).steps) < len(view.steps)


def test_one_step_is_kept_however_large_it_is() -> None:
    view = kept_view(dlrm_trace(3), "x", 100)
    assert view.notice.startswith("The last step of 3, so that")
    assert len(view.steps) == 1
