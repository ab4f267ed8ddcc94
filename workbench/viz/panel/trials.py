"""What came of the toggles that findings name: predicted and measured beside the run."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.core.what_if.predictions import Predicted
from workbench.errors import WorkbenchError
from workbench.experiments.session.run import Run
from workbench.experiments.session.session import Session
from workbench.viz.findings.view import Trial
from workbench.viz.panel.settings.setting import setting_of
from workbench.viz.panel.settings.toggled import toggled
from workbench.viz.style import format


def trials_of(session: Session, run: Run, toggles: Iterable[str]) -> dict[str, Trial]:
    """By toggle, what the setting of a run with it is predicted to give, and gave.

    Args:
      session: its runs and predictions.
      run: beside which they are tried.
      toggles: their names on the command line.
    """
    return {toggle: _trial(session, run, toggle) for toggle in dict.fromkeys(toggles)}


def _trial(session: Session, run: Run, toggle: str) -> Trial:
    try:
        setting, _ = toggled(session, setting_of(run.optimizations), toggle)
    except WorkbenchError:
        # Another toggle of the run excludes it; trying it says so.
        return Trial()
    wish = setting.optimizations()
    before, after = session.predict(run.optimizations), session.predict(wish)
    predicted = ""
    if isinstance(before, Predicted) and isinstance(after, Predicted):
        predicted = format.ratio(after.ratio / before.ratio)
    tried = session.run_of(wish)
    ratio = session.ratio(tried, run) if tried else None
    if tried is None or ratio is None:
        return Trial(predicted=predicted)
    interval = format.ratio_range(ratio.low, ratio.high)
    return Trial(
        predicted=predicted, measured=f"{format.ratio(ratio.ratio)} ({interval})", run=tried.number
    )
