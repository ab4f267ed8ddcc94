"""The critical path in the browser's timeline: a toggle lights it, keys follow it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.critical_paths import three_steps
from tests.ui.pages import FIRST_LANE, colors_of, open_page, rgb, write_page
from tests.ui.watched import Watched
from workbench.core.graph.op_families import DENSE, LOOKUP
from workbench.viz.style.colors import FAMILIES
from workbench.viz.timeline.view import timeline_view

LANE, GROUP_END = 30, 8


@pytest.fixture
def timeline(watched: Watched, tmp_path: Path) -> Any:
    view = timeline_view(three_steps())
    found = open_page(watched.page, write_page(tmp_path / "page.html", view))
    found.get_by_role("button", name="show the whole trace").click()
    yield found
    assert watched.errors == []
    assert watched.outside() == []


def lane_colors(timeline: Any, row: int, more: int = 0) -> dict[str, int]:
    top = FIRST_LANE + row * LANE + more
    return colors_of(timeline, top, top + 24)


def test_the_toggle_adds_the_lane_and_fades_what_is_off_the_path(timeline: Any) -> None:
    toggle = timeline.get_by_role("button", name="Critical path")
    assert toggle.get_attribute("aria-pressed") == "false"
    height = timeline.locator("canvas.wb-lanes").bounding_box()["height"]
    lookup = rgb(FAMILIES[LOOKUP].light)
    # the threads stand behind the end of the main step's group
    assert any(lookup in lane_colors(timeline, row, GROUP_END) for row in (1, 2))
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "true"
    assert timeline.locator("canvas.wb-lanes").bounding_box()["height"] == height + LANE
    assert rgb(FAMILIES[DENSE].light) in lane_colors(timeline, 1)
    assert not any(lookup in lane_colors(timeline, row, GROUP_END) for row in (2, 3))
    toggle.click()
    assert timeline.locator("canvas.wb-lanes").bounding_box()["height"] == height


def test_keys_light_the_path_and_follow_it(timeline: Any) -> None:
    canvas = timeline.locator("canvas.wb-lanes")
    assert "full stop follow it" in canvas.get_attribute("aria-label")
    canvas.focus()
    canvas.press("c")
    toggle = timeline.get_by_role("button", name="Critical path")
    assert toggle.get_attribute("aria-pressed") == "true"
    about = timeline.locator(".wb-about")
    canvas.press(".")
    first = about.inner_text()
    assert "Critical path on it" in " ".join(first.split())
    canvas.press(".")
    assert about.inner_text() != first
    canvas.press(",")
    assert about.inner_text() == first
