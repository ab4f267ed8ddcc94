"""The report in a real browser: from disk, offline, in both themes, at every width, on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders.comparisons import (
    SETTINGS,
    comparison,
    every_toggle_comparison,
    planned_comparison,
    variant,
)
from tests.builders.traces import staged_trace, unstaged_trace
from tests.ui.pages import each_width, open_page
from tests.ui.synthetic import dlrm_trace
from tests.ui.watched import Watched
from workbench.experiments.measurement.equivalence import other_losses
from workbench.viz.report import write_report

# Where words of a drawing begin, from the left edge of the drawing.
LEFT_JS = """(drawing) => {
  const left = drawing.getBoundingClientRect().left;
  const words = [...drawing.querySelectorAll("text")];
  return words.map((one) => one.getBoundingClientRect().left - left);
}"""
NASTY = "<script>window.hit = 1</script></script><img src=x onerror='window.hit = 1'>\u2028"


@pytest.fixture(scope="module")
def address(tmp_path_factory: Any) -> str:
    """A report of two comparisons, four timelines in all."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    measured = (
        variant("off", 39.8, 0.4, trace=dlrm_trace(12, producers=0)),
        variant("stage", 72.8, 0.8, trace=dlrm_trace(12)),
    )
    several = [
        comparison(variants=measured, settings={**SETTINGS, "input_latency_ms": latency})
        for latency in (0.0, 7.5)
    ]
    return write_report(several, path).as_uri()


@pytest.fixture(scope="module")
def planned(tmp_path_factory: Any) -> str:
    """A report with a plan."""
    path = tmp_path_factory.mktemp("planned") / "report.html"
    return write_report(planned_comparison(), path).as_uri()


def test_the_axis_of_losses_has_room_for_its_numbers(watched: Watched, tmp_path: Path) -> None:
    losses = np.linspace(4.187e-4, 3.747e-4, 50)
    check = other_losses("smart stage, 2 steps stale", losses, losses, 2)
    path = write_report(comparison(equivalence=(check,)), tmp_path / "report.html")
    watched.page.goto(path.as_uri())
    drawing = watched.page.locator(".wbr-losses")
    assert "0.0004187" in drawing.text_content()
    assert min(drawing.evaluate(LEFT_JS)) >= 0


def opened(shared: Watched, address: str, width: int = 1200, scheme: Any = "light") -> Any:
    """The page at a width and in a theme; read anew only where it is another page."""
    shared.page.set_viewport_size({"width": width, "height": 800})
    shared.page.emulate_media(color_scheme=scheme)
    if shared.page.url != address:
        open_page(shared.page, address)
    return shared.page


def test_it_opens_from_disk_without_a_network(watched: Watched, address: str) -> None:
    open_page(watched.page, address)
    lanes = watched.page.locator("canvas.wb-lanes")
    assert lanes.count() == 2
    # what is folded is drawn once it is opened
    watched.page.locator(".wbr-fold.wbr-result > summary").click()
    lanes.nth(3).wait_for()
    watched.page.wait_for_function("() => document.querySelectorAll('[data-wb-linked]').length > 1")
    assert lanes.count() == 4
    assert watched.errors == []
    assert watched.requests == [address]


@each_width
def test_it_never_scrolls_sideways(shared: Watched, address: str, width: int) -> None:
    page = opened(shared, address, width)
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_answer_is_the_first_thing_read(shared: Watched, address: str) -> None:
    first = opened(shared, address).locator("main").inner_text().splitlines()[0]
    assert "1.83× as fast as all off" in first


@pytest.mark.parametrize(("scheme", "ground"), [("light", 255), ("dark", 17)])
def test_it_follows_the_system_theme(
    shared: Watched, address: str, scheme: str, ground: int
) -> None:
    page = opened(shared, address, scheme=scheme)
    for element in ("html", "body"):
        color = page.locator(element).evaluate("e => getComputedStyle(e).backgroundColor")
        assert color == f"rgb({ground}, {ground}, {ground})"


def test_of_eight_settings_only_what_is_in_sight_is_drawn(watched: Watched, tmp_path: Path) -> None:
    every = every_toggle_comparison(dlrm_trace(30, producers=0), dlrm_trace(30))
    open_page(watched.page, write_report(every, tmp_path / "report.html").as_uri())
    assert watched.page.locator("canvas.wb-lanes").count() == 2
    assert watched.page.locator("[data-wb-timeline]").count() == 8


def test_paper_is_light_and_has_every_table_in_full(watched: Watched, address: str) -> None:
    watched.page.emulate_media(color_scheme="dark")
    open_page(watched.page, address)
    watched.page.emulate_media(media="print", color_scheme="dark")
    watched.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    body = watched.page.locator("body")
    assert body.evaluate("e => getComputedStyle(e).color") == "rgb(0, 0, 0)"
    assert watched.page.locator("details:not([open])").count() == 0
    assert watched.page.get_by_text("Steps/s of every block").first.is_visible()
    assert not watched.page.locator(".wb-tools").first.is_visible()


@each_width
def test_a_plan_is_drawn_in_it(watched: Watched, planned: str, width: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": 800})
    open_page(watched.page, planned)
    watched.page.get_by_text("Boundary: Smart stage").click()
    boundary = watched.page.locator("[data-wb-boundary]")
    boundary.get_by_role("button", name="noise RandomUniform").click()
    assert "It has state or effects of its own" in boundary.locator(".wbb-why").inner_text()
    assert watched.page.evaluate("document.documentElement.scrollWidth") == width
    assert watched.errors == []
    assert watched.requests == [planned]


def test_a_prediction_is_a_hollow_diamond_at_its_rate(shared: Watched, planned: str) -> None:
    page = opened(shared, planned)
    (diamond,) = page.locator(".wbr-bar .wbr-predicted").all()
    plot = page.locator(".wbr-throughput .wbr-bar").last.bounding_box()
    place = diamond.bounding_box()
    middle = place["x"] + place["width"] / 2 - plot["x"]
    assert middle == pytest.approx(plot["width"] * 1.95 * 39.8 / 100, abs=1)
    assert diamond.evaluate("e => getComputedStyle(e).fill") == "rgb(255, 255, 255)"


def test_bars_end_where_their_numbers_say(shared: Watched, address: str) -> None:
    table = opened(shared, address).locator(".wbr-throughput").first
    plot = table.locator(".wbr-bar").first.bounding_box()
    ends = [bar.bounding_box()["width"] for bar in table.locator(".wbr-bar rect").all()]
    assert ends == pytest.approx([plot["width"] * rate / 80 for rate in (72.8, 39.8)], abs=1)


def test_nothing_that_a_user_wrote_runs(watched: Watched, tmp_path: Path) -> None:
    unstaged = unstaged_trace(title=NASTY, step_nodes=((NASTY, NASTY),) * 4)
    nasty = comparison(
        program=NASTY,
        variants=(
            variant("off", 40, 1, trace=unstaged),
            variant(NASTY, 70, 1, trace=staged_trace(stage=NASTY, title=NASTY)),
        ),
        command=NASTY,
        environment={NASTY: NASTY},
        settings={NASTY: NASTY, "data": NASTY},
    )  # fmt: skip
    open_page(watched.page, write_report(nasty, tmp_path / "report.html").as_uri())
    assert watched.page.evaluate("window.hit") is None
    assert watched.page.locator("img").count() == 0
    assert watched.errors == []
    assert NASTY.strip("\u2028") in watched.page.locator(".wbr-command").text_content()
