"""Toggles with choices in a browser: TensorFlow's and an author's own, and what they send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.builders.sessions import OFF, PROGRAM, measured
from tests.ui.panel_pages import (
    READY_JS,
    SIDEWAYS_JS,
    made_up_session,
    open_panel,
    write_panel_page,
)
from tests.ui.watched import Watched
from workbench.viz.panel.workbench import Workbench
from workbench.viz.style import assets

DIM = wb.Toggle("dim", [16, 32], help="Numbers of a row.")
LAYOUT = wb.Toggle("layout", ["rows first", "columns first", "interleaved by eight"])
# A model as a notebook hands it to the widget's script: it notes what the script sets.
MODEL_JS = """async ([script, state]) => {
  const listeners = {};
  const model = {
    state,
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; },
    save_changes() {},
    send() {},
    on: (name, call) => { (listeners[name] ||= []).push(call); },
    off() {},
  };
  window.answer = (said) => {
    state.said = said;
    for (const call of listeners.change) call();
  };
  window.model = model;
  window.heard = listeners;
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  const el = document.createElement("div");
  document.querySelector("main").append(el);
  widget.render({ model, el });
}"""


@pytest.fixture
def alive(watched: Watched, tmp_path: Path) -> Any:
    """A panel's script in a page, and the panel in Python that its setting is sent to."""
    made = Workbench(PROGRAM, toggles=[DIM, LAYOUT])
    page = watched.page
    address = tmp_path / "alive.html"
    address.write_text(
        f"<!doctype html><meta charset=utf-8><style>{assets.panel_style()}</style><main></main>"
    )
    page.goto(address.as_uri())
    names = [name for name in made.keys if not name.startswith("_")]
    state = json.loads(json.dumps({name: getattr(made, name) for name in names if name in SHARED}))
    page.evaluate(MODEL_JS, [assets.panel_script(), state])
    page.wait_for_function(READY_JS)
    yield made, page
    assert watched.errors == []


SHARED = {
    *("stage", "capacity", "threads", "thread_pool", "stale_lookups", "fusion", "executor"),
    *("inter_op_threads", "intra_op_threads", "batch_size", "cut", "chosen", "view", "said"),
    *("run_list", "shown", "base", "tab", "selected", "selected_table", "job", "saved", "status"),
    *("saved_path", "news", "shape", "learned"),
}


def sent(made: Workbench, page: Any) -> wb.Optimizations:
    """What the page's toggles say, once Python has them, which answers."""
    for name in ("chosen", "executor", "stage"):
        setattr(made, name, page.evaluate("(name) => model.state[name]", name))
    page.evaluate("(said) => answer(said)", json.loads(json.dumps(made.said)))
    return made.optimizations


def group(page: Any, toggle: str) -> Any:
    return page.locator(f"[data-group='chosen.{toggle}']")


def open_fold(page: Any, section: str) -> Any:
    fold = page.locator(f"[data-section={section}] .wbp-more > summary")
    fold.click()
    return fold


def test_the_setting_that_is_sent_has_a_stock_toggle_and_an_own_one(alive: Any) -> None:
    made, page = alive
    fold = open_fold(page, "tensorflow")
    more = f"More ({len(wb.toggles.STOCK)})"
    assert fold.inner_text() == more
    group(page, "xla").get_by_text("Clusters", exact=True).click()
    group(page, "dim").get_by_text("32").click()
    group(page, "layout").locator("select").select_option(label="columns first")
    group(page, "grappler").locator("select").select_option("no_memory_optimizer")
    assert fold.inner_text() == f"{more}, 2 switched"
    assert sent(made, page) == wb.Optimizations(
        chosen=(
            wb.toggles.XLA.at("clusters"),
            wb.toggles.GRAPPLER.at("no_memory_optimizer"),
            DIM.at(32),
            LAYOUT.at("columns first"),
        )
    )
    assert "both loss curves" in group(page, "dim").inner_text()
    # The usual choices are those of a setting that is all off.
    for toggle, usual in (("xla", "Off"), ("dim", "16")):
        group(page, toggle).get_by_text(usual, exact=True).click()
    group(page, "layout").locator("select").select_option("rows first")
    group(page, "grappler").locator("select").select_option("default")
    assert page.evaluate("model.state.chosen") == {}
    assert sent(made, page) == made.session.baseline


def test_what_excludes_each_other_is_greyed_with_the_reason(alive: Any) -> None:
    made, page = alive
    open_fold(page, "tensorflow")
    inline = page.locator("[data-group=executor] input[value=inline]")
    group(page, "caller_thread").get_by_text("On", exact=True).click()
    sent(made, page)
    assert inline.is_disabled()
    words = "an executor of Workbench's hands ops to threads itself"
    assert words in page.locator("[data-group=executor]").inner_text()
    told = "(one) => document.getElementById(one.getAttribute('aria-describedby')).textContent"
    assert words in inline.evaluate(told)
    open_fold(page, "workbench")
    more = page.get_by_role("button", name="Inter-op threads: more")
    assert more.is_disabled()
    group(page, "caller_thread").get_by_text("Off", exact=True).click()
    sent(made, page)
    assert inline.is_enabled() and more.is_enabled()
    page.locator("[data-group=executor]").get_by_text("Inline", exact=True).click()
    sent(made, page)
    assert group(page, "caller_thread").locator("input[value=on]").is_disabled()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page without a kernel, of a session that ran Grappler off and another dim."""
    session = made_up_session()
    others = [
        wb.Optimizations(chosen=(each,)) for each in (wb.toggles.GRAPPLER.at("off"), DIM.at(32))
    ]
    for setting in others:
        session.add(measured([OFF, setting]), [OFF, setting])
    return write_panel_page(tmp_path_factory.mktemp("toggles") / "page.html", session)


def test_a_page_without_a_kernel_says_what_choices_gave(watched: Watched, address: str) -> None:
    panel = open_panel(watched.page, address)
    assert panel.locator("[data-section]").evaluate_all(
        "(all) => all.map((one) => one.dataset.section)"
    ) == ["workbench", "tensorflow", "own"]
    group(panel, "dim").get_by_text("32", exact=True).click()
    said = panel.locator(".wbp-strip").inner_text()
    assert "steps/s, measured" in said and "1.25× all off" in said
    panel.get_by_role("button", name="Copy as Python").click()
    code = panel.get_by_label("Text to copy").inner_text()
    assert 'wb.Toggle("dim", [16, 32], help="Numbers of a row.").at(32)' in code
    assert "Dim 32" in panel.locator("table.wbp-runs").inner_text()
    assert watched.errors == []


@pytest.mark.parametrize("width", [390, 1400])
def test_open_folds_fit_into_the_page(watched: Watched, address: str, width: int) -> None:
    page = watched.page
    page.set_viewport_size({"width": width, "height": 900})
    panel = open_panel(page, address)
    if width == 390:
        panel.get_by_role("button", name="Edit toggles").click()
    for section in ("workbench", "tensorflow"):
        open_fold(panel, section)
    assert group(panel, "freed_memory").is_visible()
    assert page.evaluate(SIDEWAYS_JS) == 0
