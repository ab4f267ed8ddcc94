"""PanelState: what an undo goes back to: toggles, the boundary, and the words of runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from workbench.experiments.session.run_edits import RunEdits


@dataclasses.dataclass(frozen=True, kw_only=True)
class PanelState:
    """Where a panel stands.

    Attributes:
      toggles: values of the traits that are toggles; "cut" is where the boundary was moved to.
      edits: names, notes, groups and deletions of runs.
    """

    toggles: Mapping[str, Any]
    edits: RunEdits
