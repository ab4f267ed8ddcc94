"""Finding and Findings: what makes the steps of a trace slow, as values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pandas as pd

from workbench.core.analysis.limit.limit import Limit
from workbench.core.trace.trace import Trace
from workbench.display import Displayed


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Claim:
    """What one kind of finding says of a trace, before it is weighed against the others.

    Attributes:
      key, title, evidence, mend, toggle: as in Finding.
      share: float64 [pieces of the step account], which part of each piece it explains, 0 to 1.
      at_most_ns: more than this in a step cannot be gained; None where the trace cannot tell.
      nodes: rows of nodes, the most costly first.
      of_machine: whether other programs cause it, and not the step.
    """

    key: str
    title: str
    evidence: str
    mend: str
    share: np.ndarray
    at_most_ns: float | None
    toggle: str | None = None
    nodes: tuple[int, ...] = ()
    of_machine: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that makes a step slow.

    Attributes:
      key: which kind it is, such as "nothing_staged".
      title: what is wrong, in a few words.
      evidence: what the trace shows of it, with its numbers.
      cost_ns: time of a step that it explains. Costs of two findings may share time.
      gain_ns: what mending it gives a step at most; None where the trace cannot tell.
      wait_share: how much of the visible wait it explains, 0 to 1.
      is_cause: whether that is enough to call it the cause of the wait.
      mend: what to do.
      toggle: what `compare` calls the toggle that does it; None where a change of code does.
      nodes: names of the ops in question, the most costly first.
      sources: lines of the user's code that made them.
    """

    key: str
    title: str
    evidence: str
    cost_ns: float
    gain_ns: float | None
    wait_share: float
    is_cause: bool
    mend: str
    toggle: str | None = None
    nodes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """What bounds the steps.

    Attributes:
      bound: "input", "step", "both" (now the one, now the other) or "unknown".
      words: the same as a sentence, with the numbers that say so.
    """

    bound: str
    words: str


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Findings(Displayed):
    """What makes the steps of a trace slow, ranked: a cause first, then by cost.

    Attributes:
      trace: of which they are.
      steps: main steps in it.
      step_ns: time of one.
      verdict: what bounds the steps.
      findings: the ranked findings.
      wait_ns: time of a step in which its longest chain only waits: for a batch, for a thread, for
        the client.
      not_explained_ns: the part of it that no finding explains.
      fill: for each stage's buffer how full it is over time: stage, time_ns, count.
      limit: the steps against what the machine can do; None where that is not known.
    """

    trace: Trace
    steps: int
    step_ns: float
    verdict: Verdict
    findings: tuple[Finding, ...]
    wait_ns: float
    not_explained_ns: float
    fill: pd.DataFrame
    limit: Limit | None = None

    def __repr__(self) -> str:
        return f"Findings({', '.join(each.key for each in self.findings) or 'none'})"

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def df(self) -> pd.DataFrame:
        """One row for each finding, a column for each of its attributes."""
        names = [field.name for field in dataclasses.fields(Finding)]
        return pd.DataFrame([vars(each) for each in self.findings], columns=names)
