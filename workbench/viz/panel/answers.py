"""What a page is sent of a session's runs: a tab, a figure, what a moved boundary would give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.core.planning.stage_plan import StagePlan
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.before_after.html import before_after_pane
from workbench.viz.boundary.html import packed
from workbench.viz.panel.tabs.contents import Content, Contents
from workbench.viz.panel.tabs.drawn_boundaries import DrawnBoundaries
from workbench.viz.panel.tabs.figures import figure_answer, figures_of

# A message to the page, and what goes with it as bytes.
Answer = tuple[dict[str, Any], list[bytes]]


class Answers:
    """Answers to what a page asks; the boundaries that it was sent can be moved from then on."""

    def __init__(self, session: Session, contents: Contents) -> None:
        """No boundary was sent yet.

        Args:
          session: its runs.
          contents: what their tabs show.
        """
        self._session = session
        self._contents = contents
        self._boundaries = DrawnBoundaries()

    def tab(self, wish: Mapping[str, Any]) -> Answer:
        """What a tab shows.

        Args:
          wish: its "id", the numbers "run" and "base", and the key "tab".
        """
        run, base = (self._run(wish[name]) for name in ("run", "base"))
        tab = str(wish["tab"])
        content = self._contents.of(run, base, tab)
        answer = {
            "kind": "content",
            "id": wish["id"],
            "run": run.number,
            "figures": figures_of(self._session, run, tab),
            "lead": self._contents.lead(run, tab),
        }
        shown, buffers = self._shown(run, content)
        return {**answer, **shown}, buffers

    def figure(self, wish: Mapping[str, Any]) -> Answer:
        """A figure of a tab: of its "run", for its "id"; the rest of a wish as `figure_answer`."""
        answer, script = figure_answer(self._session, self._run(wish["run"]), wish)
        return {"kind": "figure", "id": wish["id"], **answer}, script

    def cuts(self, wish: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """What the boundary of "run" would give with its line at "leaves", better each time."""
        for known, final in self._boundaries.ask(int(wish["run"]), wish["leaves"]):
            yield {"kind": "told", "answer": known, "final": final}

    def move(self, wish: Mapping[str, Any]) -> tuple[str, str]:
        """Moves the line of the boundary of "run" to "leaves"; see `DrawnBoundaries.move`."""
        return self._boundaries.move(self._run(wish["run"]), wish["leaves"])

    def plan(self, number: int) -> StagePlan:
        """The plan of a run's boundary as it is drawn; see `DrawnBoundaries.plan`."""
        return self._boundaries.plan(number)

    def _run(self, number: Any) -> Run:
        return self._session.run_numbered(int(number))

    def _shown(self, run: Run, content: Content) -> Answer:
        if content.timeline is not None:
            header = content.timeline.to_json_header()
            return {"timeline": header}, [content.timeline.columns.buffer()]
        if content.pair is not None:
            headers = [each.to_json_header() for each in content.pair.timelines]
            buffers = [each.columns.buffer() for each in content.pair.timelines]
            return {"pair": headers, "html": before_after_pane(content.pair)}, buffers
        if content.boundary is not None:
            self._boundaries.draw(run.number, content)
            return {"boundary": True, "asks": True}, [packed(content.boundary)]
        return {"html": content.html}, []
