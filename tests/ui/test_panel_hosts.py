"""The kept picture of a panel by the rules of other hosts: VS Code, Colab and GitHub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ui.panel_pages import made_up_session, open_panel, show_tab, write_panel_page
from tests.ui.pixels import painted
from tests.ui.test_saved_notebook import ALIVE_JS, GITHUB_JS, VSCODE_CSP, VSCODE_JS
from tests.ui.watched import Watched
from workbench.viz.panel.tabs.contents import TABS
from workbench.viz.panel.workbench import Workbench


@pytest.fixture(scope="module")
def kept() -> str:
    """What a notebook saves of a panel that shows its first run."""
    panel = Workbench(made_up_session())
    panel.shown = 1
    return panel._still_bundle()["text/html"]


def test_it_is_alive_by_the_rules_of_vscode(watched: Watched, tmp_path: Path, kept: str) -> None:
    page = watched.page
    view = tmp_path / "view.html"
    view.write_text(
        f'<meta http-equiv="Content-Security-Policy" content="{VSCODE_CSP}">'
        '<body class="vscode-dark" data-vscode-theme-kind="vscode-dark">'
    )
    page.goto(view.as_uri())
    page.evaluate(VSCODE_JS, [kept])
    page.wait_for_function(ALIVE_JS, arg=1, timeout=30_000)
    panel = page.frame_locator("iframe").locator(".wbp[data-wb-ready]")
    for key in TABS:
        assert show_tab(panel, key).inner_text().strip()
    # the theme of the editor, though the system prefers the light one
    found = painted(page.locator("iframe"))
    assert found["#111111"] > found.get("#ffffff", 0)
    # as tall as what it shows: nothing scrolls in the frame
    sizes = "(one) => [one.offsetHeight, one.contentDocument.documentElement.scrollHeight]"
    height, inner = page.locator("iframe").evaluate(sizes)
    assert abs(height - inner) <= 1
    assert watched.errors == []


def test_words_and_numbers_survive_the_rules_of_github(watched: Watched, kept: str) -> None:
    page = watched.page
    page.set_content("<!doctype html><body style='width: 980px'></body>")
    page.evaluate(GITHUB_JS, [kept])
    output = page.locator(".output")
    words = output.inner_text()
    for wanted in ("All off is the baseline", "My stage, 1 thread", "faster", "slower"):
        assert wanted in words
    assert output.locator("table").count() >= 1
    assert output.locator("img").count() >= 1


HOSTS = {
    "JupyterLab": ("body", "data-jp-theme-light", "false", "true"),
    "VS Code": ("body", "data-vscode-theme-kind", "vscode-dark", "vscode-light"),
    "marimo": ("body", "data-theme", "dark", "light"),
    "Colab": ("html", "theme", "dark", "light"),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with nothing but the panel."""
    return write_panel_page(tmp_path_factory.mktemp("hosts") / "page.html", made_up_session())


@pytest.mark.parametrize("host", HOSTS)
def test_it_follows_the_theme_of_its_host(watched: Watched, address: str, host: str) -> None:
    page = watched.page
    panel = open_panel(page, address)
    where, name, *themes = HOSTS[host]
    ground: list[Any] = []
    for value in themes:
        page.locator(where).evaluate(f"(one) => one.setAttribute({name!r}, {value!r})")
        page.wait_for_timeout(50)
        shown = panel.evaluate(
            "(one) => [one.dataset.wbTheme, getComputedStyle(one).backgroundColor]"
        )
        ground.append(shown)
    assert ground == [["dark", "rgb(17, 17, 17)"], ["light", "rgb(255, 255, 255)"]]
