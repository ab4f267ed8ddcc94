"""Views as a converted notebook shows them, below each other, on screen and on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.views import OUTLETS
from tests.ui.jupyter import run_jupyter
from tests.ui.lab import notebook_of
from tests.ui.test_fragments import OVER, page_of
from tests.ui.watched import Watched

A4 = 718  # px, between the margins that Chromium leaves
# Of everything in a view: what it is, and where it stands in it.
INSIDE = """(root) => {
  const { x: left, y: top } = root.getBoundingClientRect();
  return [...root.querySelectorAll("*")].map((one) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    const { fontSize, fontWeight, textAlign, color } = getComputedStyle(one);
    const box = [x - left, y - top, width, height].map(Math.round);
    return [one.outerHTML.slice(0, 80), ...box, fontSize, fontWeight, textAlign, color];
  });
}"""


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A notebook with every view, that nbconvert made a page of; nothing is executed."""
    folder = tmp_path_factory.mktemp("views")
    path = notebook_of(folder / "views.ipynb", list(OUTLETS))
    content = json.loads(path.read_text("utf-8"))
    for cell, make in zip(content["cells"], OUTLETS.values(), strict=True):
        data = {"text/plain": "", "text/html": make()}
        output = {"output_type": "execute_result", "execution_count": 1, "metadata": {}}
        cell["outputs"] = [{**output, "data": data}]
    path.write_text(json.dumps(content))
    run_jupyter(folder, "nbconvert", "--to", "html", path, "--output", "views")
    return (folder / "views.html").as_uri()


def views_of(shared: Watched, address: str, width: int) -> list[Any]:
    shared.page.set_viewport_size({"width": width, "height": 900})
    if shared.page.url != address:
        shared.page.goto(address, wait_until="domcontentloaded")
    return list(shared.page.locator(".jp-OutputArea-output .wb").all())


def test_a_notebooks_page_changes_no_view(shared: Watched, converted: str, tmp_path: Path) -> None:
    views = views_of(shared, converted, 1100)
    assert len(views) == len(OUTLETS)
    width = views[0].bounding_box()["width"]
    shown = [view.evaluate(INSIDE) for view in views]
    (tmp_path / "page.html").write_text(page_of(*OUTLETS, width=width), "utf-8")
    shared.page.goto((tmp_path / "page.html").as_uri())
    plain = [view.evaluate(INSIDE) for view in shared.page.locator(".wb").all()]
    for name, ours, theirs in zip(OUTLETS, plain, shown, strict=True):
        # letters of the notebook's own font have widths of their own
        assert [each[5:] for each in theirs] == [each[5:] for each in ours], name
        assert [each[1] for each in theirs[:2]] == [0, 0], name


def test_on_paper_all_of_a_view_is_within_the_page(shared: Watched, converted: str) -> None:
    views = views_of(shared, converted, A4)
    shared.page.emulate_media(media="print")
    found = {name: view.evaluate(OVER) for name, view in zip(OUTLETS, views, strict=True)}
    folded = shared.page.locator(".wb details:not(.wbq-all) > :not(summary)").all()
    hidden = [one.inner_text()[:40] for one in folded if not one.is_visible()]
    predictions = views[list(OUTLETS).index("predictions")]
    names = predictions.locator(".wbq-list tbody tr:visible").count()
    shared.page.emulate_media(media="screen")
    assert found == {name: [] for name in OUTLETS}
    assert folded and hidden == []
    assert names == 27
