"""Layers that consist of many ops, each of which goes through the batch, where few ops would do.

Those on a GPU are left out: the ops that would do have kernels for CPUs alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.core.graph.op_families import GRADIENTS
from workbench.number_words import counted, duration, share

# Scopes that TensorFlow gives the moments and what they normalize, and those of the gradients.
_NORM = re.compile(rf"^(?:{GRADIENTS})?(?P<scope>(?:.*/)?)(?:moments|batchnorm)(?P<number>_\d+)?/")
# What only a batch normalization by the batch's own moments has, beside its other ops.
_ALONE = ("SquaredDifference", "Rsqrt")
_PRODUCT = "BatchMatMulV2"
_SQUARES = ("Square", "Pow", "Mul")
_WHY_DOTS = (
    "all products of an example's vectors are made and some of them picked, and their gradients "
    "spread over all again"
)
_WHY_FM = "an example's vectors are read for their sum, squared and summed again"


def many_op_norms(account: StepAccount) -> Claim | None:
    """Batch normalizations on the step's side that stock TensorFlow builds of many ops."""
    scopes = _norms(account)
    whole = set.intersection(*(set(scopes[account.op == op]) for op in _ALONE)) - {""}
    return _claim(
        account,
        np.isin(scopes, list(whole)),
        key="many_op_norms",
        layers=counted(len(whole), "batch normalization"),
        why=", as most of them go through the whole batch",
        mend="Let one op do each, and one its gradient",
    )


def many_op_interactions(account: StepAccount) -> Claim | None:
    """Interactions of vectors: DLRM's products of pairs, and those of a factorization machine."""
    dots, of_machines = list(_dot_interactions(account)), list(_fm_interactions(account))
    found = [*dots, *of_machines]
    if not found:
        return None
    inside = "|".join(re.escape(name) for names in found for name in names)
    kinds = [(dots, "dot interaction", _WHY_DOTS), (of_machines, "FM interaction", _WHY_FM)]
    kinds = [each for each in kinds if each[0]]
    # The ops themselves, and those in the scopes of their gradients.
    own = re.compile(rf"(?:{GRADIENTS})?(?:{inside})(?:_grad)?(?:/.*)?")
    return _claim(
        account,
        np.array([own.fullmatch(name) is not None for name in account.name]),
        key="many_op_interactions",
        layers=" and ".join(counted(len(own), word) for own, word, _ in kinds),
        why=": " + "; ".join(why for _, _, why in kinds),
        mend="Let one op make what is wanted of the vectors, and one their gradient",
    )


def _claim(
    account: StepAccount, nodes: np.ndarray, *, key: str, layers: str, why: str, mend: str
) -> Claim | None:
    """The claim that few ops could do what these do, as `auto_fused` has it; None if none ran.

    Args:
      account: of the steps.
      nodes: which they are, bool.
      key, mend: of the claim.
      layers: what they do, with its number.
      why: they take their time, the end of a sentence.
    """
    nodes = nodes & (account.node_runs > 0)
    if not nodes.any():
        return None
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


def _norms(account: StepAccount) -> np.ndarray:
    """The batch normalization on a CPU that each node belongs to by its name; "" of all others."""
    found = (_NORM.match(name) for name in account.name)
    names = [f"{each['scope']}/{each['number'] or ''}" if each else "" for each in found]
    return np.where(account.on_gpu, "", np.array(names, object))


def _dot_interactions(account: StepAccount) -> Iterator[tuple[str, ...]]:
    """Of each the names of what makes all products, lays them flat, and picks some."""
    for pick in np.flatnonzero((account.op == "GatherV2") & ~account.on_gpu).tolist():
        for flat in account.inputs.get(pick, ()):
            for product in account.inputs.get(flat, ()) if account.op[flat] == "Reshape" else ():
                vectors = set(account.inputs.get(product, ()))
                if account.op[product] == _PRODUCT and len(vectors) == 1:
                    yield account.name[product], account.name[flat], account.name[pick]


def _fm_interactions(account: StepAccount) -> Iterator[tuple[str, ...]]:
    """Of each, the square of a sum less the sum of the squares, the names of its ops."""

    def behind(node: int, *ops: str) -> list[int]:
        return [each for each in account.inputs.get(node, ()) if account.op[each] in ops]

    for less in np.flatnonzero((account.op == "Sub") & ~account.on_gpu).tolist():
        for square, total in itertools.product(behind(less, *_SQUARES), behind(less, "Sum")):
            for summed, squared in itertools.product(
                behind(square, "Sum"), behind(total, *_SQUARES)
            ):
                both = {*account.inputs.get(summed, ())} & {*account.inputs.get(squared, ())}
                if both:
                    inside = (summed, square, squared, total, less)
                    yield tuple(account.name[each] for each in inside)
