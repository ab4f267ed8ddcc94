"""Two traces aligned by the nodes of their graphs: what became of each, and what that changed."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.analysis.aligned_run import (
    AlignedRun,
    RunTimes,
    aligned_run,
    path_of,
    run_times,
)
from workbench.core.analysis.circumstances import other_circumstances
from workbench.core.analysis.matched_nodes import NodeGroup, match_nodes
from workbench.core.analysis.mean_interval import difference_interval
from workbench.core.graph.op_families import FAMILY_NAMES, families_of
from workbench.core.trace.trace import Trace, load_trace
from workbench.display import Displayed
from workbench.errors import OptionError

# Values of `Alignment.basis`: what the waterfall takes the time of a step apart by.
CRITICAL_PATH, OP_TIME = "critical path", "op time"
_COLUMNS = ["name", "op", "family", "status", "nodes_a", "nodes_b", "a_ns", "b_ns"]
_COLUMNS += ["a_total_ns", "b_total_ns", "source"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Alignment(Displayed):
    """Two traces, node by node: `a` before, `b` after; differences are `b` less `a`.

    Attributes:
      a, b: the runs, with the times of their traced steps.
      basis: what the waterfall takes the time of a step apart by, CRITICAL_PATH, or OP_TIME where
        a trace does not know which op feeds which.
      notes: what a reader must know before comparing the two, a sentence each.
      nodes: one row for each group of nodes that do the same work.
        - name, op, family: of the group.
        - status: one of `matched_nodes.STATUSES`.
        - nodes_a, nodes_b: how many nodes it has in `a` and in `b`.
        - a_ns, b_ns: op time in a step; of a stage's nodes, in one of its runs.
        - a_total_ns, b_total_ns: int64, over all steps. The waterfall sums these.
        - source: the line of the user's code.
      waits: the same of what is no op: kind, side, a_total_ns, b_total_ns.
    """

    a: AlignedRun
    b: AlignedRun
    basis: str
    notes: tuple[str, ...]
    nodes: pd.DataFrame
    waits: pd.DataFrame

    def __repr__(self) -> str:
        return (
            f"Alignment({self.a.label!r} → {self.b.label!r}, "
            f"{self.a.step_ns / 1e6:.3f} → {self.b.step_ns / 1e6:.3f} ms a step)"
        )

    @property
    def difference_ns(self) -> float:
        """How much longer a traced step of `b` takes than one of `a`, in ns; below 0 if shorter."""
        return self.b.step_ns - self.a.step_ns

    @property
    def difference_interval_ns(self) -> tuple[float, float] | None:
        """95 % interval of that difference, steps taken as independent; None with a single step."""
        return difference_interval(self.a.step_times_ns, self.b.step_times_ns)

    @property
    def df(self) -> pd.DataFrame:
        """One row for each group of nodes that do the same work, the largest difference first.

        Columns:

        - name, op, family, status, nodes_a, nodes_b: as in `nodes`.
        - a_ns, b_ns, difference_ns: op time in a step. It is work, wherever it ran.
        - path_a_ns, path_b_ns, path_difference_ns: the part of that time which is on the critical
          path. It is nan where `basis` is OP_TIME.
        - source: as in `nodes`.
        """
        table = self.nodes.drop(columns=["a_total_ns", "b_total_ns"])
        table.insert(8, "difference_ns", table["b_ns"] - table["a_ns"])
        of_path = self._in_a_step(self.nodes)
        for at, (name, values) in enumerate(of_path.items(), 9):
            table.insert(at, f"path_{name}", values if self.basis == CRITICAL_PATH else np.nan)
        size = table[["path_difference_ns", "difference_ns"]].abs().fillna(0)
        order = np.lexsort((table["name"], -size["difference_ns"], -size["path_difference_ns"]))
        return table.iloc[order].reset_index(drop=True)

    @property
    def waterfall(self) -> pd.DataFrame:
        """What the difference in step time consists of, the largest first.

        Ops by family and by what became of them, waits by kind. The totals sum to the time of all
        steps exactly. What is 0 in both has no row. Columns:

        - kind: "op" or a kind of wait.
        - side: of a wait.
        - family, status.
        - nodes: of the run that has more.
        - a_total_ns, b_total_ns: int64, over all steps.
        - a_ns, b_ns, difference_ns: in a step.
        """
        return self._summed(["family", "status"])

    def by_scope(self, depth: int = 2) -> pd.DataFrame:
        """The same waterfall with the ops by name scope and by what became of them.

        Args:
          depth: parts of the scope that count.
        """
        names = self.nodes["name"].tolist()
        scopes = ["/".join(name.split("/")[:-1][:depth]) or name for name in names]
        return self._summed(["scope", "status"], scope=scopes)

    def _summed(self, by: list[str], **columns: Any) -> pd.DataFrame:
        totals = ["a_total_ns", "b_total_ns"]
        nodes = self.nodes.assign(nodes=np.maximum(self.nodes["nodes_a"], self.nodes["nodes_b"]))
        ops = nodes.assign(**columns).groupby(by, sort=False, as_index=False)
        rows = ops[["nodes", *totals]].sum()
        rows.insert(0, "kind", "op")
        rows.insert(1, "side", "")
        waits = self.waits.copy()
        waits[by], waits["nodes"] = "", 0
        table = pd.concat([rows, waits[rows.columns]], ignore_index=True)
        table = table[(table[totals] != 0).any(axis=1)]
        table = table.assign(**self._in_a_step(table))
        keys = [table[name] for name in reversed(["kind", "side", *by])]
        order = np.lexsort([*keys, -table["difference_ns"].abs()])
        return table.iloc[order].reset_index(drop=True)

    def _in_a_step(self, table: pd.DataFrame) -> dict[str, pd.Series]:
        a = table["a_total_ns"] / self.a.steps
        b = table["b_total_ns"] / self.b.steps
        return {"a_ns": a, "b_ns": b, "difference_ns": b - a}


def align(
    a: Trace | str | os.PathLike[str],
    b: Trace | str | os.PathLike[str],
    *,
    labels: tuple[str, str] | None = None,
) -> Alignment:
    """Aligns two traces by the nodes of their graphs, not by time.

    Args:
      a, b: traces, or the files that `Trace.save` wrote; of another day or machine too, which the
        notes then say.
      labels: what to call them; None takes their titles, of a file its name.

    Raises:
      TraceError: a trace has no step, or a file is no trace.
      OptionError: labels that are not two different texts.
    """
    first, second = _opened(a), _opened(b)
    names = _labels(first[1], second[1]) if labels is None else _checked(labels)
    run_a, run_b = aligned_run(first[0], names[0]), aligned_run(second[0], names[1])
    path_a, path_b = path_of(run_a), path_of(run_b)
    without = [r.label for r, p in ((run_a, path_a), (run_b, path_b)) if p is None]
    if without:
        path_a = path_b = None
    times_a, times_b = run_times(run_a, path_a), run_times(run_b, path_b)
    groups = match_nodes(times_a.nodes, times_b.nodes, _stages(run_a.trace), _stages(run_b.trace))
    nodes = _nodes(groups, times_a, times_b)
    return Alignment(
        a=run_a,
        b=run_b,
        basis=OP_TIME if without else CRITICAL_PATH,
        notes=tuple(other_circumstances(run_a, run_b, nodes, without)),
        nodes=nodes,
        waits=_waits(times_a.waits_ns, times_b.waits_ns),
    )


def _opened(given: Trace | str | os.PathLike[str]) -> tuple[Trace, str]:
    """A trace and what to call it."""
    if isinstance(given, Trace):
        return given, given.meta.title
    return load_trace(given), Path(given).stem


def _labels(a: str, b: str) -> tuple[str, str]:
    if a and b and a != b:
        return a, b
    return f"{a} (a)".strip(), f"{b} (b)".strip()


def _checked(labels: tuple[str, str]) -> tuple[str, str]:
    texts = isinstance(labels, tuple) and all(isinstance(each, str) and each for each in labels)
    if not texts or len(labels) != 2 or labels[0] == labels[1]:
        raise OptionError(f"labels is {labels!r}; expected two different texts")
    return labels


def _stages(trace: Trace) -> set[str]:
    return {*trace.tracks["stage"], *trace.items["stage"]} - {""}


def _nodes(groups: list[NodeGroup], a: RunTimes, b: RunTimes) -> pd.DataFrame:
    kinds = {"name": object, "op": object, "family": object, "status": object}
    kinds |= dict.fromkeys(("nodes_a", "nodes_b", "a_total_ns", "b_total_ns"), np.int64)
    kinds |= {"a_ns": float, "b_ns": float, "source": object}
    rows = [_row(group, a, b) for group in groups]
    return pd.DataFrame(rows, columns=_COLUMNS).astype(kinds)


def _row(group: NodeGroup, a: RunTimes, b: RunTimes) -> dict[str, Any]:
    in_a, in_b = list(group.a), list(group.b)
    op, family = _about((a, in_a), (b, in_b))
    sources = [b.sources[place] for place in in_b] + [a.sources[place] for place in in_a]
    return {
        "name": group.name,
        "op": op,
        "family": family,
        "status": group.status,
        "nodes_a": len(in_a),
        "nodes_b": len(in_b),
        "a_ns": a.work_ns[in_a].sum(),
        "b_ns": b.work_ns[in_b].sum(),
        "a_total_ns": a.explained_ns[in_a].sum(),
        "b_total_ns": b.explained_ns[in_b].sum(),
        "source": next((source for source in sources if source), ""),
    }


def _about(*members: tuple[RunTimes, list[int]]) -> tuple[str, str]:
    """Op types of a group in words, and its family: that of most of its op time."""
    words: list[str] = []
    by_family = np.zeros(len(FAMILY_NAMES), np.int64)
    for times, places in members:
        nodes = [times.nodes[place] for place in places]
        ops = {node.op for node in nodes}
        if nodes:
            words.append(nodes[0].op if len(ops) == 1 else f"{len(nodes)} ops")
        families = families_of((n.op for n in nodes), (n.name for n in nodes))
        # At least 1, so that a group without any time has a family too.
        np.add.at(by_family, families, times.busy_ns[places] + 1)
    return " → ".join(dict.fromkeys(words)), FAMILY_NAMES[int(by_family.argmax())]


def _waits(a: dict[tuple[str, str], int], b: dict[tuple[str, str], int]) -> pd.DataFrame:
    keys = list(dict.fromkeys([*a, *b]))
    return pd.DataFrame(
        {
            "kind": pd.Series([kind for kind, _ in keys], dtype=object),
            "side": pd.Series([side for _, side in keys], dtype=object),
            "a_total_ns": np.array([a.get(key, 0) for key in keys], np.int64),
            "b_total_ns": np.array([b.get(key, 0) for key in keys], np.int64),
        }
    )
