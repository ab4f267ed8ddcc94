"""What bounds the steps of a trace, in a sentence or two."""

from __future__ import annotations

import pandas as pd

from workbench.core.analysis.critical_path import CriticalPath
from workbench.core.analysis.path.walk import OP, SEGMENT_KINDS
from workbench.viz.critical_path.step import median_step_ns
from workbench.viz.style import format

Pieces = tuple[tuple[str, bool], ...]

# What the path does while no op runs, as the end of "13 ms are …".
_WAITS = {
    "dispatch": "dispatch",
    "wait for a thread": "waits for a thread",
    "call of the step": "the call of the step",
    "return of the step": "the return of the step",
    "between steps": "between steps",
    "put": "the put into the buffer",
    "take": "the take from the buffer",
    "between stage runs": "between runs of the stage",
    "not traced": "not traced",
    "travel": "travel between tasks",
}
# A wait is named in the sentence from this share on.
_NAMED_SHARE = 0.02
# A mean this much above the median is worth a word.
_LIFTED = 1.25


def sentence(path: CriticalPath) -> Pieces:
    """What a step takes, what of it is ops, and what the largest waits are; they sum to it.

    Returns:
      (text, strong) pieces.
    """
    kinds = path.by_kind()
    sums = kinds.groupby("kind", sort=False)["ns"].sum().sort_values(ascending=False)
    ops = float(sums.get(SEGMENT_KINDS[OP], 0.0))
    waits = sums.drop(SEGMENT_KINDS[OP], errors="ignore")
    named = waits[waits >= _NAMED_SHARE * path.step_ns]
    parts = [(float(ns), _WAITS[str(kind)]) for kind, ns in named.items()]
    rest = float(waits.sum() - named.sum())
    if rest >= 0.5:
        parts.append((rest, "the rest" if parts else "waits between them"))
    pieces: list[tuple[str, bool]] = [
        ("A traced step takes ", False),
        (format.duration(path.step_ns), True),
        (f"{f', the mean of {format.integer(path.steps)}' if path.steps > 1 else ''}: ", False),
        (f"{format.duration(ops)} are ops", True),
        (f" on the critical path{_largest_family(path)}", False),
    ]
    if parts:
        pieces.append((f"; {_joined(parts)}", False))
    return (*pieces, (".", False), *_of_outliers(path), *_of_sides(path, kinds))


def _of_outliers(path: CriticalPath) -> Pieces:
    """That a few long steps lift the mean, where they do."""
    median = median_step_ns(path)
    if path.step_ns < _LIFTED * median:
        return ()
    typical = f" Half of the steps take at most {format.duration(median)}"
    return ((f"{typical}: a few long ones lift the mean.", False),)


def _largest_family(path: CriticalPath) -> str:
    families = path.by_family()
    if len(families) < 2:
        return f", all of them {families['family'].iloc[0]}" if len(families) else ""
    largest = families.iloc[0]
    most = "most of them" if largest["ns"] * 2 > families["ns"].sum() else "first of all"
    return f", {most} {largest['family']} ({format.duration(largest['ns'])})"


def _of_sides(path: CriticalPath, kinds: pd.DataFrame) -> Pieces:
    """Whether the stage is on the path; nothing of a trace without one."""
    if not len(path.trace.items):
        return ()
    staged = float(kinds.loc[kinds["side"] == "stage", "ns"].sum())
    if staged < 0.5:
        return ((" It never passes through the stage.", False),)
    share = staged / path.step_ns
    return (
        (" Of a step, ", False),
        (f"{format.duration(staged)} ({format.share(share)}) passes in the stage", True),
        (", which the step waits for.", False),
    )


def _joined(parts: list[tuple[float, str]]) -> str:
    words = [
        f"{format.duration(ns)}{'' if i else ' are'} {what}" for i, (ns, what) in enumerate(parts)
    ]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
