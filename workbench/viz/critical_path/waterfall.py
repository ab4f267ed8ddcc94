"""The waterfall of a step: its chain of ops and waits, merged into a few bars."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd

from workbench.core.analysis.critical_path import CriticalPath
from workbench.core.analysis.path.walk import OP, SEGMENT_KINDS, TRAVEL
from workbench.core.graph.op_families import CONTROL, families_of
from workbench.viz.critical_path.merging import FILLER, Group, merged
from workbench.viz.critical_path.step import ShownStep
from workbench.viz.style import colors, format

MOST_BARS = 18
# What lasts less than one part of so many of a step joins its neighbor.
_LEAST_PART = 250
# Ops that pass values on, or hold them: what they cost is not what a step does.
FILLER_OPS = frozenset(
    {"Const", "_HostConst", "_Arg", "_Retval", "Placeholder", "VariableV2", "VarHandleOp"}
    | {"Identity", "IdentityN", "NoOp", "ControlTrigger", "StopGradient", "PreventGradient"}
    | {"Enter", "Exit", "Switch", "Merge", "NextIteration", "LoopCond"}
)
_OF_STAGE = 100
_OF_LOOP = re.compile(r"while(_\d+)?|body|cond|_\d+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar.

    Attributes:
      name: short. more: how many other ops are in it, in words. title: both in full.
      node: the op that it is named after; "" of a wait.
      family: number of the op family, or colors.WAIT.
      ns: how long it lasts; time: the same in words. left, width: fractions of the step.
      detail: what else is in it, such as "0.6 ms waits"; else empty.
    """

    name: str
    more: str
    title: str
    node: str
    family: int
    ns: int
    time: str
    left: float
    width: float
    detail: str


def waterfall(path: CriticalPath, step: ShownStep) -> tuple[Bar, ...]:
    """The bars of a step, by time; each begins where the one before ends, and none is left out."""
    chain = _Chain(path.trace.nodes, step, _kinds(path.trace.nodes, step.segments))
    durations = step.segments["dur_ns"].to_numpy(np.int64)
    least = step.duration_ns // _LEAST_PART
    groups = merged(durations.tolist(), chain.kinds.tolist(), MOST_BARS, least)
    begins = np.concatenate(([0], np.cumsum(durations)))
    return tuple(_bar(chain, group, int(begins[group.first])) for group in groups)


@dataclasses.dataclass(frozen=True)
class _Chain:
    """The segments of a step, and a class for each."""

    nodes: pd.DataFrame
    step: ShownStep
    kinds: np.ndarray

    def of(self, group: Group) -> tuple[pd.DataFrame, np.ndarray]:
        """The segments of a group, and which of them are of its class."""
        part = slice(group.first, group.last)
        return self.step.segments.iloc[part], self.kinds[part] == group.kind


def _kinds(nodes: pd.DataFrame, segments: pd.DataFrame) -> np.ndarray:
    """For each segment a number of its op family, or of what is waited for, on its side."""
    family = families_of(nodes["op"].tolist(), nodes["name"].tolist()).astype(np.int64)
    family[nodes["op"].isin(FILLER_OPS).to_numpy(bool)] = FILLER
    node = segments["node"].to_numpy(np.int64)
    numbers = {name: colors.WAIT + i for i, name in enumerate(SEGMENT_KINDS)}
    kinds = segments["kind"].map(numbers).to_numpy(np.int64, copy=True)
    ops = (segments["kind"] == SEGMENT_KINDS[OP]).to_numpy(bool)
    kinds[ops] = family[node[ops]]
    staged = (segments["side"] == "stage").to_numpy(bool) & (kinds != FILLER)
    return kinds + _OF_STAGE * staged


def _bar(chain: _Chain, group: Group, begin: int) -> Bar:
    side = "in the stage" if group.kind >= _OF_STAGE else ""
    kind = group.kind % _OF_STAGE if group.kind != FILLER else CONTROL
    waits = kind >= colors.WAIT
    node = "" if waits else _longest_op(chain, group)
    name, more, title = _wait_words(chain, group) if waits else _op_words(chain, group, node)
    whole = chain.step.duration_ns
    return Bar(
        name=name,
        more=more,
        title=title,
        node=node,
        family=colors.WAIT if waits else kind,
        ns=group.duration,
        time=format.duration(group.duration),
        left=begin / whole,
        width=group.duration / whole,
        detail=", ".join(filter(None, (side, _rest(group, waits)))),
    )


def _rest(group: Group, waits: bool) -> str:
    """How much of a bar of ops is waits, or the other way round, where that is worth a word."""
    other = sum(
        time
        for kind, time in group.times.items()
        if (kind != FILLER and kind % _OF_STAGE >= colors.WAIT) != waits
    )
    if other * 20 < group.duration:
        return ""
    return f"{format.duration(other)} {'ops' if waits else 'waits'}"


def _longest_op(chain: _Chain, group: Group) -> str:
    """The op of the bar's family that takes longest."""
    segments, own = chain.of(group)
    sums = np.bincount(segments["node"].to_numpy()[own], segments["dur_ns"].to_numpy()[own])
    return str(chain.nodes["name"].iloc[int(sums.argmax())])


def _op_words(chain: _Chain, group: Group, name: str) -> tuple[str, str, str]:
    """An op of the bar, and how many others there are."""
    segments, _ = chain.of(group)
    ops = segments[(segments["kind"] == SEGMENT_KINDS[OP]).to_numpy(bool)]
    filler = chain.nodes["op"].isin(FILLER_OPS).to_numpy(bool)[ops["node"].to_numpy()]
    others = int(ops[~filler]["event"].nunique()) - 1
    more = f"and {format.integer(others)} more" if others > 0 else ""
    return short_name(name), more, f"{name} {more}".rstrip()


def _wait_words(chain: _Chain, group: Group) -> tuple[str, str, str]:
    """What is waited for, and before which op the longest."""
    segments, own = chain.of(group)
    row = int(np.where(own, segments["dur_ns"].to_numpy(), -1).argmax())
    name, node = str(segments["kind"].iloc[row]), int(segments["node"].iloc[row])
    if node < 0:
        return name, "", name
    place = "of" if name == SEGMENT_KINDS[TRAVEL] else "before"
    return name, "", f"{name}, the longest {place} {chain.nodes['name'].iloc[node]}"


def short_name(name: str) -> str:
    """The end of a node's name: its last scope and itself; of a gradient's, what it is of too.

    The scopes that TensorFlow gives the bodies of loops say nothing and are left out.
    """
    *scopes, own = name.split("/")
    scopes = [scope for scope in scopes if not _OF_LOOP.fullmatch(scope)]
    kept = 2 if scopes and scopes[-1].endswith("_grad") else 1
    return "/".join([*scopes[-kept:], own])
