"""What the panel says of a run that goes on or went wrong."""

from __future__ import annotations

import dataclasses
import math
import re

from workbench.experiments.measurement.evidence import Evidence
from workbench.experiments.measurement.progress_line import ProgressState, state_of
from workbench.viz.comparison.chart import shown_label
from workbench.viz.panel.evidence import EvidenceView, evidence_view, ratio_words, verdict_words
from workbench.viz.panel.words import begun

READY = "Ready. The kernel is free."
# The words of `measurement.progress`.
_BLOCK = re.compile(r"Block (\d+) of (\d+)")
_TRACEBACK = "Traceback of the child process:\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseView:
    """A phase of a run: its title, and whether it is "over", goes on "now" or is "next"."""

    title: str
    state: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobView:
    """Progress, or what went wrong.

    Attributes:
      running: whether a run goes on.
      share: how much of the whole wait is over, 0 to 1; None where that is not known.
      words: what it does, or what became of it.
      error: what went wrong, beginning with the user's own line; "" where nothing did.
      details: the whole traceback.
      phases: all of them, in their order; empty where none are planned.
      left_s: seconds until all is over, about; None where that is not known.
      left: the same in words, such as "phase 4 of 7, about 50 s left"; "" where it is not known.
      evidence: what the blocks so far say; None before the first round.
      result: the ratio once the last block is over, while the rest of the run goes on; "" before.
      machine: what else the machine is busy with, a sentence; "" where it is quiet.
    """

    running: bool = False
    share: float | None = None
    words: str = ""
    error: str = ""
    details: str = ""
    phases: tuple[PhaseView, ...] = ()
    left_s: float | None = None
    left: str = ""
    evidence: EvidenceView | None = None
    result: str = ""
    machine: str = ""


NOTHING = JobView()


def running(words: str) -> JobView:
    """A run that goes on, by its last line of progress."""
    state = state_of(words)
    block = _BLOCK.match(words)
    share = (int(block[1]) - 1) / int(block[2]) if block else None
    return JobView(
        running=True,
        share=share if state.share is None else state.share,
        words=str(words),
        phases=tuple(PhaseView(title=each.title, state=each.state) for each in state.phases),
        left_s=state.left_s,
        left=_left(state),
        evidence=evidence_view(state.evidence),
        result=_result(state.evidence),
        machine=state.machine,
    )


def failed(error: BaseException, *, cancelled: bool = False) -> JobView:
    """A run that ended without a result."""
    words = str(error) or type(error).__name__
    if cancelled:
        return JobView(words=words)
    notes = getattr(error, "__notes__", [])
    details = next((note for note in notes if note.startswith(_TRACEBACK)), "")
    return JobView(error=begun(words), details=details.removeprefix(_TRACEBACK))


def _left(state: ProgressState) -> str:
    if state.left_s is None or not state.phase:
        return ""
    places = [number for number, each in enumerate(state.phases, 1) if each.state == "now"]
    phase = f"phase {places[0]} of {len(state.phases)}, " if places else ""
    return f"{phase}about {math.ceil(state.left_s)}\u00a0s left"


def _result(evidence: tuple[Evidence, ...]) -> str:
    """The best ratio of a measurement whose blocks are over."""
    if not evidence or not all(each.final for each in evidence):
        return ""
    best = max(evidence, key=lambda each: each.interval.value)
    return f"{shown_label(best.label)}: {ratio_words(best)}, {verdict_words(best)}"
