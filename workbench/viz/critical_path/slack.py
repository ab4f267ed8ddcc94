"""Slack of the ops of a step by group: how long the tightest of each may slip."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.analysis.critical_path import CriticalPath
from workbench.core.graph.op_families import families_of
from workbench.viz.critical_path.waterfall import FILLER_OPS
from workbench.viz.style import colors, format

_MOST_GROUPS = 12
# Less is not told apart from none.
NO_SLACK_NS = 8_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlackBar:
    """One group: op family and name scope, and the slack; `width` is of the largest slack."""

    name: str
    family: int
    slack: str
    width: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Slack:
    """Of one step: the groups that may slip, those with least slack first, and a sentence."""

    bars: tuple[SlackBar, ...]
    note: str


def slack_of(path: CriticalPath, step: int) -> Slack:
    """The groups of a step whose ops take longest among those that may slip at all."""
    groups = _groups(path, step)
    loose = groups[groups["slack"] >= NO_SLACK_NS]
    shown = loose.sort_values("ns", ascending=False, kind="stable").head(_MOST_GROUPS)
    shown = shown.sort_values("slack", kind="stable")
    most = int(shown["slack"].max()) if len(shown) else 1
    columns = (shown[column].tolist() for column in ("family", "scope", "slack"))
    return Slack(
        bars=tuple(
            SlackBar(
                name=f"{colors.FAMILIES[family].name}, {scope}",
                family=family,
                slack=slack_words(slack),
                width=slack / most,
            )
            for family, scope, slack in zip(*columns, strict=True)
        ),
        note=_note(len(groups) - len(loose), len(loose)),
    )


def slack_words(ns: float) -> str:
    """Slack as words; unknown "–"."""
    return "none" if ns < NO_SLACK_NS else format.duration(ns)


def _note(tight: int, loose: int) -> str:
    without = f"{format.integer(tight)} {'group has' if tight == 1 else 'groups have'} none"
    if not loose:
        return f"No op may slip: {without}." if tight else "The step has no ops."
    meaning = "How long the tightest op of a group may slip before the step ends later"
    of = f"; the {_MOST_GROUPS} of {format.integer(loose)} groups whose ops take longest"
    meaning += of if loose > _MOST_GROUPS else ""
    return f"{meaning}. {without}." if tight else f"{meaning}."


def _groups(path: CriticalPath, step: int) -> pd.DataFrame:
    """The groups: family, scope, slack (of the tightest op) and ns (of all of them)."""
    trace = path.trace
    events, nodes = trace.events, trace.nodes
    stage = (trace.tracks["kind"] == "prefetch").to_numpy(bool)[events["track"].to_numpy()]
    known = (events["step"].to_numpy() == step) & ~stage & (path.slack_ns >= 0)
    known &= ~nodes["op"].isin(FILLER_OPS).to_numpy(bool)[events["node"].to_numpy()]
    node = events["node"].to_numpy(np.int64)[known]
    family = families_of(nodes["op"].tolist(), nodes["name"].tolist())
    scopes = np.array([_scope(name) for name in nodes["name"].tolist()], object)
    frame = pd.DataFrame(
        {
            "family": family[node],
            "scope": scopes[node],
            "slack": path.slack_ns[known],
            "ns": events["dur_ns"].to_numpy(np.int64)[known],
        }
    )
    return frame.groupby(["family", "scope"], as_index=False).agg(
        slack=("slack", "min"), ns=("ns", "sum")
    )


def _scope(name: str) -> str:
    """The first two parts of a node's scope, or its name where it stands in none.

    The scope of all gradients is left out: what they are of tells them apart.
    """
    parts = name.split("/")
    if len(parts) > 1 and parts[0].startswith("gradients"):
        parts = parts[1:]
    return "/".join(parts[:-1][:2]) or parts[0]
