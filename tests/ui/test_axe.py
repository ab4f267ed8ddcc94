"""Nothing serious to complain of for those who read by keyboard or by ear, in both themes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders.comparisons import planned_comparison
from tests.builders.plans import towers
from tests.builders.views import FRAGMENTS, OUTLETS
from tests.ui.pages import await_drawn, open_page, write_boundary_page, write_page
from tests.ui.synthetic import dlrm_trace
from tests.ui.watched import Watched
from workbench.core.planning.planner import plan_stages
from workbench.viz.boundary.view import boundary_view
from workbench.viz.report import write_report
from workbench.viz.style import assets, bundle
from workbench.viz.timeline.view import timeline_view

AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"
LOOKS = (("light", 1200), ("dark", 1200), ("light", 390))
# [rule, impact, where] of what counts.
AUDIT = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, impact, nodes }) => nodes.map((one) => [id, impact, one.html.slice(0, 160)]));
}"""
LINK = """for (const root of document.querySelectorAll(".wb-view")) {
  linkPane(root, { signal: new AbortController().signal });
  const first = root.querySelector("[data-node]");
  if (first) markNode(root, first.dataset.node);
}"""

pytestmark = pytest.mark.skipif(
    not AXE.is_file(), reason="axe-core is not installed; `make ui` gets it with npm"
)


def write(path: Path, body: str, script: str = "") -> str:
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Views</title>'
        "<style>:root { color-scheme: light dark } body { background: light-dark(#fff, #111) }"
        f"</style></head><body><main>{body}</main><script>{script}</script></body></html>",
        "utf-8",
    )
    return path.as_uri()


def linked(path: Path) -> str:
    """Every view of a panel, with its buttons, one op marked."""
    script = bundle.joined(["shared/linking.js"], LINK)
    views = "".join(
        f'<section aria-label="{name}">{make()}</section>' for name, make in FRAGMENTS.items()
    )
    style = f"<style>{assets.views_style()}</style>"
    return write(path, f'{style}<div class="wb">{views}</div>', script)


def still(path: Path) -> str:
    """A report as it stands before its scripts have run."""
    write_report(planned_comparison(), path)
    page = re.sub(r"<script.*?</script>", "", path.read_text("utf-8"), flags=re.DOTALL)
    path.write_text(re.sub(r" data-wb-(boundary|timeline)=", " data-still=", page), "utf-8")
    return path.as_uri()


PAGES = {
    "still report": still,
    "report": lambda path: write_report(planned_comparison(), path).as_uri(),
    "timeline": lambda path: write_page(path, timeline_view(dlrm_trace(12))),
    "boundary": lambda path: write_boundary_page(path, boundary_view(plan_stages(towers()))),
    "linked views": linked,
    **{name: lambda path, outlet=outlet: write(path, outlet()) for name, outlet in OUTLETS.items()},
}


@pytest.mark.parametrize("name", PAGES)
def test_an_audit_finds_nothing_serious(watched: Watched, tmp_path: Path, name: Any) -> None:
    page = watched.page
    found = {}
    address = PAGES[name](tmp_path / "page.html")
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        open_page(page, address)
        page.evaluate("() => document.querySelectorAll('details').forEach((d) => (d.open = true))")
        await_drawn(page)
        page.evaluate(f"() => {{ {AXE.read_text('utf-8')} }}")
        found[scheme, width] = page.evaluate(AUDIT)
    assert found == {look: [] for look in LOOKS}
