"""What has just happened in a panel, in a sentence: how a run came out, or what a search found."""

from __future__ import annotations

from typing import Any

from workbench.core.what_if.predictions import Predicted
from workbench.experiments.search.best import Best
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.panel.tabs.contents import WHAT_IF
from workbench.viz.panel.tabs.runs import result_sentence
from workbench.viz.search.view import answer_of, spent_of
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain

# Runners-up that the answer of a search names.
_MOST = 3
Pieces = tuple[tuple[str, bool], ...]


def news_of_run(session: Session, run: Run, base: Run) -> dict[str, Any]:
    """How a run stands to the baseline, and what was predicted of it.

    Args:
      session: its predictions.
      run: what was run.
      base: what it is compared with.
    """
    more = ""
    predicted = session.predict(run.optimizations)
    if run.number != base.number and not run.is_baseline and isinstance(predicted, Predicted):
        interval = format.ratio_range(predicted.low, predicted.high)
        more = f"Predicted was {format.ratio(predicted.ratio)} ({interval})."
    return _news(result_sentence(session, run, base), more)


def news_of_search(best: Best) -> dict[str, Any]:
    """The answer of a search, its runners-up, and how many settings it measured."""
    others = [each for each in best.runners_up if each.optimizations != best.baseline][:_MOST]
    names = ", ".join(f"{plain(each.label)} {format.ratio(each.ratio)}" for each in others)
    more = f"Runners-up: {names}. " if names else ""
    return _news(answer_of(best), more + spent_of(best), tab=WHAT_IF)


def _news(pieces: Pieces, more: str, tab: str = "") -> dict[str, Any]:
    """What the page draws.

    Args:
      pieces: the sentence, as (text, strong).
      more: what stands behind it.
      tab: the tab that has the rest; "" where none has.
    """
    return {"pieces": [list(each) for each in pieces], "more": more, "tab": tab}
