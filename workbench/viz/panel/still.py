"""The panel as a notebook keeps it: its last state, with every tab of the run that is shown."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from IPython.display import display

from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.kept_picture import DATA_BYTES, frame_page, framed_html
from workbench.viz.panel.page import panel_html, panel_page, still_html
from workbench.viz.panel.tabs.contents import Contents
from workbench.viz.panel.tabs.runs import runs_view
from workbench.viz.style import assets

# What a notebook keeps of a panel, and the shares of `DATA_BYTES` that its timeline may have; many
# runs leave it less.
MOST_BYTES = 280_000
_SHARES = (2, 4, 8, 16)
NOTHING_RAN = "Nothing has run. Run measures the setting of the toggles."
# Seconds without a change until it is drawn anew.
_DRAW_AFTER_S = 1.0


class DisplayedStill:
    """The picture of a panel beside it in the notebook, which follows its state."""

    def __init__(self, bundle: Callable[[], dict[str, str]], busy: Callable[[], bool]) -> None:
        """Nothing is displayed yet.

        Args:
          bundle: draws it: by MIME type.
          busy: whether a run goes on, which drawing would slow; its end has it drawn.
        """
        self._bundle, self._busy = bundle, busy
        self._handle: Any = None
        self._timer: threading.Timer | None = None

    def display(self) -> None:
        """Puts it below the cell that runs."""
        self._handle = display(self._bundle(), raw=True, display_id=True)

    def draw_soon(self) -> None:
        """Draws it anew where it was displayed, on a thread: with every tab it takes seconds."""
        if self._handle is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(_DRAW_AFTER_S, self._draw)
        self._timer.daemon = True
        self._timer.start()

    def _draw(self) -> None:
        if self._busy():
            return
        self._handle.update(self._bundle(), raw=True)


def panel_still(
    session: Session,
    contents: Contents,
    run: Run | None,
    base: Run | None,
    view: Mapping[str, Any],
    state: Mapping[str, Any],
    settings: Iterable[Mapping[str, Any]],
) -> tuple[str, str]:
    """The panel as HTML, alive in a frame where scripts may run, and as text.

    Args:
      session: its runs.
      contents: what their tabs show.
      run, base: what is shown, and the baseline; None before the first run.
      view, state, settings: as of `PanelPage`.
    """
    if run is None or base is None:
        words = f"Workbench, {html.escape(session.name)}: {NOTHING_RAN}"
        return f"<p>{words}</p>", f"Workbench: {NOTHING_RAN}"
    still, known, title = still_html(contents, run, base), list(settings), session.name
    for share in _SHARES:
        page = panel_page(session, contents, view, state, known, [run], base, DATA_BYTES // share)
        body = panel_html(page, "wb-panel")
        alive = frame_page(body, assets.panel_style(), assets.panel_frame_script())
        picture = framed_html(still, alive, f"Workbench: {title}")
        if len(picture) <= MOST_BYTES:
            break
    return picture, panel_text(session, run, base)


def panel_text(session: Session, run: Run, base: Run) -> str:
    """The runs as text: what is shown of one, and a line for each."""
    shown = runs_view(session, run, base)
    lines = ["".join(text for text, _ in shown.sentence), ""]
    for each in shown.rows:
        row = each.row
        lines.append(
            f"{each.number:>3}  {row.label:<44} {row.rate} {row.half} steps/s  "
            f"{row.ratio} {row.interval}  {row.verdict}".rstrip()
        )
    return "\n".join(lines) + "\n"
