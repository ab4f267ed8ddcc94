"""For tests on busy machines: every replay of a trace counts as one that holds."""

from __future__ import annotations

import pytest

from workbench.core.prediction import replay
from workbench.core.what_if import base


def every_replay_holds(patch: pytest.MonkeyPatch) -> None:
    """However far off a replay is, predictions are made from it with their usual intervals."""
    patch.setattr(replay, "HOLDS", 100.0)
    patch.setattr(base, "FAR_OFF", 100.0)
