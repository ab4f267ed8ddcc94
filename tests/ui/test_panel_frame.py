"""The frame of the panel: its controls, its height, the strip, and panels beside each other."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.builders.sessions import PROGRAM, boundary, measured
from tests.builders.small_models import MODEL
from tests.ui.panel_pages import (
    made_up_session,
    open_panel,
    show_tab,
    write_panel_page,
    write_session_report,
)
from tests.ui.test_axe import AUDIT, AXE
from tests.ui.test_panel_toggles import MODEL_JS, SHARED
from tests.ui.watched import Watched
from workbench.experiments.measurement.progress_line import ProgressLine, ProgressState
from workbench.experiments.measurement.schedule import PhaseState
from workbench.viz.panel.job_view import JobView, failed, running
from workbench.viz.panel.shape import shape_html, shape_view
from workbench.viz.panel.tabs.contents import TABS
from workbench.viz.panel.view import run_list
from workbench.viz.panel.workbench import Workbench
from workbench.viz.style import assets

# What a reader may press or set, of what is shown.
CONTROLS_JS = """(root) => {
  const names = "button, input, select, textarea, summary, a[href], [tabindex='0']";
  const all = root.querySelectorAll(names);
  return [...all].filter((one) => one.checkVisibility()).map((one) => one.outerHTML.slice(0, 80));
}"""
SENT_JS = """() => {
  window.sent = [];
  model.send = (message) => sent.push(message);
}"""
CHANGE_JS = """(changed) => {
  Object.assign(model.state, changed);
  for (const call of heard.change) call();
}"""
# Each id once, and each name that one element gives another is there.
IDS_JS = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
  const lost = [];
  for (const name of ["aria-controls", "aria-describedby", "aria-labelledby"]) {
    for (const one of document.querySelectorAll(`[${name}]`)) {
      const given = one.getAttribute(name).split(" ");
      lost.push(...given.filter((id) => !ids.includes(id)).map((id) => `${name}=${id}`));
    }
  }
  return [twice, lost];
}"""
KERAS = wb.FunctionProgram(name="step", make=lambda: (None, None))
EVIDENCE = {
    "machine": "Other programs take 1.2 of 2 cores: intervals will be wide.",
    "left": "phase 5 of 7, about 50 s left",
    "evidence": {
        "rows": [
            {
                "label": "smart stage",
                "dots": [0.6, 0.7, 0.65],
                "low": 0.55,
                "at": 0.65,
                "high": 0.8,
                "words": "1.31× (1.10–1.60)",
                "verdict": "faster",
                "rounds": "3 of 8 rounds",
            }
        ],
        "one": 0.5,
        "first": "0.50×",
        "last": "2.00×",
        "final": False,
    },
}
ERROR = "`train.py`, line 41: ValueError: no column named clicks"


def alive(watched: Watched, home: Path, panels: list[Workbench], width: int = 1400) -> Any:
    """A page in which these panels live, each by a script of its own, as a notebook has them."""
    page = watched.page
    page.set_viewport_size({"width": width, "height": 950})
    address = home / "alive.html"
    address.write_text(
        f"<!doctype html><meta charset=utf-8><style>{assets.panel_style()}</style><main></main>"
    )
    page.goto(address.as_uri())
    for panel in panels:
        state = {name: getattr(panel, name) for name in panel.keys if name in SHARED}
        page.evaluate(MODEL_JS, [assets.panel_script(), json.loads(json.dumps(state))])
    count = "(panels) => document.querySelectorAll('.wbp .wbp-strip').length === panels"
    page.wait_for_function(count, arg=len(panels))
    page.evaluate(SENT_JS)
    return page.locator(".wbp").first


@pytest.fixture
def panel(watched: Watched, tmp_path: Path) -> Any:
    """A panel before anything has run, its shape known."""
    made = Workbench(PROGRAM)
    made.shape = shape_html(shape_view(boundary(MODEL)))
    yield alive(watched, tmp_path, [made])
    assert watched.errors == []


def change(panel: Any, **changed: Any) -> None:
    """What the kernel tells of a panel."""
    panel.page.evaluate(CHANGE_JS, json.loads(json.dumps(changed)))


def job(view: JobView) -> dict[str, Any]:
    return dataclasses.asdict(view)


def going(*lines: str) -> JobView:
    """A run that has said these lines."""
    words = ("Starting a child process", *lines)[-1]
    now = "Measure" if words.startswith("Block") else "Start"
    states = {"Start": "over", "Measure": "next"} | {now: "now"}
    phases = tuple(PhaseState(title=t, state=s, seconds=1.0) for t, s in states.items())
    return running(ProgressLine(words, ProgressState(phase=now, phases=phases)))


@pytest.mark.parametrize("program", [PROGRAM, KERAS], ids=["graph", "function"])
@pytest.mark.parametrize("width", [1400, 900])
def test_a_first_time_user_faces_few_controls(
    watched: Watched, tmp_path: Path, program: Any, width: int
) -> None:
    made = Workbench(program)
    made.shape = shape_html(shape_view(boundary(MODEL)))
    panel = alive(watched, tmp_path, [made], width)
    controls = panel.evaluate(CONTROLS_JS)
    assert 5 <= len(controls) <= 15, controls
    for name in ("Run", "Find the best", "Copy as Python"):
        assert panel.get_by_role("button", name=name, exact=True).is_visible()
    assert panel.get_by_role("button", name="Measure it (about").is_visible()


def test_before_a_run_it_shows_what_may_run_ahead(panel: Any) -> None:
    sides = panel.locator(".wbp-side")
    assert sides.nth(0).get_attribute("aria-label") == "May run ahead"
    assert sides.nth(0).locator("li").all_inner_texts()[0].startswith("Input, decode")
    assert sides.nth(1).get_attribute("aria-label") == "Stays in the step"
    assert "Boundary: 2 tensors" in panel.locator(".wbp-line").inner_text()
    panel.get_by_role("button", name="Measure it").click()
    assert [each["kind"] for each in panel.page.evaluate("sent")] == ["run"]


def test_the_panel_is_as_high_in_every_tab_as_before_it_ran(
    watched: Watched, tmp_path: Path
) -> None:
    empty = alive(watched, tmp_path, [Workbench(PROGRAM)]).bounding_box()["height"]
    shown = open_panel(watched.page, write_panel_page(tmp_path / "page.html", made_up_session()))
    heights = set()
    for width in (1400, 1000, 390):
        watched.page.set_viewport_size({"width": width, "height": 950})
        for key in TABS:
            show_tab(shown, key)
            heights.add(shown.bounding_box()["height"])
    assert heights == {empty}
    assert empty < 800


def test_its_height_is_changed_by_keys_and_by_the_pointer(panel: Any) -> None:
    handle = panel.get_by_role("separator", name="Height of the panel")
    before = panel.bounding_box()["height"]
    handle.focus()
    panel.page.keyboard.press("ArrowDown")
    assert panel.bounding_box()["height"] == before + 40
    assert handle.get_attribute("aria-valuenow") == str(round(before + 40))
    box = handle.bounding_box()
    panel.page.mouse.move(box["x"] + 200, box["y"] + 4)
    panel.page.mouse.down()
    panel.page.mouse.move(box["x"] + 200, box["y"] + 104)
    panel.page.mouse.up()
    assert panel.bounding_box()["height"] == pytest.approx(before + 140, abs=1)


@pytest.mark.parametrize("width", [1400, 1000])
def test_run_progress_error_and_report_stand_in_the_strip(
    watched: Watched, tmp_path: Path, width: int
) -> None:
    panel = alive(watched, tmp_path, [Workbench(PROGRAM)], width)
    strip = panel.locator(".wbp-strip")
    high = panel.bounding_box()["height"]
    strip.get_by_role("button", name="Run", exact=True).click()
    assert panel.page.evaluate("sent")[-1]["kind"] == "run"
    change(panel, job=job(going()))
    assert strip.get_by_role("button", name="Cancel").is_visible()
    assert strip.get_by_role("button", name="Find the best").is_hidden()
    change(panel, job=job(going("Warming up", "Block 9 of 24, 25 s left")))
    bar = strip.get_by_role("progressbar")
    assert bar.is_visible() and bar.get_attribute("aria-valuenow") == "33"
    assert strip.locator("[aria-current=step]").inner_text().startswith("Measure")
    assert "Block 9 of 24, 25 s left" in strip.inner_text()
    error = {**job(failed(ValueError(ERROR))), "details": "Traceback …"}
    change(panel, job=error)
    alert = strip.get_by_role("alert")
    assert ERROR in alert.inner_text()
    alert.get_by_role("button", name="Show traceback").click()
    assert alert.get_by_text("Traceback …").is_visible()
    change(panel, job=job(going()), news={})
    pieces = [["SmartStage trains ", False], ["1.49× as fast", True], [" as all off.", False]]
    change(panel, news={"pieces": pieces, "more": "Predicted was 1.62×.", "tab": ""})
    # The result stands there while the run goes on with predictions.
    assert bar.is_visible()
    assert "SmartStage trains 1.49× as fast as all off. Predicted was" in strip.inner_text()
    change(panel, job=job(failed(KeyboardInterrupt("Cancelled."), cancelled=True)), news={})
    assert "Cancelled." in strip.inner_text()
    change(panel, saved="Report report.html, 312 kB", saved_path="/home/me/report.html")
    assert "Report report.html, 312 kB\n/home/me/report.html" in strip.inner_text()
    assert strip.get_by_role("button", name="Copy path").is_visible()
    assert panel.bounding_box()["height"] == high


def test_a_kernel_that_is_gone_is_said_beside_the_last_news(
    watched: Watched, tmp_path: Path
) -> None:
    panel = alive(watched, tmp_path, [Workbench(PROGRAM)])
    change(panel, news={"pieces": [["All off is the baseline.", False]], "more": "", "tab": ""})
    panel.page.evaluate("() => { for (const call of heard['comm:close']) call(); }")
    words = panel.locator(".wbp-news").inner_text()
    assert words == ("All off is the baseline. The kernel is not connected. Views still work.")
    assert panel.locator(".wbp-run").is_disabled()


def test_rounds_and_a_busy_machine_are_drawn_while_they_run(
    watched: Watched, tmp_path: Path
) -> None:
    panel = alive(watched, tmp_path, [Workbench(PROGRAM)])
    change(panel, job={**job(going("Block 9 of 24, 25 s left")), **EVIDENCE})
    strip = panel.locator(".wbp-strip")
    assert "Other programs take 1.2 of 2 cores" in strip.inner_text()
    assert "about 50 s left" in strip.inner_text()
    assert strip.locator(".wbp-setting").inner_text() == "All off\nIt is being measured."
    assert strip.locator(".wbp-dot").count() == 3
    axis, interval, dot = (
        strip.locator(name).first.bounding_box() for name in (".wbp-axis", ".wbp-range", ".wbp-dot")
    )
    assert interval["width"] == pytest.approx(0.25 * axis["width"], abs=1)
    assert dot["x"] + 3 == pytest.approx(axis["x"] + 0.6 * axis["width"], abs=1)
    assert "1.31× (1.10–1.60), faster, 3 of 8 rounds" in strip.inner_text()


def test_the_strip_stays_where_the_page_scrolls(watched: Watched, tmp_path: Path) -> None:
    panel = alive(watched, tmp_path, [Workbench(PROGRAM)])
    panel.evaluate("(one) => one.style.setProperty('--wbp-height', '2000px')")
    panel.page.evaluate("() => scrollTo(0, 700)")
    assert panel.page.evaluate("scrollY") == 700
    assert panel.locator(".wbp-strip").bounding_box()["y"] == pytest.approx(0, abs=1)


def test_what_is_predicted_and_untried_is_a_click_away(watched: Watched, tmp_path: Path) -> None:
    made = Workbench(made_up_session())
    made.stage = "off"
    panel = alive(watched, tmp_path, [made])
    chip = panel.get_by_role("button", name="Try it: Stage: SmartStage, predicted +")
    chip.click()
    assert panel.page.evaluate("model.state.stage") == "smart"
    asked = panel.page.evaluate("sent")[-1]
    assert (asked["kind"], asked["values"]["stage"]) == ("run_when_free", "smart")


def show(panel: Any, made: Workbench) -> None:
    """The kernel answers what the page asked last: the findings of the first run."""
    asked = panel.page.evaluate("sent.findLast(({ kind }) => kind === 'content')")
    html = made._contents.of(made.runs[0], made.runs[0], "findings").html
    panel.page.evaluate(
        "(answer) => { for (const call of heard['msg:custom']) call(answer, []); }",
        {"kind": "content", "id": asked["id"], "run": 1, "html": html},
    )
    panel.locator(".wbf-row").first.wait_for()


def test_a_finding_is_a_card_that_can_be_tried(watched: Watched, tmp_path: Path) -> None:
    made = Workbench(made_up_session())
    panel = alive(watched, tmp_path, [made])
    change(panel, tab="findings", shown=1)
    show(panel, made)
    card = panel.locator(".wbf-row", has=panel.page.get_by_role("button", name="Try it")).first
    assert "Stage: SmartStage" in card.inner_text() and "predicted 2.05×" in card.inner_text()
    evidence = card.locator(".wbf-evidence").first
    assert evidence.is_hidden()
    card.get_by_text("Why?").click()
    assert evidence.is_visible()
    card.get_by_role("button", name="Try it: Stage, SmartStage").click()
    assert panel.page.evaluate("sent")[-1] == {"kind": "try", "toggle": "smart_stage", "run": 1}
    # Once it was tried, what it gave stands beside what was predicted.
    wishes = [wb.Optimizations(), wb.Optimizations(smart_stage=wb.SmartStageOptions())]
    made.session.add(measured(wishes), wishes)
    change(panel, run_list=run_list(made.session))
    show(panel, made)
    card = panel.locator(".wbf-row").first
    assert "measured 1.75× (" in card.inner_text() and "predicted 2.05×" in card.inner_text()
    card.get_by_role("button", name="Show run 4").click()
    assert panel.page.evaluate("model.state.shown") == 4


class TestBesideEachOther:
    def independent(self, panels: list[Any]) -> None:
        """Requires that no click in one changes another."""
        first, *others = panels
        first.locator("[data-group=executor] label", has_text="Inline").click()
        first.locator("[data-group=stage] label", has_text="SmartStage").click()
        assert first.locator("[data-group=executor] input:checked").get_attribute("value") == (
            "inline"
        )
        for other in others:
            for group, usual in (("stage", "off"), ("executor", "normal")):
                checked = other.locator(f"[data-group={group}] input:checked")
                assert checked.get_attribute("value") == usual

    def test_widgets_of_a_notebook(self, watched: Watched, tmp_path: Path) -> None:
        made = Workbench(PROGRAM)
        # Two views of one panel, too.
        alive(watched, tmp_path, [made, Workbench(PROGRAM), made])
        panels = watched.page.locator(".wbp").all()
        assert len(panels) == 3
        self.independent(panels)
        assert watched.page.evaluate(IDS_JS) == [[], []]
        assert watched.errors == []

    def test_panels_of_a_page(self, watched: Watched, tmp_path: Path) -> None:
        address = write_panel_page(tmp_path / "page.html", made_up_session(), panels=3)
        open_panel(watched.page, address)
        panels = watched.page.locator(".wbp").all()
        assert len(panels) == 3
        self.independent(panels)
        for one in panels:
            show_tab(one, "timeline")
            show_tab(one, "two_runs")
        panels[1].get_by_role("tab", name="Memory").click()
        selected = [one.locator("[aria-selected=true]").inner_text() for one in panels]
        assert selected == ["Before and after", "Memory", "Before and after"]
        for one in panels:
            show_tab(one, "throughput")
        panels[0].get_by_role("radio", name="Compare with run 2").check()
        for one in panels[1:]:
            assert one.get_by_role("radio", name="Compare with run 1").is_checked()
        assert watched.page.evaluate(IDS_JS) == [[], []]
        assert watched.errors == []

    def test_ids_of_a_report(self, watched: Watched, tmp_path: Path) -> None:
        watched.page.goto(write_session_report(tmp_path / "r.html", made_up_session()))
        for fold in watched.page.locator("details > summary").all():
            fold.click()
        assert watched.page.evaluate(IDS_JS) == [[], []]


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed; `make ui` gets it")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_audit_of_the_empty_panel_finds_nothing_serious(
    watched: Watched, tmp_path: Path, scheme: Any
) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    made = Workbench(PROGRAM)
    made.shape = shape_html(shape_view(boundary(MODEL)))
    panel = alive(watched, tmp_path, [made])
    watched.page.evaluate(
        "() => { document.documentElement.lang = 'en'; document.title = 'Panel'; }"
    )
    watched.page.evaluate(f"() => {{ {AXE.read_text('utf-8')} }}")
    assert watched.page.evaluate(AUDIT) == []
    change(panel, job={**job(going("Block 9 of 24, 25 s left")), **EVIDENCE})
    assert watched.page.evaluate(AUDIT) == []
    change(panel, job=job(failed(ValueError(ERROR))))
    assert watched.page.evaluate(AUDIT) == []
