"""Layers that consist of many ops, each of which goes through the batch, where few ops would do.

The rules of fusion know them, and were asked when the trace was captured. Without their answer
there is no such finding: what they refuse, `auto_fused` does not mend.
"""

from __future__ import annotations

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.number_words import counted, duration, share

# As the rules call them.
_NORM = "batch normalization"
# Of each kind why it takes its time.
_INTERACTIONS = {
    "dot interaction": (
        "all products of an example's vectors are made and some of them picked, and their "
        "gradients spread over all again"
    ),
    "FM interaction": "an example's vectors are read for their sum, squared and summed again",
}


def many_op_norms(account: StepAccount) -> Claim | None:
    """Batch normalizations on the step's side that stock TensorFlow builds of many ops."""
    nodes, count = _ran(account, _NORM)
    if not count:
        return None
    return _claim(
        account,
        nodes,
        key="many_op_norms",
        layers=counted(count, _NORM),
        why=", as most of them go through the whole batch",
        mend="Let one op do each, and one its gradient",
    )


def many_op_interactions(account: StepAccount) -> Claim | None:
    """Interactions of vectors: DLRM's products of pairs, and those of a factorization machine."""
    ran = {kind: _ran(account, kind) for kind in _INTERACTIONS}
    counts = {kind: count for kind, (_, count) in ran.items() if count}
    if not counts:
        return None
    return _claim(
        account,
        np.logical_or.reduce([nodes for nodes, _ in ran.values()]),
        key="many_op_interactions",
        layers=" and ".join(counted(count, kind) for kind, count in counts.items()),
        why=": " + "; ".join(_INTERACTIONS[kind] for kind in counts),
        mend="Let one op make what is wanted of the vectors, and one their gradient",
    )


def _ran(account: StepAccount, kind: str) -> tuple[np.ndarray, int]:
    """Which nodes on the step's side a rule would fuse to one of a kind, and to how many."""
    table = account.trace.nodes
    nodes = (table["fusable"] == kind).to_numpy(bool) & (account.node_runs > 0)
    return nodes, int(table["fusable_part"][nodes].nunique())


def _claim(
    account: StepAccount, nodes: np.ndarray, *, key: str, layers: str, why: str, mend: str
) -> Claim:
    """The claim that few ops could do what these do, as `auto_fused` has it.

    Args:
      account: of the steps.
      nodes: which they are, bool, at least one.
      key, mend: of the claim.
      layers: what they do, with its number.
      why: they take their time, the end of a sentence.
    """
    held = account.of_nodes(nodes)
    on_path, in_all = account.per_step(held), float(account.node_ns[nodes].sum())
    return Claim(
        key=key,
        title=f"{counted(int(nodes.sum()), 'op')} do {layers}",
        evidence=(
            f"With their gradients they take {duration(in_all)} of thread time a step, "
            f"{share(in_all / account.work_ns)} of all ops{why}; the critical path runs them, or "
            f"waits behind them, for {duration(on_path)}."
        ),
        mend=mend,
        toggle="auto_fused",
        share=held.astype(float),
        at_most_ns=max(on_path, in_all),
        nodes=tuple(np.flatnonzero(nodes)[np.argsort(-account.node_ns[nodes])].tolist()),
    )
