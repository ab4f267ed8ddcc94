"""Parts of the sentences of findings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.core.analysis.findings.step_account import StepAccount
from workbench.number_words import counted, duration

_MOST_NAMES = 3


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence: "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def named(account: StepAccount, nodes: Sequence[int]) -> str:
    """The first of these nodes by name: "`a`, `b` and 4 others"."""
    quoted = [f"`{account.name[node]}`" for node in nodes[:_MOST_NAMES]]
    more = len(nodes) - len(quoted)
    return joined([*quoted, counted(more, "other")] if more else quoted)


def longest(account: StepAccount, nodes: Sequence[int], ns: np.ndarray) -> str:
    """The nodes with most of the time: "`a` (1.2 ms), `b` (0.30 ms)"."""
    first = nodes[:_MOST_NAMES]
    return joined([f"`{account.name[node]}` ({duration(ns[node])})" for node in first])
