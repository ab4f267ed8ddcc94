"""Embedding lookups that consist of many small ops."""

from __future__ import annotations

import re

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.kinds.scheduling import SMALL_NS
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.core.graph.op_families import GRADIENTS
from workbench.number_words import counted, duration, share

# A fused lookup and its gradient are four or five ops; a stock one is about twenty.
_MANY_OPS = 8
# The scope of one lookup; "_grad" ends it in the scope of its gradient.
_LOOKUP = re.compile(
    rf"^(?:{GRADIENTS})?(?P<scope>(?:.*?/)??(?:safe_)?embedding_lookup"
    r"(?:_sparse)?(?:_\d+)?)(?:_grad)?(?:/|$)"
)
# Where the program builds lookups through Workbench, and where its finished graph has stock ones.
FUSED_V2, AUTO_FUSED = "fused_v2", "auto_fused"
_KERNELS_FIRST = "; on a GPU once `wb.load_gpu_kernels()` has loaded their kernels"
# They hold a value and take no time; a fused lookup has them, too.
_NO_WORK = frozenset({"Const", "Identity", "NoOp", "VarHandleOp", "VariableV2"})


def many_small_ops(account: StepAccount) -> Claim | None:
    """Lookups on the step's side that stock TensorFlow does with many ops each."""
    scopes, of, ops = np.unique(_scopes(account), return_inverse=True, return_counts=True)
    many = (ops >= _MANY_OPS) & (scopes != "")
    nodes = many[of]
    if not nodes.any():
        return None
    held = account.of_nodes(nodes)
    count, tables = int(nodes.sum()), int(many.sum())
    mean_ns = account.node_ns / np.maximum(account.node_runs, 1e-9)
    small = int((nodes & (mean_ns < SMALL_NS)).sum())
    spent = np.bincount(of[nodes], account.node_ns[nodes], len(scopes))
    order = np.lexsort((scopes, -spent))
    first = order[0]
    on_path, in_all = account.per_step(held), float(account.node_ns[nodes].sum())
    return Claim(
        key="many_op_lookups",
        title=f"{counted(count, 'op')} do {counted(tables, 'lookup')}",
        evidence=(
            f"About {counted(count / tables, 'op')} a lookup and its gradient, {small} of "
            f"{count} under {duration(SMALL_NS)}. They take {duration(in_all)} of thread time a "
            f"step, {share(in_all / account.work_ns)} of all ops; the critical path "
            f"runs them, or waits behind them, for {duration(on_path)}. The longest is "
            f"`{scopes[first]}`: {ops[first]} ops, {duration(spent[first])}."
        ),
        mend="Fuse them: V1 or V2 do a lookup and its gradient in four or five ops"
        + _KERNELS_FIRST * bool((nodes & account.on_gpu).any()),
        toggle=AUTO_FUSED if _rules_fuse(account, nodes) else FUSED_V2,
        share=held.astype(float),
        # Where threads are busy, what they no longer do is gained, too.
        at_most_ns=max(on_path, in_all),
        nodes=tuple(np.flatnonzero(nodes)[np.argsort(-account.node_ns[nodes])].tolist()),
    )


def _rules_fuse(account: StepAccount, nodes: np.ndarray) -> bool:
    """Whether rules of fusion would fuse some of these; what is built by Workbench need not be."""
    fusable = (account.trace.nodes["fusable"] == "lookup").to_numpy(bool)
    return bool((nodes & fusable).any())


def _scopes(account: StepAccount) -> np.ndarray:
    """The lookup of each node that works on the step's side; "" of all others."""
    lookup = np.full(len(account.op), "", object)
    ran = (account.node_runs > 0) & ~np.isin(account.op, list(_NO_WORK))
    for node in np.flatnonzero(ran).tolist():
        lookup[node] = lookup_scope(account.name[node])
    return lookup


def lookup_scope(name: str) -> str:
    """The scope of the lookup that a node of this name belongs to; "" where it is of none."""
    found = _LOOKUP.match(name)
    return found["scope"] if found else ""
