"""Dot interactions that consist of many ops, each of which goes through the batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.number_words import counted, duration, share

_PRODUCT = "BatchMatMulV2"


def many_op_interactions(account: StepAccount) -> Claim | None:
    """Pairs of products that are picked out of a whole matrix of them, as DLRM does."""
    found = list(_interactions(account))
    inside = "|".join(re.escape(name) for names in found for name in names)
    # The ops themselves, and those in the scopes of their gradients.
    own = re.compile(rf"(?:gradients?(?:_tape|_\d+)?/)?(?:{inside})(?:_grad)?(?:/.*)?")
    nodes = np.array([bool(found) and own.fullmatch(name) is not None for name in account.name])
    nodes &= account.node_runs > 0
    if not nodes.any():
        return None
    held = account.of_nodes(nodes)
    on_path, in_all = account.per_step(held), float(account.node_ns[nodes].sum())
    interactions, ops = counted(len(found), "dot interaction"), counted(int(nodes.sum()), "op")
    return Claim(
        key="many_op_interactions",
        title=f"{ops} do {interactions}",
        evidence=(
            f"With their gradients they take {duration(in_all)} of thread time a step, "
            f"{share(in_all / account.work_ns)} of all ops: all products of an example's vectors "
            "are made and some of them picked, and their gradients spread over all again; the "
            f"critical path runs them, or waits behind them, for {duration(on_path)}."
        ),
        mend="Let one op make the products that are wanted, and one their gradient",
        toggle="auto_fused",
        share=held.astype(float),
        at_most_ns=max(on_path, in_all),
        nodes=tuple(np.flatnonzero(nodes)[np.argsort(-account.node_ns[nodes])].tolist()),
    )


def _interactions(account: StepAccount) -> Iterator[tuple[str, str, str]]:
    """Of each the names of what makes all products, lays them flat, and picks some."""
    for pick in np.flatnonzero(account.op == "GatherV2").tolist():
        for flat in account.inputs.get(pick, ()):
            for product in account.inputs.get(flat, ()) if account.op[flat] == "Reshape" else ():
                vectors = set(account.inputs.get(product, ()))
                if account.op[product] == _PRODUCT and len(vectors) == 1:
                    yield account.name[product], account.name[flat], account.name[pick]
