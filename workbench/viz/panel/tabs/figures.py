"""The plotly figures that tabs of the panel offer beside what they draw themselves."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.core.analysis.memory.memory import memory
from workbench.errors import OptionError, WorkbenchError
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.panel.tabs.contents import MEMORY, THROUGHPUT, WHAT_IF
from workbench.viz.panel.words import sentence

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# Plotly is imported once a figure is asked for.


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Offer:
    """A figure.

    Attributes:
      title: what the button says.
      plot: makes it of a run of a session, in the theme "light" or "dark".
      code: what gives it in a cell; "{place}" is the run's place in `panel.runs`.
      there: whether a run has it.
    """

    title: str
    plot: Callable[[Session, Run, str], Figure]
    code: str
    there: Callable[[Session, Run], bool] = lambda session, run: True


def _memory(_: Session, run: Run, theme: str) -> Figure:
    trace = run.measured.trace
    assert trace is not None
    return memory(trace).plot(theme=theme)


def _predictions(session: Session, _: Run, theme: str) -> Figure:
    assert session.predictions is not None
    return session.predictions.plot(theme=theme)


_OFFERS: Mapping[str, Mapping[str, _Offer]] = {
    THROUGHPUT: {
        "throughput": _Offer(
            title="Steps/s of this run and its baseline",
            plot=lambda _, run, theme: run.comparison.plot("throughput", theme=theme),
            code='panel.runs[{place}].comparison.plot("throughput")',
        ),
        "blocks": _Offer(
            title="Blocks in the order they ran",
            plot=lambda _, run, theme: run.comparison.plot("blocks", theme=theme),
            code='panel.runs[{place}].comparison.plot("blocks")',
        ),
    },
    MEMORY: {
        "memory": _Offer(
            title="Memory over a step",
            plot=_memory,
            code="wb.memory(panel.runs[{place}].measured.trace).plot()",
            there=lambda _, run: run.measured.trace is not None,
        )
    },
    WHAT_IF: {
        "predictions": _Offer(
            title="Predicted gains",
            plot=_predictions,
            code="panel.predictions.plot()",
            there=lambda session, _: bool(session.predictions and session.predictions.predicted),
        )
    },
}


def figures_of(session: Session, run: Run, tab: str) -> list[tuple[str, str]]:
    """(name, title) of each figure that a tab offers of a run."""
    offers = _OFFERS.get(tab, {}).items()
    return [(name, offer.title) for name, offer in offers if offer.there(session, run)]


def figure_answer(
    session: Session, run: Run, wish: Mapping[str, Any]
) -> tuple[dict[str, Any], list[bytes]]:
    """What the browser draws of a figure.

    Args:
      wish: "tab" and "name" of the figure, "theme", "width", which it will have in px, and
        "script", whether the page has nothing yet that draws figures.

    Returns:
      (plotly's JSON, its configuration and the code that gives it, or why there is none; the script
      where it is wanted).
    """
    try:
        found = _figure(session, run, wish)
    except WorkbenchError as error:
        return {"error": sentence(str(error))}, []
    return found, [_plotly_script()] if wish["script"] else []


def _figure(session: Session, run: Run, wish: Mapping[str, Any]) -> dict[str, Any]:
    from workbench.viz.charts import frame
    from workbench.viz.charts.chart import private

    tab, name = str(wish["tab"]), str(wish["name"])
    offer = _OFFERS.get(tab, {}).get(name)
    if offer is None or not offer.there(session, run):
        raise OptionError(f"run {run.number} has no chart {name!r} in this tab")
    figure = offer.plot(session, run, str(wish["theme"]))
    frame.fit_title(figure, int(wish["width"]))
    return {
        "figure": json.loads(figure.to_json()),
        "config": private({"responsive": True}),
        "code": offer.code.format(place=session.runs.index(run)),
    }


def _plotly_script() -> bytes:
    """What draws figures, the script of plotly's own package, as an ES module."""
    from plotly.offline import get_plotlyjs

    # It gives itself to a CommonJS module where there is one.
    return b"const module = { exports: {} };\n%s\nexport default module.exports;\n" % (
        get_plotlyjs().encode()
    )
