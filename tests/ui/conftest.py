"""A real browser for the tests of this folder, and what they all look at in it.

Without a browser the tests skip with a reason; with WORKBENCH_REQUIRE_UI=1 they fail instead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

import pytest

from tests.ui.jupyter import LabServer, jupyterlab
from tests.ui.watched import Watched

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NAMES = (
    # The same browser without its own windows: a page takes a third of the time.
    *("chromium-headless-shell", "chrome-headless-shell"),
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # No page reaches anything but the server that a test started.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


# The longest files, which begin first, so that no worker waits for them at the end.
_LONGEST = (
    *("test_panel_live", "test_jupyterlab", "test_saved_notebook", "test_notebook_keys"),
    *("test_axe", "test_panel_looks"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (*_LONGEST, item.path.stem).index(item.path.stem))


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright.Browser]:
    """A headless Chromium."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        reason = f"no browser found; looked for {', '.join(NAMES)} on the PATH"
        if os.environ.get("WORKBENCH_REQUIRE_UI") == "1":
            pytest.fail(f"WORKBENCH_REQUIRE_UI=1, but {reason}")
        pytest.skip(reason)
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def watched(browser: playwright.Browser) -> Iterator[Watched]:
    """A fresh page of 1200 px with the light theme, offline."""
    with _page(browser) as fresh:
        yield fresh


@pytest.fixture(scope="module")
def shared(browser: playwright.Browser) -> Iterator[Watched]:
    """The same for tests that only look; each sets the size and the theme that it looks at."""
    with _page(browser) as fresh:
        yield fresh


@contextlib.contextmanager
def _page(browser: playwright.Browser) -> Iterator[Watched]:
    context = browser.new_context(
        viewport={"width": 1200, "height": 800}, color_scheme="light", offline=True
    )
    yield Watched(context.new_page())
    context.close()


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A JupyterLab for the notebooks of all tests."""
    with jupyterlab(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="session")
def lab_context(browser: playwright.Browser) -> Iterator[playwright.BrowserContext]:
    """The pages of all notebooks: JupyterLab itself is read and compiled once."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    yield context
    context.close()
