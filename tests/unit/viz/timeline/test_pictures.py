"""The still picture of a timeline, names as text, and timelines on one scale."""

from __future__ import annotations

import re

import pytest

from tests.builders.timelines import MS, TRACE, drawn_texts, in_browser, picture_of
from tests.builders.traces import START_NS, make_trace, staged_trace, unstaged_trace
from workbench.core.graph import op_families
from workbench.viz.style import colors, format
from workbench.viz.timeline.html import timeline_html, timeline_static_html
from workbench.viz.timeline.scale import on_one_scale
from workbench.viz.timeline.view import timeline_view

ODD_NAMES = ("<script>alert(1)</script>", "</script><b>", "a&b\"'", "<img src=x>")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_text_wherever_they_go(name: str) -> None:
    nodes = [(name, name), ("b", "MatMul")]
    trace = make_trace(
        [(START_NS, MS, 0, 0, 2, 1), (START_NS + MS, MS, 0, 1, 2, 1)],
        nodes=nodes,
        tracks=(("Main", "step", 0, ""), (name, "prefetch", 0, name), (name, "inter_op", 0, "")),
        runs=[(0, 1, START_NS, START_NS + 2 * MS)],
        title=name,
    )
    view = timeline_view(trace)
    made = timeline_html(view, "one") + timeline_static_html(view)
    assert name not in made
    assert len(re.findall(r"<script", made)) == len(re.findall(r"</script>", made)) == 2
    assert name in in_browser(view, "model.names")


def test_html_wants_an_identifier() -> None:
    with pytest.raises(ValueError, match="element_id is 'a b'; expected letters, digits"):
        timeline_html(timeline_view(TRACE), "a b")


def test_ids_are_unique_on_a_page_of_several() -> None:
    views = timeline_view(TRACE), timeline_view(staged_trace())
    page = timeline_html(views[0], "a") + timeline_html(views[0], "b")
    page += "".join(timeline_static_html(view) for view in views)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)) == 8


def test_still_picture_is_small_and_tells_the_answer() -> None:
    made = timeline_static_html(timeline_view(staged_trace(300)))
    assert len(made) < 30_000
    for words in ("A step takes", "ResourceGather", "</table>"):
        assert words in made
    picture = picture_of(made)
    assert "Main step" in drawn_texts(picture)
    # one shape for each family of a lane that is not empty
    fills = [path.get("fill") for path in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert {
        colors.FAMILIES[op_families.LOOKUP].light,
        colors.FAMILIES[op_families.INPUT].light,
    } <= set(fills)
    assert len(fills) < 30


def test_timelines_on_one_scale_have_the_time_of_the_longest() -> None:
    views = [timeline_view(unstaged_trace(6)), timeline_view(staged_trace(6))]
    short, long = sorted(on_one_scale(views), key=lambda view: view.duration_ns)
    assert short.scale == long.scale
    assert long.scale is not None
    assert long.scale.whole_ns == long.duration_ns > short.duration_ns
    opened = [view.to_json_header()["shown"] for view in (short, long)]
    starts, times = long.steps["start_ns"].to_numpy(), long.steps["dur_ns"].to_numpy()
    assert opened == [int(starts[4] + times[4] - starts[2])] * 2
    widths = []
    for view in (short, long):
        low, high = in_browser(view, "newState(model, null).window")
        widths.append(high - low)
    assert widths[0] == pytest.approx(widths[1])
    end = format.duration(long.duration_ns)
    assert all(end in drawn_texts(picture_of(timeline_static_html(view))) for view in (short, long))


def test_a_timeline_alone_has_its_own_scale() -> None:
    (view,) = on_one_scale([timeline_view(staged_trace(6))])
    assert view.scale is None
    assert view.to_json_header()["shown"] == 0


def test_short_traces_are_shown_whole_on_one_scale() -> None:
    views = on_one_scale([timeline_view(staged_trace(2)), timeline_view(staged_trace(3))])
    assert views[0].scale is not None
    assert views[0].scale.shown_ns == max(view.duration_ns for view in views)
