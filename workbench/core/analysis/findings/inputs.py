"""What the nodes of a trace read."""

from __future__ import annotations

from workbench.core.analysis.findings.step_account import StepAccount
from workbench.core.graph.op_types import VARIABLES


def inputs_of(account: StepAccount) -> dict[int, list[int]]:
    """For each node the nodes whose outputs it reads."""
    edges = account.trace.edges[account.trace.edges["control"] == 0]
    found: dict[int, list[int]] = {}
    for source, target in zip(edges["source"].tolist(), edges["target"].tolist(), strict=True):
        found.setdefault(target, []).append(source)
    return found


def variable_of(account: StepAccount, node: int) -> int:
    """The variable that a node reads or updates; the node itself where the trace has none."""
    edges = account.trace.edges
    sources = edges["source"][(edges["target"] == node) & (edges["control"] == 0)].tolist()
    return next((int(s) for s in sources if account.op[s] in VARIABLES), node)
