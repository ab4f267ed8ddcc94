"""ProgressLine: a line of progress that also has its numbers."""

from __future__ import annotations

import dataclasses

from workbench.experiments.measurement.evidence import Evidence
from workbench.experiments.measurement.schedule import PhaseState


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgressState:
    """Where a wait stands.

    Attributes:
      phase: the title of the phase that goes on; "" where no phases are planned.
      phases: all of them, in their order.
      share: how much of the whole wait is over, 0 to 1; None where that is not known.
      left_s: seconds until all is over, about; None where that is not known.
      evidence: what the blocks so far say, a value for each variant.
      machine: what else the machine is busy with, a sentence; "" where it is quiet.
    """

    phase: str = ""
    phases: tuple[PhaseState, ...] = ()
    share: float | None = None
    left_s: float | None = None
    evidence: tuple[Evidence, ...] = ()
    machine: str = ""


class ProgressLine(str):
    """The text of a line of progress.

    Attributes:
      state: where the wait stands.
    """

    state: ProgressState

    def __new__(cls, text: str, state: ProgressState) -> ProgressLine:
        """A line with the numbers behind it."""
        line = super().__new__(cls, text)
        line.state = state
        return line


def state_of(text: str) -> ProgressState:
    """Where the wait stands by a line of progress; nothing is known of a plain text."""
    return text.state if isinstance(text, ProgressLine) else ProgressState()
