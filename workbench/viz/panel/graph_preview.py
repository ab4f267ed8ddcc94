"""GraphPreview: has a program's graph built before anything has run, and tells its shape."""

from __future__ import annotations

from collections.abc import Callable

from workbench.experiments.session.background import Job
from workbench.experiments.session.session import Session
from workbench.experiments.worker.wire.messages import DescribedGraph
from workbench.viz.panel.job_view import failed
from workbench.viz.panel.shape import shape_html, shape_view
from workbench.viz.panel.tabs.contents import said
from workbench.viz.panel.words import sentence


class GraphPreview:
    """The graph of one session's baseline, built once in a child process.

    Attributes:
      job: what builds it; None as long as nobody asked.
    """

    def __init__(self, session: Session, show: Callable[[str], None]) -> None:
        """Nothing is built yet.

        Args:
          session: whose program it is.
          show: called with the shape as markup, or with what went wrong, on another thread.
        """
        self._session, self._show = session, show
        self.job: Job[DescribedGraph] | None = None
        self._cancelled = False

    def begin(self) -> None:
        """Has it built; does nothing the second time, after a run, or without a program."""
        if self.job is None and self._session.program is not None and not self._session.runs:
            self.job = self._session.start_graph(on_end=self._built)

    def cancel(self) -> None:
        """Ends what builds it, so that it takes no time from a run."""
        if self.job is not None and self.job.running:
            self.job.cancel()
            self.job, self._cancelled = None, True

    def go_on(self) -> None:
        """Begins again what a run has cancelled, where that left no run."""
        if self._cancelled:
            self._cancelled = False
            self.begin()

    def _built(self, job: Job[DescribedGraph]) -> None:
        """Called on the thread of the job."""
        if job.result is not None:
            self._show(shape_html(shape_view(job.result.boundary, job.result.problem)))
        elif job.error is not None and not job.cancelled:
            words = failed(job.error).error
            self._show(said(sentence(f"The graph is not known yet: {words}")))
