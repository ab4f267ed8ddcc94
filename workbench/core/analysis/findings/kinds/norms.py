"""Batch normalizations that consist of many ops, each of which goes through the batch."""

from __future__ import annotations

import re

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.number_words import counted, duration, share

# Scopes that TensorFlow gives the moments and what they normalize, and those of the gradients.
_NORM = re.compile(
    r"^(?:gradients?(?:_tape|_\d+)?/)?(?P<scope>(?:.*/)?)(?:moments|batchnorm)(?P<number>_\d+)?/"
)
# What only a batch normalization by the batch's own moments has, beside its other ops.
_ALONE = ("SquaredDifference", "Rsqrt")


def many_op_norms(account: StepAccount) -> Claim | None:
    """Batch normalizations on the step's side that stock TensorFlow builds of many ops."""
    scopes = _scopes(account)
    whole = set.intersection(*(set(scopes[account.op == op]) for op in _ALONE)) - {""}
    nodes = np.isin(scopes, list(whole)) & (account.node_runs > 0)
    if not nodes.any():
        return None
    held = account.of_nodes(nodes)
    on_path, in_all = account.per_step(held), float(account.node_ns[nodes].sum())
    norms, ops = counted(len(whole), "batch normalization"), counted(int(nodes.sum()), "op")
    return Claim(
        key="many_op_norms",
        title=f"{ops} do {norms}",
        evidence=(
            f"With their gradients they take {duration(in_all)} of thread time a step, "
            f"{share(in_all / account.work_ns)} of all ops, as most of them go through the whole "
            f"batch; the critical path runs them, or waits behind them, for {duration(on_path)}."
        ),
        mend="Let one op do each, and one its gradient",
        toggle="auto_fused",
        share=held.astype(float),
        at_most_ns=max(on_path, in_all),
        nodes=tuple(np.flatnonzero(nodes)[np.argsort(-account.node_ns[nodes])].tolist()),
    )


def _scopes(account: StepAccount) -> np.ndarray:
    """The batch normalization that each node belongs to by its name; "" of all others."""
    found = (_NORM.match(name) for name in account.name)
    names = [f"{each['scope']}/{each['number'] or ''}" if each else "" for each in found]
    return np.array(names, object)
