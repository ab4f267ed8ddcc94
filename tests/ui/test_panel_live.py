"""The panel in a real JupyterLab: run, cancel, error, restart, a saved and a loaded session."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ui.jupyter import LabServer, run_jupyter
from tests.ui.lab import HERE, RUN_SECONDS, Lab, lab_runs, lab_shows, notebook_of
from tests.ui.panel_pages import made_up_session, show_tab
from workbench.viz.panel.tabs.contents import TABS

PROGRAM = """\
import os, pathlib, sys
sys.path.insert(0, {here!r})
import workbench as wb
pathlib.Path("kernel.pid").write_text(str(os.getpid()))

def build(optimizations):
    import tensorflow as tf
    tf1 = tf.compat.v1
    if pathlib.Path("broken").exists():
        raise ValueError("no column named clicks")
    lines = tf.data.Dataset.range(1_000_000).batch(256).map(tf.strings.as_string)
    text = tf1.data.make_one_shot_iterator(lines).get_next()
    if optimizations.stage:
        text = wb.staged(text, optimizations.stage)
    table = tf1.get_variable("table", [1000, 16], use_resource=False)
    rows = tf.nn.embedding_lookup(table, tf.strings.to_hash_bucket_fast(text, 1000))
    loss = tf.reduce_mean(tf.nn.relu(tf.matmul(rows, tf1.get_variable("w", [16, 64]))) ** 2)
    return wb.Built(train_op=tf1.train.AdagradOptimizer(0.1).minimize(loss), loss=loss)

panel = wb.Workbench(build, budget_s=4, trace_steps=5)
panel"""
# runs code beside the cells, as a cell does
EXECUTE_JS = """(code) => {
  const { kernel } = window.jupyterapp.shell.currentWidget.context.sessionContext.session;
  kernel.requestExecute({ code });
}"""
RESTART_JS = """() =>
  window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()"""
# A widget that draws itself in its output once more.
REVIVED_JS = """() => {
  const output = document.querySelector(".jp-OutputArea-child:has(iframe)").nextElementSibling;
  output.querySelector(".jp-OutputArea-output").innerHTML = "<p>a living widget</p>";
}"""
LOADED = """\
import sys
sys.path.insert(0, {here!r})
import workbench as wb
panel = wb.Workbench(wb.load_session({folder!r}))
panel"""

IN_VIEW_JS = """(one) => {
  const { left, top, width, height } = one.getBoundingClientRect();
  const ends = [[left + 2, top + height / 2], [left + width - 2, top + height / 2]];
  return ends.every(([x, y]) => one.contains(document.elementFromPoint(x, y)));
}"""
# The notebook goes on until the head of the panel is out of its view.
SCROLL_ON_JS = """(one) => {
  const scrolls = (box) =>
    box.scrollHeight > box.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(box).overflowY);
  let box = one.parentElement;
  while (!scrolls(box)) box = box.parentElement;
  const head = one.parentElement.querySelector(".wbp-header").getBoundingClientRect();
  box.scrollTop += head.bottom - box.getBoundingClientRect().top + 60;
}"""

# tab, button, and what gives the same figure in a cell
CHARTS = (
    ("throughput", "Blocks in the order they ran", 'panel.runs[{}].comparison.plot("blocks")'),
    ("memory", "Memory over a step", "wb.memory(panel.runs[{}].measured.trace).plot()"),
    ("what_if", "Predicted gains", "panel.predictions.plot()"),
)

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="the runs train with TensorFlow"
    ),
]


def children(pid: int, *, deep: bool = True) -> set[int]:
    """The processes that a process started, and those below, that are still there."""
    parents = {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                parents[int(folder.name)] = int(fields[1])
    if not deep:
        return {child for child, parent in parents.items() if parent == pid}
    found, last = {pid}, set[int]()
    while found != last:
        last = set(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found - {pid}


def wait_until(true: Any, seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.1)


class Live:
    """A panel in a notebook, and its kernel."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.page = lab, lab.page
        self.page.wait_for_selector(".wbp[data-wb-ready]", timeout=RUN_SECONDS * 1000)
        self.panel = self.page.locator(".wbp").first
        self.folder = lab.path.parent
        self.pid = int((self.folder / "kernel.pid").read_text())
        self.idle = children(self.pid)

    def click_run(self) -> None:
        self.panel.locator(".wbp-strip .wbp-run").click()

    def run(self) -> None:
        """Clicks Run and waits until a child process is there."""
        self.click_run()
        self.panel.locator(".wbp-strip").get_by_role("button", name="Cancel").wait_for()
        wait_until(self.has_child, 120, "no child process was started")

    def has_child(self) -> bool:
        return bool(self.others())

    def others(self) -> set[int]:
        """The child processes of a run, but what they are forks of."""
        return children(self.pid) - self.idle - children(self.pid, deep=False)

    def ends(self) -> None:
        """Waits until the run has ended."""
        button = self.panel.locator(".wbp-strip").get_by_role("button", name="Cancel")
        button.wait_for(state="detached", timeout=RUN_SECONDS * 1000)

    def said(self) -> str:
        return str(self.panel.inner_text())


@pytest.fixture(scope="module")
def live(lab_context: Any, lab_server: LabServer) -> Iterator[Live]:
    source = PROGRAM.replace("{here!r}", repr(str(HERE)))
    notebook = notebook_of(lab_server.folder() / "panel.ipynb", [source])
    with lab_runs(lab_context, lab_server, notebook) as lab:
        lab.wait_until_done()
        lab.page.set_viewport_size({"width": 1500, "height": 1300})
        yield Live(lab)


@pytest.fixture
def ran(live: Live) -> Live:
    """Something was run in it, whichever tests share its process."""
    if not live.panel.locator("[data-run]").count():
        live.run()
        live.ends()
        show_tab(live.panel, "throughput")
        live.panel.locator("[data-run]").first.wait_for()
    return live


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_setting_runs_while_the_kernel_is_free(live: Live) -> None:
    page, panel = live.page, live.panel
    # The graph is known without a run: its shape, and where the boundary could lie.
    panel.locator(".wbp-shape").wait_for(timeout=60_000)
    assert panel.get_by_text("May run ahead", exact=True).is_visible()
    assert "Ids, preprocess" in panel.locator(".wbp-shape").inner_text()
    assert panel.get_by_role("button", name="Measure it (about").is_enabled()
    panel.locator("[data-group=stage] label", has_text="SmartStage").click()
    live.run()
    assert panel.get_by_role("progressbar").is_visible()
    assert panel.locator(".wbp-phase").count() > 3
    assert panel.locator(".wbp-phase[aria-current=step]").count() == 1
    # another cell answers meanwhile
    page.evaluate(
        EXECUTE_JS,
        "import pathlib; pathlib.Path('free').write_text(str(len(panel.runs)))",
    )
    wait_until((live.folder / "free").exists, 30, "the kernel is not free")
    assert panel.locator(".wbp-strip").get_by_role("button", name="Cancel").is_visible()
    # what the first run beside the baseline changed opens by itself
    pair = panel.locator("[data-pane=two_runs] [data-wb-pair]")
    pair.wait_for(timeout=RUN_SECONDS * 1000)
    live.ends()
    assert pair.locator("canvas.wb-lanes").count() == 2
    show_tab(panel, "throughput")
    assert panel.locator("[data-run]").count() == 2
    assert "SmartStage" in panel.locator("[data-run='2']").inner_text()
    news = panel.locator(".wbp-news").inner_text()
    assert news.startswith(("SmartStage trains", "SmartStage shows no clear difference"))
    assert "steps/s, measured" in live.said()
    wait_until(lambda: not live.others(), 10, "a child process is left")
    for key in TABS:
        assert show_tab(panel, key).inner_text().strip()
    show_tab(panel, "throughput")
    assert live.lab.own_errors() == []


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_charts_of_a_tab_are_plotly_figures_of_the_kernel(ran: Live) -> None:
    place = int(ran.panel.locator(".wbp-context select").input_value()) - 1
    for key, title, code in CHARTS:
        pane = show_tab(ran.panel, key)
        button = pane.get_by_role("button", name=title)
        if key == "what_if" and "Nothing is predicted" in pane.inner_text():
            assert button.count() == 0
            continue
        button.click()
        pane.locator(".wbp-figure .main-svg").first.wait_for(timeout=30_000)
        assert pane.locator(".wbp-figure .modebar-btn").count() > 1
        assert pane.locator(".wbp-charts + div code").inner_text() == code.format(place)
        button.click()
        assert pane.locator(".wbp-figure").count() == 0
    show_tab(ran.panel, "throughput")
    assert ran.lab.own_errors() == []


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_cancelled_run_ends_in_seconds_and_leaves_nothing(live: Live) -> None:
    live.run()
    begun = time.monotonic()
    live.panel.locator(".wbp-strip").get_by_role("button", name="Cancel").click()
    live.ends()
    print(f"cancelled after {time.monotonic() - begun:.1f} s")
    assert "Cancelled. Nothing was kept; no process is left." in live.said()
    assert children(live.pid) <= live.idle


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_an_error_of_the_users_code_shows_the_users_own_line(live: Live) -> None:
    (live.folder / "broken").touch()
    live.click_run()
    alert = live.panel.get_by_role("alert")
    alert.wait_for(timeout=RUN_SECONDS * 1000)
    assert "ValueError: no column named clicks" in alert.inner_text()
    assert "line 10" in alert.inner_text()
    alert.get_by_role("button", name="Show traceback").click()
    assert "Traceback" in alert.locator("pre").inner_text()
    assert live.panel.locator(".wbp-strip .wbp-run").is_enabled()
    (live.folder / "broken").unlink()
    wait_until(lambda: not live.others(), 10, "a child process is left")


@pytest.mark.timeout(RUN_SECONDS * 2)
@pytest.mark.parametrize(("width", "height"), [(1400, 950), (1200, 800)])
def test_the_strip_is_in_view_wherever_the_notebook_stands(
    ran: Live, width: int, height: int
) -> None:
    page, panel = ran.page, ran.panel
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("() => window.jupyterapp.commands.execute('filebrowser:activate')")
    page.locator(".jp-FileBrowser").wait_for()
    try:
        # A panel that is higher than the window, scrolled until its top is out of view.
        panel.evaluate("(one) => one.style.setProperty('--wbp-height', '1600px')")
        panel.locator(".wbp-main").evaluate(SCROLL_ON_JS)
        assert (
            panel.locator(".wbp-header").bounding_box()["y"]
            < page.locator(".jp-NotebookPanel-toolbar:visible").bounding_box()["y"]
        )
        strip = panel.locator(".wbp-strip")
        assert in_view(strip.locator(".wbp-run"))
        (ran.folder / "broken").touch()
        ran.click_run()
        bar = strip.get_by_role("progressbar")
        bar.wait_for()
        assert in_view(bar) and in_view(strip.get_by_role("button", name="Cancel"))
        alert = strip.get_by_role("alert")
        alert.wait_for(timeout=RUN_SECONDS * 1000)
        assert in_view(alert)
        strip.get_by_role("button", name="Report", exact=True).click()
        saved = strip.get_by_text("Report workbench-build.html, ")
        saved.wait_for(timeout=60_000)
        assert in_view(saved)
        assert str(ran.folder / "workbench-build.html") in strip.inner_text()
    finally:
        (ran.folder / "broken").unlink(missing_ok=True)
        panel.evaluate("(one) => one.style.removeProperty('--wbp-height')")
        page.set_viewport_size({"width": 1500, "height": 1300})


def in_view(one: Any) -> bool:
    """Whether the pointer would hit it where it stands, so that nothing hides it."""
    return bool(one.evaluate(IN_VIEW_JS))


@pytest.mark.slow
@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_child_that_dies_says_what_to_do(live: Live) -> None:
    live.run()
    for child in live.others():
        os.kill(child, signal.SIGKILL)
    alert = live.panel.get_by_role("alert")
    alert.get_by_text("(signal 9, probably memory)").wait_for(timeout=60_000)
    assert "Lower the batch or the capacity." in alert.inner_text()
    assert live.panel.locator(".wbp-strip .wbp-run").is_enabled()


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_saved_notebook_keeps_the_panel_alive_without_a_kernel(
    ran: Live, lab_context: Any, lab_server: LabServer
) -> None:
    kept = ran.page.locator(".jp-OutputArea-output:has(iframe)").first
    # it is drawn a second after a change, with every tab
    kept.wait_for(state="attached", timeout=60_000)
    assert not kept.locator("iframe").is_visible()
    saved = ran.lab.saved()
    del saved["cells"][1:]
    for output in saved["cells"][0]["outputs"]:
        # a view that is no widget's must not stand beside one in the same output
        kinds = set(output["data"]) - {"text/plain"}
        assert len(kinds) == 1
    assert len(json.dumps(saved)) < 300_000
    folder = lab_server.folder()
    (folder / "saved.ipynb").write_text(json.dumps(saved))
    run_jupyter(lab_server.scratch, "trust", folder / "saved.ipynb")
    with lab_shows(lab_context, lab_server, folder / "saved.ipynb") as watched:
        frame = watched.page.frame_locator("iframe").first
        panel = frame.locator(".wbp[data-wb-ready]")
        panel.wait_for(timeout=60_000)
        assert "The kernel is not connected. Views still work." in panel.inner_text()
        for key in TABS:
            assert show_tab(panel, key).inner_text().strip()
        assert panel.locator(".wbp-strip .wbp-run").is_disabled()
        # the widget beside it has no state, which the picture makes up for
        lost = watched.page.get_by_text("Error displaying widget: model not found")
        lost.wait_for(state="attached", timeout=60_000)
        lost.wait_for(state="hidden")
        watched.page.evaluate(REVIVED_JS)
        watched.page.get_by_text("a living widget").wait_for()


@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_restart_while_it_runs_leaves_no_child_and_is_said(ran: Live) -> None:
    show_tab(ran.panel, "timeline")
    show_tab(ran.panel, "throughput")
    ran.run()
    running = ran.others()
    ran.page.evaluate(RESTART_JS)
    words = "The kernel is not connected. Views still work."
    ran.panel.get_by_text(words).first.wait_for(timeout=60_000)
    wait_until(lambda: not any(map(alive, running)), 15, "a child process is left")
    assert ran.panel.locator(".wbp-strip .wbp-run").is_disabled()
    # what was drawn stays usable
    ran.panel.locator("[data-tab=timeline]").click()
    assert ran.panel.locator("[data-pane=timeline] canvas.wb-lanes").is_visible()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.timeout(RUN_SECONDS * 2)
def test_a_loaded_session_shows_everything_and_run_says_what_to_do(
    lab_context: Any, lab_server: LabServer
) -> None:
    folder = lab_server.folder()
    made_up_session().save(folder / "runs")
    source = LOADED.replace("{here!r}", repr(str(HERE)))
    source = source.replace("{folder!r}", repr(os.fspath(folder / "runs")))
    notebook = notebook_of(folder / "loaded.ipynb", [source])
    with lab_runs(lab_context, lab_server, notebook) as lab:
        lab.wait_until_done()
        lab.page.set_viewport_size({"width": 1500, "height": 1300})
        lab.page.wait_for_selector(".wbp[data-wb-ready]", timeout=60_000)
        panel = lab.page.locator(".wbp").first
        assert panel.locator("[data-run]").count() == 3
        show_tab(panel, "memory").get_by_role("button", name="Capture 30 steps").wait_for()
        panel.get_by_label("Run shown").select_option("1")
        for key in TABS:
            assert show_tab(panel, key).inner_text().strip()
        panel.locator(".wbp-strip .wbp-run").click()
        alert = panel.get_by_role("alert")
        alert.wait_for()
        assert "The session was loaded without its program" in alert.inner_text()
        assert "wb.load_session(directory, program)" in alert.inner_text()
        assert lab.own_errors() == []
